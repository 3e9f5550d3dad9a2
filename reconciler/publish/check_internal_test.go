package publish

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/report"
)

// checker is a code host that shows faults at their lines, or may not.
type checker struct {
	host
	refused error
	calls   *int
}

func (c checker) PutCheck(context.Context, string, holdfast.CommitStatus, holdfast.Faults) error {
	*c.calls++
	return c.refused
}

// headed is an open pull request of that head with faults in those files.
func headed(number int, head holdfast.Revision, files ...string) holdfast.PullRequestRecord {
	pr := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
		PullRequestRef: holdfast.PullRequestRef{Repo: ref.Repo, Number: number}, Head: head, State: holdfast.PullRequestOpen,
	}}
	for _, file := range files {
		pr.Faults = append(pr.Faults, holdfast.Fault{File: file, Line: 1, Message: "no"})
	}
	return pr
}

// A check run that may not be made yet is not given up, and not taken to be made: it comes
// with the permission. If nobody looks at its commit by then it is forgotten, to be wanted
// anew when the commit is a head again.
func TestCheckWaitsForThePermission(t *testing.T) {
	t.Parallel()
	later := &holdfast.RateLimitError{RetryAt: noon.Add(time.Hour)}
	for name, test := range map[string]struct {
		refused  error
		last     string
		posted   int64
		open     []holdfast.PullRequestRecord
		calls    int
		deferred bool
		dropped  bool
	}{
		"without the permission":       {refused: later, calls: 1, deferred: true},
		"with it":                      {calls: 1},
		"with it later":                {last: later.Error(), open: []holdfast.PullRequestRecord{headed(7, "abc")}, calls: 1},
		"later, of another head":       {last: later.Error(), open: []holdfast.PullRequestRecord{headed(7, "def")}, dropped: true},
		"later, with no pull requests": {last: later.Error(), dropped: true},
		"later, but it is there":       {last: later.Error(), posted: 1, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, w := 0, &watcher{}
			r := &records{others: test.open}
			post := outgoing.Post{Key: "check", Kind: outgoing.PostCheck, Repo: ref.Repo, PullRequest: ref}
			post.Status.Revision, post.LastError, post.WantedAt, post.Posted = "abc", test.last, noon, test.posted
			if err := publisher(r, w, checker{refused: test.refused, calls: &calls}).post(t.Context(), post); err != nil {
				t.Fatal(err)
			}
			made := !test.deferred && !test.dropped
			if calls != test.calls || r.deferred != test.deferred || r.dropped != test.dropped || r.posted.IsZero() == made || w.gaveUp > 0 {
				t.Errorf("%d calls, deferred %t until %v, dropped %t, posted at %v", calls, r.deferred, r.notBefore, r.dropped, r.posted)
			}
		})
	}
}

// The check run of a commit that is the head of two pull requests has the faults of both,
// whichever is shown.
func TestCheckOfASharedHead(t *testing.T) {
	t.Parallel()
	r := &records{}
	p := publisher(r, &watcher{}, checker{calls: new(int)})
	p.opts.Settings.PullRequestURL = func(ref holdfast.PullRequestRef) string { return "https://holdfast.example.com/" + ref.String() }
	wants := func(state holdfast.StatusState, files ...string) {
		t.Helper()
		var first outgoing.Post
		for i, pr := range r.others[:2] {
			if err := p.wantCheck(t.Context(), report.PullRequest{PullRequest: pr, URL: p.opts.Settings.PullRequestURL(pr.PullRequestRef)}); err != nil {
				t.Fatal(err)
			}
			post := r.posts["check:acme/clusters:abc"]
			if i == 0 {
				first = post
			}
			var got []string
			for _, f := range post.Faults {
				got = append(got, f.File)
			}
			if post.Status != first.Status || post.Status.State != state || !slices.Equal(got, files) {
				t.Errorf("with %s it shows %q as %+v; want %q as %s", pr.PullRequestRef, got, post.Status, files, state)
			}
		}
	}
	other := headed(9, "def", "c.yaml")
	r.others = []holdfast.PullRequestRecord{headed(8, "abc", "b.yaml"), headed(7, "abc", "a.yaml"), other}
	wants(holdfast.StatusFailure, "a.yaml", "b.yaml")
	r.others = []holdfast.PullRequestRecord{headed(8, "abc"), headed(7, "abc", "a.yaml"), other}
	wants(holdfast.StatusFailure, "a.yaml")
	r.others = []holdfast.PullRequestRecord{headed(8, "abc"), headed(7, "abc"), other}
	wants(holdfast.StatusSuccess)
}
