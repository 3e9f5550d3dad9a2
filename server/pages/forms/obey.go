package forms

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/server/pages/call"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

// Refused is why the API did not do something, and what helps.
func Refused(problem v1.Problem) console.Alert {
	alert := console.Alert{
		Tone: "warn", Title: words.Sentence(words.Unquoted(cmp.Or(problem.Detail, problem.Title))),
		Hint: words.Sentence(words.Unquoted(cmp.Or(problem.Hint, problem.Reason.Info().Hint))), Command: problem.Command,
	}
	if problem.Status >= http.StatusInternalServerError {
		alert.Tone = "bad"
	}
	return alert
}

// Obey asks the API for what a form says.
func (v *Visitor) Obey(form url.Values) (console.Alert, error) {
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
		err := v.API.Post(path+"/"+what, form.Get("csrf"), v1.SuspendClusterRequest{Reason: form.Get("reason")}, &c)
		title := cluster + " is suspended: no run begins"
		if what == "resume" {
			title = cluster + " is no longer suspended"
		}
		return console.Alert{Tone: "ok", Title: title}, err
	case "check":
		var run v1.Run
		err := v.API.Post(path+"/drift/check", form.Get("csrf"), struct{}{}, &run)
		return console.Alert{Tone: "ok", Title: "Drift check queued", Action: console.Action{Label: "Open the check", Href: words.RunHref(run.ID)}}, err
	case "remove":
		var made v1.ProposedCluster
		err := v.API.Post("/proposals", form.Get("csrf"), v1.ClusterProposal{Change: proposals.Delete, Cluster: cluster}, &made)
		return console.Alert{
			Tone: "ok", Title: "Its removal is proposed as " + made.PullRequest.String(), Why: "Somebody else has to approve it.",
			Action: console.Action{Label: "Open the pull request", Href: words.PullRequestHref(made.PullRequest)},
		}, err
	default:
		return console.Alert{}, call.Refusal(http.StatusBadRequest, fmt.Sprintf("%.40q is not an action", what), "")
	}
}

// command gives a command, as a comment would.
func (v *Visitor) command(form url.Values) (console.Alert, error) {
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
	if err := v.API.Post("/commands", form.Get("csrf"), req, &c); err != nil {
		return console.Alert{}, err
	}
	return commandAlert(c), nil
}

// commandAlert is the outcome of a command.
func commandAlert(c v1.Command) console.Alert {
	first, more, _ := strings.Cut(words.Unquoted(c.Reply), "\n")
	alert := console.Alert{Tone: "ok", Title: words.Sentence(first), Why: strings.TrimSpace(more)}
	switch {
	case c.Status == holdfast.CommandReceived:
		alert.Tone, alert.Title = "info", words.Sentence(string(c.Verb))+": the server has it, and this page shows what becomes of it"
	case c.Status == holdfast.CommandRefused || len(c.Refused) > 0:
		alert.Tone = "warn"
		if len(c.Refused) == 0 {
			alert.Title = words.Sentence(string(c.Verb)) + " refused: " + first
		}
		if c.Reason != "" {
			cluster := ""
			if len(c.Clusters) == 1 {
				cluster = c.Clusters[0]
			}
			alert.Hint, alert.Command = words.Sentence(words.Unquoted(c.Reason.Info().Hint)), c.Reason.Command(cluster)
		}
	case alert.Title == "":
		alert.Title = words.Sentence(string(c.Verb)) + ": done"
	}
	return alert
}
