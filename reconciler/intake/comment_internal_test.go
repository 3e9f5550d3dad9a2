package intake

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// publisher has our comment as it was posted, or not.
type publisher struct {
	Publisher
	err    error
	looked bool
	was    holdfast.PullRequestState
}

func (p *publisher) Intact(_ context.Context, _ holdfast.PullRequest, was holdfast.PullRequestState) (bool, error) {
	p.looked, p.was = true, was
	return p.err == nil, p.err
}

// Our comment is looked at as long as it may be approved. What it said at the merge has to
// be known.
func TestKeepComment(t *testing.T) {
	t.Parallel()
	const open, merged = holdfast.PullRequestOpen, holdfast.PullRequestMerged
	broken := errors.New("connection refused")
	for name, test := range map[string]struct {
		repo       Repository
		was, state holdfast.PullRequestState
		err        error
		looks      bool
		fails      bool
	}{
		"open":                            {was: open, state: open, looks: true},
		"merged":                          {was: open, state: merged, looks: true},
		"out of reach":                    {was: open, state: open, err: broken, looks: true},
		"out of reach when it was merged": {was: open, state: merged, err: broken, looks: true, fails: true},
		"out of reach after the merge":    {was: merged, state: merged, err: broken, looks: true, fails: true},
		"closed":                          {was: open, state: holdfast.PullRequestClosed},
		"without a host":                  {repo: Repository{Local: true}, was: open, state: open},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &publisher{err: test.err}
			p := &pullRequests{shared{Peers: Peers{Publisher: seen}, opts: Options{Logger: slog.New(slog.DiscardHandler)}}}
			rec := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{State: test.state}}
			if err := p.keepComment(t.Context(), test.repo, test.was, rec); (err != nil) != test.fails {
				t.Fatalf("it failed: %v", err)
			}
			if seen.looked != test.looks || test.looks && seen.was != test.was {
				t.Errorf("looked: %t, it was %q", seen.looked, seen.was)
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
	nowhere := func(string) bool { return false }
	if !m.wasReady("a", nowhere) || m.wasReady("b", nowhere) || !m.isReady("a") || m.isReady("b") {
		t.Error("another one was taken in")
	}
	m.addRecheck("a", "app")
	m.setRecheck("b", map[string]bool{"z": true, "c": true})
	m.addRecheck("b", "d")
	if got := m.recheckIn("b"); len(got) != 3 || got[0] != "c" || len(m.recheckIn("a")) != 1 {
		t.Errorf("to look at again are %q and %q", m.recheckIn("a"), got)
	}
}

// What others ask for while a head is looked at is looked at again, once that has ended.
func TestMarksOfOthersStay(t *testing.T) {
	t.Parallel()
	m := newMarks()
	m.addRecheck("a", "before")
	if m.hasBegun("a") {
		t.Error("a repository was begun that was not")
	}
	m.begin("a", &tally{})
	m.addRecheck("a", "meanwhile")
	m.setRecheck("a", map[string]bool{"again": true})
	if got := m.recheckIn("a"); !slices.Equal(got, []string{"again", "meanwhile"}) || !m.hasBegun("a") {
		t.Errorf("to look at again are %q", got)
	}
	m.markReady("a")
	m.begin("a", &tally{})
	m.setRecheck("a", nil)
	if got := m.recheckIn("a"); len(got) > 0 || !m.hasBegun("a") {
		t.Errorf("after the next head these are still to be looked at again: %q", got)
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

// What cannot be looked at for a while shows that: but not for the time of an outage, of
// which nobody knows what a look would have said.
func TestFailuresThatLast(t *testing.T) {
	t.Parallel()
	f, at, broken := newFailures[string](), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), errors.New("too many files")
	for i, look := range []struct {
		after time.Duration
		cause error
		lasts bool
	}{
		{0, broken, false},
		{unreadablePatience - 1, broken, false},
		{1, broken, true},
		{1, holdfast.ErrUnavailable, false},
		{unreadablePatience, broken, false},
		{unreadablePatience, broken, true},
	} {
		at = at.Add(look.after)
		if lasts := f.last("a", look.cause, at); lasts != look.lasts {
			t.Errorf("look %d, which fails with %v, lasts: %t", i, look.cause, lasts)
		}
	}
}

// A host that is unavailable with each second look does not hide what is wrong for good; two
// errors with an outage between them are not that.
func TestFailuresThatLastDuringOutages(t *testing.T) {
	t.Parallel()
	f, at, broken := newFailures[string](), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), errors.New("too many files")
	const pause = 5 * time.Second
	var lasts time.Duration // after which
	for after := pause; after < time.Hour && lasts == 0; after += 2 * pause {
		if f.last("a", broken, at.Add(after)) {
			lasts = after
		} else if f.last("a", holdfast.ErrUnavailable, at.Add(after+pause)) {
			t.Fatal("an outage is a failure that lasts")
		}
	}
	if lasts < unreadablePatience || lasts > 2*unreadablePatience {
		t.Errorf("it is shown after %v, want about %v", lasts, unreadablePatience)
	}
	for _, minute := range []time.Duration{0, 1, 2, 3} {
		for _, cause := range []error{broken, holdfast.ErrUnavailable} {
			if f.last("b", cause, at.Add(10*minute*time.Minute)) {
				t.Errorf("single errors between outages last after %d: %v", 10*minute, cause)
			}
		}
	}
	f.end("a")
	if f.last("a", broken, at.Add(2*time.Hour)) {
		t.Error("it lasts after a look has succeeded")
	}
}
