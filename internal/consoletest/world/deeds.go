package world

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// formToken is what forms have to send.
const formToken = "form-token"

// deeds are what can be done to the fleet. As the API does, they refuse forms of other
// sessions.
func (w *World) deeds() {
	for pattern, do := range map[string]http.HandlerFunc{
		"POST /api/v1/proposals":                   propose,
		"POST /api/v1/commands":                    w.command,
		"POST /api/v1/clusters/{name}/suspend":     w.suspend(true),
		"POST /api/v1/clusters/{name}/resume":      w.suspend(false),
		"POST /api/v1/clusters/{name}/drift/check": check,
	} {
		w.mux.HandleFunc(pattern, func(out http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-CSRF-Token") != formToken {
				refuse(out, v1.ProblemOf(http.StatusForbidden, "this form belongs to another session: load its page again", ""))
				return
			}
			do(out, r)
		})
	}
}

func refuse(out http.ResponseWriter, problem v1.Problem) {
	out.Header().Set("Content-Type", v1.ProblemType)
	out.WriteHeader(problem.Status)
	_ = json.NewEncoder(out).Encode(problem) // the reader may have gone
}

// command does a command: what it is for is in the answer, and nothing of pull request 470.
func (w *World) command(out http.ResponseWriter, r *http.Request) {
	var req v1.CommandRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(out, v1.ProblemOf(http.StatusBadRequest, err.Error(), ""))
		return
	}
	done := v1.Command{ID: "cmd-1", Verb: req.Verb, Clusters: req.Clusters, Shown: req.Shown, Status: holdfast.CommandDone, CreatedAt: w.Now, DoneAt: w.Now}
	for _, run := range w.runs {
		if run.ID == req.Run {
			done.Clusters = []string{run.Cluster}
		}
	}
	of := strings.Join(done.Clusters, ", ")
	if of == "" {
		of = req.PullRequest.String()
	}
	switch {
	case req.Verb == holdfast.VerbApprove && slices.Contains(done.Clusters, "search-prod-us-14"):
		done.Status, done.Reason = holdfast.CommandRefused, holdfast.ReasonPlanMoved
		done.Reply = "the newest plan is `r4813`"
	case req.Verb == holdfast.VerbCancel:
		done.Reply = "canceled 1 run"
	default:
		done.Reply = "`" + of + "`: " + string(req.Verb) + " queued"
	}
	write(out, done)
}

func (w *World) suspend(suspended bool) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		for i := range w.lines {
			if w.lines[i].Name == r.PathValue("name") {
				w.lines[i].Suspended = suspended
			}
		}
		w.cluster(out, r)
	}
}

func check(out http.ResponseWriter, _ *http.Request) {
	out.WriteHeader(http.StatusAccepted)
	write(out, v1.Run{ID: "r4812"})
}
