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
	posted      bool
	lost        bool
	edited      bool
	seen, since time.Time
}

func (p *publisher) Comment(context.Context, holdfast.PullRequestRef) (holdfast.Post, bool, error) {
	return holdfast.Post{Body: "the plans", ExternalID: "1"}, p.posted, nil
}

func (p *publisher) Untouched(post holdfast.Post, found holdfast.Comment) bool {
	return post.Body == found.Body
}

func (p *publisher) CommentLost(context.Context, holdfast.Post) error {
	p.lost = true
	return nil
}

func (p *publisher) CommentEdited(_ context.Context, _ holdfast.Post, seen, since time.Time) (bool, error) {
	p.edited, p.seen, p.since = true, seen, since
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

// A plan that nobody sees, or that somebody has edited, is not one that was reviewed,
// except where it was seen before the merge.
func TestKeepComment(t *testing.T) {
	t.Parallel()
	merged := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	before, after := merged.Add(-time.Minute), merged.Add(time.Minute)
	written := func(body string, at time.Time) holdfast.Comment {
		return holdfast.Comment{ID: "1", Body: body, UpdatedAt: at}
	}
	for name, test := range map[string]struct {
		repo        Repository
		was, state  holdfast.PullRequestState
		unposted    bool
		host        host
		lost        bool
		edited      bool
		seen, since time.Time
		ended       int // approvals
	}{
		"as we wrote it": {state: holdfast.PullRequestOpen, host: host{comment: written("the plans", before)}},
		"deleted":        {state: holdfast.PullRequestOpen, host: host{err: holdfast.ErrNotFound}, lost: true},
		"out of reach":   {state: holdfast.PullRequestOpen, host: host{err: errors.New("connection refused")}},
		"edited":         {state: holdfast.PullRequestOpen, host: host{comment: written("no changes", before)}, edited: true, ended: 2},
		"edited later":   {state: holdfast.PullRequestOpen, host: host{comment: written("no changes", after.Add(time.Minute))}, edited: true},
		"edited after the merge": {
			was: holdfast.PullRequestMerged, state: holdfast.PullRequestMerged, host: host{comment: written("no changes", after)},
			edited: true, seen: merged, ended: 1,
		},
		"edited after the merge, and perhaps before": {
			was: holdfast.PullRequestOpen, state: holdfast.PullRequestMerged, host: host{comment: written("no changes", after)},
			edited: true, since: merged.Add(time.Second), ended: 1,
		},
		"edited before it": {state: holdfast.PullRequestMerged, host: host{comment: written("no changes", before)}, edited: true, since: merged.Add(time.Second), ended: 2},
		"not posted yet":   {state: holdfast.PullRequestOpen, unposted: true, host: host{comment: written("no changes", before)}},
		"closed":           {state: holdfast.PullRequestClosed, host: host{err: holdfast.ErrNotFound}},
		"without a host":   {repo: Repository{Local: true}, state: holdfast.PullRequestOpen, host: host{err: holdfast.ErrNotFound}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &publisher{posted: !test.unposted}
			p := &pullRequests{shared{Peers: Peers{Publisher: seen}, opts: Options{
				Sources: Sources{Forges: map[string]Forge{"": test.host}}, Logger: slog.New(slog.DiscardHandler),
			}}}
			given := []holdfast.Approval{
				{By: "ann", CommentID: "2", At: before.Add(-time.Hour)},
				{By: "bob", CommentID: "3", At: before},
				{By: "cid", CommentID: "4", At: after},
				{By: "dan", At: after}, // through the API, where no comment of ours is read
			}
			rec := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{State: test.state, MergedAt: merged}, Approvals: given}
			if err := p.keepComment(t.Context(), test.repo, test.was, &rec); err != nil {
				t.Fatal(err)
			}
			ended := 0
			for i, a := range rec.Approvals {
				if a.Ended != "" {
					ended++
				}
				if given[i].Ended != "" {
					t.Error("an approval of another record has ended")
				}
			}
			if seen.lost != test.lost || seen.edited != test.edited || !seen.seen.Equal(test.seen) || !seen.since.Equal(test.since) || ended != test.ended {
				t.Errorf("lost: %t, edited: %t (seen %v, since %v), %d approvals ended", seen.lost, seen.edited, seen.seen, seen.since, ended)
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
