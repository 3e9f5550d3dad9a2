package github

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
)

const (
	// annotationsAtOnce is how many annotations GitHub accepts in one call.
	annotationsAtOnce = 50
	// maxAnnotations bounds those of one check run: the comment lists the others.
	maxAnnotations = 500
	// maxAnnotation bounds the text of one, in characters; GitHub accepts 64 KB.
	maxAnnotation = 8000
	// checksRetry is how long GitHub is not asked again after it has refused check
	// runs for the lack of a permission.
	checksRetry = time.Hour
)

// PutCheck makes a check run on a commit that shows faults at their lines. Its name
// is the context of status, its conclusion that of status. What is there already as
// wanted is not made again; annotations cannot be taken back, so that other ones
// come with another check run of the same name, which takes the place of the former.
//
// Only an App can make check runs: with a token PutCheck does nothing. An App that
// lacks the permission "checks: write" may get it later: the error is a
// *holdfast.RateLimitError, and GitHub is not asked again for an hour.
func (c *Client) PutCheck(ctx context.Context, repo string, status holdfast.CommitStatus, faults holdfast.Faults) error {
	if c.app == nil {
		return nil
	}
	if err := c.checks.check(repo, c.opts.Now()); err != nil {
		return err
	}
	all := annotations(faults)
	id := checkID(status, faults)
	what := fmt.Sprintf("set check %s of %s@%s", status.Context, repo, status.Revision.Short())
	err := c.do(ctx, repo, what, func(gh *github.Client, on repository) error {
		known, err := findCheck(ctx, gh, on, status, c.opts.App.ID)
		if err != nil {
			return err
		}
		if known.GetExternalID() != id {
			first := firstPage(all)
			known, _, err = gh.Checks.CreateCheckRun(ctx, on.owner, on.name, github.CreateCheckRunOptions{
				Name: status.Context, HeadSHA: string(status.Revision), ExternalID: &id, DetailsURL: detailsURL(status),
				Status: checkStatus(len(first) == len(all)), Conclusion: conclusion(status, len(first) == len(all)),
				Output: checkOutput(status, len(faults), first),
			})
			if err != nil {
				return err
			}
			all = all[len(first):]
		} else {
			all = all[min(known.GetOutput().GetAnnotationsCount(), len(all)):]
		}
		for len(all) > 0 {
			page := firstPage(all)
			all = all[len(page):]
			_, _, err := gh.Checks.UpdateCheckRun(ctx, on.owner, on.name, known.GetID(), github.UpdateCheckRunOptions{
				Name: status.Context, Status: checkStatus(len(all) == 0), Conclusion: conclusion(status, len(all) == 0),
				Output: checkOutput(status, len(faults), page),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, holdfast.ErrForbidden) {
		c.opts.Logger.InfoContext(ctx, "faults are shown without annotations: the App lacks the permission checks: write", "repo", repo, "err", err)
		return c.checks.refuse(repo, c.opts.Now())
	}
	return err
}

// checkMemory remembers until when check runs are not asked for, by repository.
type checkMemory struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// check returns an error if GitHub has refused check runs a moment ago.
func (m *checkMemory) check(repo string, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if until := m.until[repo]; now.Before(until) {
		return lacksChecks(now, until)
	}
	return nil
}

// refuse remembers that GitHub has refused check runs, and returns the error for that.
func (m *checkMemory) refuse(repo string, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.until == nil {
		m.until = make(map[string]time.Time)
	}
	m.until[repo] = now.Add(checksRetry)
	return lacksChecks(now, m.until[repo])
}

func lacksChecks(now, until time.Time) error {
	return later(now, until, errors.New("no annotations: the App lacks the permission checks: write"))
}

// checkID identifies what a check run says, so that one whose answer was lost is
// found again.
func checkID(status holdfast.CommitStatus, faults holdfast.Faults) string {
	d := holdfast.NewDigester("check")
	d.Add(string(status.State), status.Description, status.URL)
	for _, f := range faults {
		d.Add(f.Error())
	}
	return string(d.Digest())
}

// findCheck returns our newest check run of a name on a commit; nil if there is none.
func findCheck(ctx context.Context, gh *github.Client, on repository, status holdfast.CommitStatus, app int64) (*github.CheckRun, error) {
	found, _, err := gh.Checks.ListCheckRunsForRef(ctx, on.owner, on.name, string(status.Revision), &github.ListCheckRunsOptions{
		CheckName: &status.Context, Filter: new("latest"), AppID: &app, ListOptions: github.ListOptions{PerPage: 100},
	})
	if err != nil {
		return nil, err
	}
	var newest *github.CheckRun
	for _, run := range found.CheckRuns {
		if run.GetID() > newest.GetID() {
			newest = run
		}
	}
	return newest, nil
}

func firstPage(all []*github.CheckRunAnnotation) []*github.CheckRunAnnotation {
	return all[:min(annotationsAtOnce, len(all))]
}

func detailsURL(status holdfast.CommitStatus) *string {
	if status.URL == "" {
		return nil
	}
	return &status.URL
}

func checkStatus(last bool) *string {
	if last {
		return new("completed")
	}
	return new("in_progress")
}

// conclusion of a check run with all its annotations; nil as long as more of them
// come.
func conclusion(status holdfast.CommitStatus, last bool) *string {
	switch {
	case !last:
		return nil
	case status.State == holdfast.StatusSuccess:
		return new("success")
	default:
		return new("failure")
	}
}

func checkOutput(status holdfast.CommitStatus, faults int, page []*github.CheckRunAnnotation) *github.CheckRunOutput {
	title, summary := clip(status.Description, 200), "Each error is shown at its line."
	switch {
	case faults == 0:
		summary = "The documents have no errors."
	case faults > maxAnnotations:
		summary = fmt.Sprintf("The first %d errors are shown at their lines.", maxAnnotations)
	}
	return &github.CheckRunOutput{Title: &title, Summary: &summary, Annotations: page}
}

// annotations are the faults at their places. One of a whole file is shown at its
// first line.
func annotations(faults holdfast.Faults) []*github.CheckRunAnnotation {
	var out []*github.CheckRunAnnotation
	for _, f := range faults {
		if f.File == "" || len(out) == maxAnnotations {
			continue
		}
		line, message := max(f.Line, 1), f.Message
		if f.Hint != "" {
			message += "\n" + f.Hint
		}
		if f.Cluster != "" {
			message += "\nCluster: " + f.Cluster
		}
		a := &github.CheckRunAnnotation{
			Path: new(f.File), StartLine: &line, EndLine: &line, AnnotationLevel: new("failure"),
			Message: new(clip(strings.ToValidUTF8(message, "\uFFFD"), maxAnnotation)),
		}
		if f.Line > 0 && f.Column > 0 {
			a.StartColumn, a.EndColumn = new(f.Column), new(f.Column)
		}
		out = append(out, a)
	}
	return out
}
