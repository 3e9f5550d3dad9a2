package pages

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/server/pages/call"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

// texts are pages that exist as plain text, too, for whoever follows the link of a
// comment without a browser; by their patterns.
var texts = map[string]func(*visit) (string, error){
	"GET /runs/{run}":                      (*visit).runText,
	"GET /pullrequests/{number}/{repo...}": (*visit).pullRequestText,
}

// forBrowser reports whether a page is wanted, and not a text.
func forBrowser(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") || r.Header.Get("HX-Request") != ""
}

// serveText answers with text that no browser interprets as anything else.
func (p *Pages) serveText(w http.ResponseWriter, r *http.Request, show func(*visit) (string, error)) {
	text, err := show(p.visit(r))
	status := http.StatusOK
	var problem *call.ProblemError
	switch {
	case errors.As(err, &problem):
		status, text = problem.Status, problem.Error()+"\n"
	case err != nil:
		p.opts.Logger.ErrorContext(r.Context(), "could not show page", "path", r.URL.Path, "err", err)
		status, text = http.StatusInternalServerError, "internal error: see the server's log\n"
	}
	Guard(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Vary", "Accept, HX-Request")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the reader may have gone
}

func (v *visit) runText() (string, error) {
	path := "/runs/" + url.PathEscape(v.r.PathValue("run"))
	var run v1.Run
	if err := v.Get(path, nil, &run); err != nil {
		return "", err
	}
	text := fmt.Sprintf("Run %s\n%s of %s", run.ID, run.Kind, run.Cluster)
	if !run.PullRequest.IsZero() {
		text += " for " + run.PullRequest.String()
	}
	text += ": " + strings.TrimSpace(string(run.Status)+" "+string(run.Reason)) + "\n\n" + report.FailureText(run.Run())
	var plan v1.Plan
	switch err := v.Get(path+"/plan", nil, &plan); {
	case err == nil:
		text += report.PlanText(plan.Plan())
	case !call.Is(err, http.StatusNotFound):
		return "", err
	}
	return text + "\nThe log: holdfast logs " + run.ID + "\n", nil
}

func (v *visit) pullRequestText() (string, error) {
	ref, err := pullRequestOf(v.r)
	if err != nil {
		return "", err
	}
	q := call.Query("repo", ref.Repo, "number", strconv.Itoa(ref.Number))
	var detail v1.PullRequestDetail
	if err := v.Get("/pullrequests/get", q, &detail); err != nil {
		return "", err
	}
	q.Set("limit", "1000")
	runs, err := call.List[v1.Run](v.API, "/runs", q)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Pull request %s, %s, head %s\n\n", ref, detail.PullRequest.State, detail.PullRequest.Head.Short())
	for _, run := range runs.Items {
		fmt.Fprintf(&b, "%-8s %-11s %-30s %s\n", run.Kind, run.Status, run.Cluster, words.RunHref(run.ID))
	}
	if len(runs.Items) == 0 {
		b.WriteString("No runs.\n")
	}
	return b.String(), nil
}

// pullRequestOf reads which one a path names.
func pullRequestOf(r *http.Request) (v1.PullRequestRef, error) {
	number, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || number <= 0 {
		text := fmt.Sprintf("%q is not the number of a pull request", r.PathValue("number"))
		return v1.PullRequestRef{}, call.Refusal(http.StatusNotFound, text, "")
	}
	return v1.PullRequestRef{Repo: cmp.Or(r.PathValue("repo"), "-"), Number: number}, nil
}
