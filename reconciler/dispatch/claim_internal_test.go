package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// waitingRuns is a Store of runs that wait, and counts what is asked of it.
type waitingRuns struct {
	Store

	mu    sync.Mutex
	ids   []string  // of those that wait
	due   time.Time // none may be claimed before
	looks int       // for claimable runs
	forks int       // so many are of a pull request from a fork each, the first
	read  []string  // records
}

func (s *waitingRuns) queue(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, ids...)
}

func (s *waitingRuns) EachRunning(context.Context, func(holdfast.AttemptRef, string, time.Time)) error {
	return nil
}

func (s *waitingRuns) Served(context.Context, time.Time) (running, lately []holdfast.Lane, err error) {
	return nil, nil, nil
}

func (s *waitingRuns) Claimable(_ context.Context, filter holdfast.ClaimFilter) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if filter.Now.Before(s.due) {
		return nil, nil
	}
	var ids []string
	for i, id := range s.ids {
		if len(ids) < filter.Limit && !slices.Contains(filter.Unplanned, s.pullRequest(i)) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// pullRequest is the one of the run at a place.
func (s *waitingRuns) pullRequest(place int) (pr holdfast.PullRequestRef) {
	if place < s.forks {
		pr = holdfast.PullRequestRef{Repo: "fleet", Number: place + 1}
	}
	return pr
}

func (s *waitingRuns) Queue(context.Context, holdfast.QueueFilter) ([]holdfast.QueuedRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return make([]holdfast.QueuedRun, min(1, len(s.ids))), nil
}

func (s *waitingRuns) Run(_ context.Context, id string) (holdfast.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = append(s.read, id)
	return holdfast.Run{ID: id, Status: holdfast.RunQueued, RunSpec: holdfast.RunSpec{PullRequest: s.pullRequest(slices.Index(s.ids, id))}}, nil
}

func (s *waitingRuns) ClaimRun(_ context.Context, id string, _ holdfast.AgentRef, now time.Time, _ int) (holdfast.Run, error) {
	return holdfast.Run{ID: id, RunProgress: holdfast.RunProgress{Attempt: 1}, StartedAt: now}, nil
}

// everything is a Fleet and a Locker that let everything happen.
type everything struct {
	Fleet
	woken func(topic string)
}

func (everything) Fork(context.Context, holdfast.Run) (bool, error)    { return true, nil }
func (everything) Stopped(context.Context, holdfast.Run) (bool, error) { return false, nil }
func (everything) Assignment(_ context.Context, run holdfast.Run) (holdfast.Assignment, holdfast.Run, error) {
	return holdfast.Assignment{}, run, nil
}
func (everything) Awaited() []string                                            { return nil }
func (everything) Changed(context.Context, holdfast.Run)                        {}
func (everything) Finished(holdfast.Run, []holdfast.Step)                       {}
func (e everything) Wake(_ context.Context, topic string)                       { e.woken(topic) }
func (everything) Acquire(context.Context, string, string, time.Duration) error { return nil }
func (everything) Renew(context.Context, string, string, time.Duration) error   { return nil }
func (everything) Release(context.Context, string, string) error                { return nil }

func dispatcherOf(t *testing.T, store *waitingRuns) *Dispatcher {
	t.Helper()
	var d *Dispatcher
	all := everything{woken: func(topic string) { d.Woken(topic) }}
	d, err := New(Options{
		Store: store, Locker: all, Fleet: all, TokenKey: make([]byte, 32), Limits: Limits{Runs: 10, Drift: 10, Lease: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestClaimReadsTheRunThatIsTaken: of the runs that could be claimed as well no record
// is read.
func TestClaimReadsTheRunThatIsTaken(t *testing.T) {
	t.Parallel()
	store := &waitingRuns{}
	for n := range claimableLooked {
		store.queue(fmt.Sprint("run-", n))
	}
	a, err := dispatcherOf(t, store).Claim(t.Context(), holdfast.ClaimRequest{Agent: "a"})
	if err != nil || a.Run != "run-0" {
		t.Fatalf("Claim() = %q, %v", a.Run, err)
	}
	if len(store.read) != 1 {
		t.Errorf("records of %v were read", store.read)
	}
}

// TestForksTakeNoPlaces: however many plans of forks are in front, an agent that isolates no
// engines gets what is behind them.
func TestForksTakeNoPlaces(t *testing.T) {
	t.Parallel()
	for _, more := range []int{0, 1} {
		store := &waitingRuns{forks: 3 * claimableLooked}
		for n := range store.forks + more {
			store.queue(fmt.Sprint("run-", n))
		}
		a, err := dispatcherOf(t, store).Claim(t.Context(), holdfast.ClaimRequest{Agent: "a", Isolation: holdfast.IsolationNone})
		if more == 0 && !errors.Is(err, holdfast.ErrNotFound) || more == 1 && (err != nil || a.Run != "run-48") {
			t.Errorf("Claim() with %d runs behind those of forks = %q, %v", more, a.Run, err)
		}
	}
}

// TestClaimWaitsForAWord: while nothing is queued a claim asks the database once, and a
// run that is queued is handed out without a pause. What waits for its time is looked
// at until that has come.
func TestClaimWaitsForAWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &waitingRuns{}
		d := dispatcherOf(t, store)
		if _, err := d.Claim(t.Context(), holdfast.ClaimRequest{Agent: "a", Wait: 25 * time.Second}); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("Claim() of an empty queue = %v", err)
		}
		if store.looks != 1 {
			t.Errorf("%d looks at an empty queue in 25 s", store.looks)
		}

		type claimed struct {
			run   string
			after time.Duration
		}
		got := make(chan claimed, 1)
		claim := func() {
			began := time.Now()
			a, err := d.Claim(t.Context(), holdfast.ClaimRequest{Agent: "a", Wait: 25 * time.Second})
			if err != nil {
				t.Error(err)
			}
			got <- claimed{a.Run, time.Since(began)}
		}
		go claim()
		synctest.Wait()
		store.queue("run-1")
		d.Queued(t.Context())
		if c := <-got; c != (claimed{run: "run-1"}) {
			t.Errorf("a run that was queued: %+v", c)
		}

		store.due = time.Now().Add(5 * time.Second)
		go claim()
		if c := <-got; c.run != "run-1" || c.after < 5*time.Second || c.after > 6*time.Second {
			t.Errorf("a run whose time comes after 5 s: %+v", c)
		}
	})
}
