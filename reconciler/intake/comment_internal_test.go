package intake

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// publisher has our comment as it was posted.
type publisher struct {
	Publisher
	posted       bool
	lost, edited bool
	was          holdfast.PullRequestState
}

func (p *publisher) Comment(context.Context, holdfast.PullRequestRef) (holdfast.Post, bool, error) {
	return holdfast.Post{Body: "the plans", ExternalID: "1"}, p.posted, nil
}

func (p *publisher) Untouched(post holdfast.Post, found holdfast.Comment) bool {
	return post.Body == found.Body
}

func (p *publisher) CommentEdited(
	_ context.Context, post holdfast.Post, _ holdfast.PullRequest, was holdfast.PullRequestState, _ holdfast.Comment,
) (bool, error) {
	p.lost, p.edited, p.was = post.ExternalID == "", post.ExternalID != "", was
	return true, nil
}

// host has the comment as somebody has left it.
type host struct {
	Forge
	comment holdfast.Comment
	err     error
}

func (h host) Comment(context.Context, holdfast.PullRequestRef, string) (holdfast.Comment, error) {
	return h.comment, h.err
}

// A plan that nobody sees, or that somebody has edited, is not one that was reviewed.
func TestKeepComment(t *testing.T) {
	t.Parallel()
	const open, merged = holdfast.PullRequestOpen, holdfast.PullRequestMerged
	ours, edited, broken := holdfast.Comment{ID: "1", Body: "the plans"}, holdfast.Comment{ID: "1", Body: "no changes"}, errors.New("connection refused")
	for name, test := range map[string]struct {
		repo         Repository
		was, state   holdfast.PullRequestState
		unposted     bool
		host         host
		lost, edited bool
		fails        bool
	}{
		"as we wrote it":                  {was: open, state: open, host: host{comment: ours}},
		"deleted":                         {was: open, state: open, host: host{err: holdfast.ErrNotFound}, lost: true},
		"edited":                          {was: open, state: open, host: host{comment: edited}, edited: true},
		"edited, and merged":              {was: open, state: merged, host: host{comment: edited}, edited: true},
		"edited after the merge":          {was: merged, state: merged, host: host{comment: edited}, edited: true},
		"out of reach":                    {was: open, state: open, host: host{err: broken}},
		"out of reach when it was merged": {was: open, state: merged, host: host{err: broken}, fails: true},
		"out of reach after the merge":    {was: merged, state: merged, host: host{err: broken}},
		"not posted yet":                  {was: open, state: open, unposted: true, host: host{comment: edited}},
		"closed":                          {was: open, state: holdfast.PullRequestClosed, host: host{err: holdfast.ErrNotFound}},
		"without a host":                  {repo: Repository{Local: true}, was: open, state: open, host: host{err: holdfast.ErrNotFound}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &publisher{posted: !test.unposted}
			p := &pullRequests{shared{Peers: Peers{Publisher: seen}, opts: Options{
				Sources: Sources{Forges: map[string]Forge{"": test.host}}, Logger: slog.New(slog.DiscardHandler),
			}}}
			rec := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{State: test.state}}
			if err := p.keepComment(t.Context(), test.repo, test.was, rec); (err != nil) != test.fails {
				t.Fatalf("it failed: %v", err)
			}
			if seen.lost != test.lost || seen.edited != test.edited || (test.lost || test.edited) && seen.was != test.was {
				t.Errorf("lost: %t, edited: %t, it was %q", seen.lost, seen.edited, seen.was)
			}
		})
	}
}

// What is to be looked at again is taken once, and of one repository only.
func TestMarks(t *testing.T) {
	t.Parallel()
	m := newMarks()
	m.setRelook("a")
	m.setBehind("b")
	if m.takeRelook("b") || !m.takeRelook("a") || m.takeRelook("a") || m.takeBehind("a") || !m.takeBehind("b") {
		t.Error("a mark is of another repository, or is taken twice")
	}
	progress := m.progress.Wait()
	m.markReady("a")
	select {
	case <-progress:
	default:
		t.Error("nobody learns that the first repository was taken in")
	}
	again := m.progress.Wait()
	m.markReady("a")
	select {
	case <-again:
		t.Error("it is taken in for the first time twice")
	default:
	}
	if !m.anyReady() || !m.isReady("a") || m.isReady("b") {
		t.Error("another one was taken in")
	}
	m.addRecheck("a", "app")
	m.setRecheck("b", map[string]bool{"z": true, "c": true})
	m.addRecheck("b", "d")
	if got := m.recheckIn("b"); len(got) != 3 || got[0] != "c" || len(m.recheckIn("a")) != 1 {
		t.Errorf("to look at again are %q and %q", m.recheckIn("a"), got)
	}
}

// A repository that could not be fetched a moment ago is not fetched for each cluster.
func TestOutages(t *testing.T) {
	t.Parallel()
	o, at, broken := newOutages(), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), errors.New("connection refused")
	if fresh, err := o.of("a", at); fresh || err != nil || o.end("a") {
		t.Errorf("an outage before there was one: %t, %v", fresh, err)
	}
	o.begin("a", broken, at)
	for wait, want := range map[time.Duration]bool{0: true, outagePatience - 1: true, outagePatience: false} {
		if fresh, err := o.of("a", at.Add(wait)); fresh != want || !errors.Is(err, broken) {
			t.Errorf("after %v: %t, %v", wait, fresh, err)
		}
	}
	if fresh, err := o.of("b", at); fresh || err != nil {
		t.Errorf("another repository: %t, %v", fresh, err)
	}
	if !o.end("a") || o.end("a") {
		t.Error("an outage ends once")
	}
}
