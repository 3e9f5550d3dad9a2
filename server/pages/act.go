package pages

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/proposals"
)

// maxForm bounds the form of a button, in bytes.
const maxForm = 64 << 10

// act does what the form of a button asks for, by the API and in the name of whoever sent
// it, and goes back to where the button was, which says its outcome.
func (p *Pages) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	back := LocalPath(r.PostFormValue("back"))
	v := p.visit(r)
	if err := v.get("/whoami", nil, &v.who); is(err, http.StatusUnauthorized) {
		http.Redirect(w, r, "/login?next="+url.QueryEscape(back), http.StatusSeeOther)
		return
	} else if err != nil {
		p.fail(w, v, err)
		return
	}
	said, err := v.obey(r.PostForm)
	var problem *problemError
	switch {
	case errors.As(err, &problem):
		said = refusedAlert(problem.Problem)
	case err != nil:
		p.fail(w, v, err)
		return
	}
	keep(w, back, said)
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// refusedAlert is why the API did not do something, and what helps.
func refusedAlert(problem v1.Problem) console.Alert {
	alert := console.Alert{
		Tone: "warn", Title: sentence(unquoted(cmp.Or(problem.Detail, problem.Title))),
		Hint: sentence(unquoted(cmp.Or(problem.Hint, problem.Reason.Info().Hint))), Command: problem.Command,
	}
	if problem.Status >= http.StatusInternalServerError {
		alert.Tone = "bad"
	}
	return alert
}

// obey asks the API for what a form says.
func (v *visit) obey(form url.Values) (console.Alert, error) {
	cluster := form.Get("cluster")
	if expected := form.Get("expect"); expected != "" && strings.TrimSpace(form.Get("typed")) != expected {
		return console.Alert{Tone: "warn", Title: "Nothing was done", Why: fmt.Sprintf("You typed %q; %s confirms it.", form.Get("typed"), expected)}, nil
	}
	path := "/clusters/" + url.PathEscape(cluster)
	switch what := form.Get("do"); what {
	case string(holdfast.VerbPlan), string(holdfast.VerbApply), string(holdfast.VerbApprove), string(holdfast.VerbCancel), string(holdfast.VerbUnlock):
		return v.command(form)
	case "suspend", "resume":
		var c v1.Cluster
		err := v.post(path+"/"+what, form.Get("csrf"), v1.SuspendClusterRequest{Reason: form.Get("reason")}, &c)
		title := cluster + " is suspended: no run begins"
		if what == "resume" {
			title = cluster + " is no longer suspended"
		}
		return console.Alert{Tone: "ok", Title: title}, err
	case "check":
		var run v1.Run
		err := v.post(path+"/drift/check", form.Get("csrf"), struct{}{}, &run)
		return console.Alert{Tone: "ok", Title: "Drift check queued", Action: console.Action{Label: "Open the check", Href: runHref(run.ID)}}, err
	case "remove":
		var made v1.ProposedCluster
		err := v.post("/proposals", form.Get("csrf"), v1.ClusterProposal{Change: proposals.Delete, Cluster: cluster}, &made)
		return console.Alert{
			Tone: "ok", Title: "Its removal is proposed as " + made.PullRequest.String(), Why: "Somebody else has to approve it.",
			Action: console.Action{Label: "Open the pull request", Href: pullRequestHref(made.PullRequest)},
		}, err
	default:
		return console.Alert{}, &problemError{v1.ProblemOf(http.StatusBadRequest, fmt.Sprintf("%.40q is not an action", what), "")}
	}
}

// command gives a command, as a comment would.
func (v *visit) command(form url.Values) (console.Alert, error) {
	req := v1.CommandRequest{Verb: holdfast.Verb(form.Get("do")), Run: form.Get("run")}
	if req.Run == "" {
		if cluster := form.Get("cluster"); cluster != "" {
			req.Clusters = []string{cluster}
		}
		req.PullRequest.Repo = form.Get("repo")
		req.PullRequest.Number, _ = strconv.Atoi(form.Get("number")) // what is not a number names none
		if form.Has("looked") {
			req.Shown = append([]string{}, form["shown"]...) // none is another thing than not to have looked
		}
	}
	var c v1.Command
	if err := v.post("/commands", form.Get("csrf"), req, &c); err != nil {
		return console.Alert{}, err
	}
	return commandAlert(c), nil
}

// commandAlert is the outcome of a command.
func commandAlert(c v1.Command) console.Alert {
	first, more, _ := strings.Cut(unquoted(c.Reply), "\n")
	alert := console.Alert{Tone: "ok", Title: sentence(first), Why: strings.TrimSpace(more)}
	switch {
	case c.Status == holdfast.CommandReceived:
		alert.Tone, alert.Title = "info", sentence(string(c.Verb))+": the server has it, and this page shows what becomes of it"
	case c.Status == holdfast.CommandRefused || len(c.Refused) > 0:
		alert.Tone = "warn"
		if len(c.Refused) == 0 {
			alert.Title = sentence(string(c.Verb)) + " refused: " + first
		}
		if c.Reason != "" {
			cluster := ""
			if len(c.Clusters) == 1 {
				cluster = c.Clusters[0]
			}
			alert.Hint, alert.Command = sentence(unquoted(c.Reason.Info().Hint)), c.Reason.Command(cluster)
		}
	case alert.Title == "":
		alert.Title = sentence(string(c.Verb)) + ": done"
	}
	return alert
}
