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
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/replica"
)

// waitingRuns is a Store of runs that wait, and counts what is asked of it.
type waitingRuns struct {
	Store

	mu    sync.Mutex
	ids   []string         // of those that wait
	kind  holdfast.RunKind // of all of them; empty: of any
	due   time.Time        // none may be claimed before
	asked int              // whether any are queued
	looks int              // for claimable runs, or at what runs
	after func()           // somebody else, once an answer was given; nil: nobody
	forks int              // so many are of a pull request from a fork each, the first
	read  []string         // records
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return nil, nil, nil
}

func (s *waitingRuns) Breakers(context.Context) ([]holdfast.Breaker, error) { return nil, nil }

// AnyQueued reports whether some wait that an agent of such kinds executes.
func (s *waitingRuns) AnyQueued(_ context.Context, of holdfast.ClaimFilter) (bool, error) {
	s.mu.Lock()
	s.asked++
	some := len(s.ids) > 0 && (s.kind == "" || slices.Contains(of.Kinds, s.kind))
	s.mu.Unlock()
	if after := s.after; after != nil {
		s.after = nil
		after()
	}
	return some, nil
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

func (s *waitingRuns) Run(_ context.Context, id string) (holdfast.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = append(s.read, id)
	return holdfast.Run{ID: id, Status: holdfast.RunQueued, RunSpec: holdfast.RunSpec{PullRequest: s.pullRequest(slices.Index(s.ids, id))}}, nil
}

func (s *waitingRuns) ClaimRun(_ context.Context, id string, _ protocol.AgentRef, now time.Time, _ int) (holdfast.Run, error) {
	return holdfast.Run{ID: id, RunProgress: holdfast.RunProgress{Attempt: 1}, StartedAt: now}, nil
}

// everything is a Fleet and a Locker that let everything happen.
type everything struct {
	Fleet
	woken func(topic string)
}

func (everything) Fork(context.Context, holdfast.Run) (bool, error)    { return true, nil }
func (everything) Stopped(context.Context, holdfast.Run) (bool, error) { return false, nil }
func (everything) Assignment(_ context.Context, run holdfast.Run) (protocol.Assignment, holdfast.Run, error) {
	return protocol.Assignment{}, run, nil
}

func (everything) HearAgent(context.Context, protocol.ClaimRequest, string, time.Duration) (bool, error) {
	return true, nil
}

func (everything) HeardAgents(context.Context, string) ([]replica.AgentSign, error) { return nil, nil }
func (everything) Cost(holdfast.Cluster, plandoc.Document) *holdfast.Cost           { return nil }
func (everything) Sweeps() bool                                                     { return true }
func (everything) Awaited() []string                                                { return nil }
func (everything) Changed(context.Context, holdfast.Run)                            {}
func (everything) Finished(holdfast.Run, []protocol.Step)                           {}
func (e everything) Wake(_ context.Context, topic string)                           { e.woken(topic) }
func (everything) Acquire(context.Context, string, string, time.Duration) error     { return nil }
func (everything) Renew(context.Context, string, string, time.Duration) error       { return nil }
func (everything) Release(context.Context, string, string) error                    { return nil }

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
	a, err := dispatcherOf(t, store).Claim(t.Context(), protocol.ClaimRequest{Agent: "a"})
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
		a, err := dispatcherOf(t, store).Claim(t.Context(), protocol.ClaimRequest{Agent: "a", Isolation: protocol.IsolationNone})
		if more == 0 && !errors.Is(err, holdfast.ErrNotFound) || more == 1 && (err != nil || a.Run != "run-48") {
			t.Errorf("Claim() with %d runs behind those of forks = %q, %v", more, a.Run, err)
		}
	}
}

// TestForksAreLookedAtOnce: an agent that isolates no engines is not offered the plans of forks
// again with each look at the queue. Those of a pull request that cannot be read are offered
// again after a while.
func TestForksAreLookedAtOnce(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]bool{"forks": false, "pull requests that cannot be read": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &waitingRuns{forks: 3 * claimableLooked}
				for n := range store.forks {
					store.queue(fmt.Sprint("run-", n))
				}
				d := dispatcherOf(t, store)
				if broken {
					d.forks.fleet = unreadable{}
				}
				looked := func() int {
					store.read = nil
					if _, err := d.Claim(t.Context(), protocol.ClaimRequest{Agent: "a"}); !errors.Is(err, holdfast.ErrNotFound) {
						t.Errorf("Claim() = %v", err)
					}
					return len(store.read)
				}
				if got := looked(); got != store.forks {
					t.Errorf("the first look reads %d runs", got)
				}
				time.Sleep(unreadKept - time.Second)
				if got := looked(); got != 0 {
					t.Errorf("the next look reads %d runs again", got)
				}
				time.Sleep(2 * time.Second)
				if got := looked(); (got > 0) != broken {
					t.Errorf("after a while a look reads %d runs", got)
				}
			})
		})
	}
}

// unreadable is a Source that cannot say whether a pull request is from a fork.
type unreadable struct{ Source }

func (unreadable) Fork(context.Context, holdfast.Run) (bool, error) {
	return false, errors.New("it is damaged")
}

// TestClaimWaitsForAWord: while nothing is queued a claim asks the database once, and a
// run that is queued is handed out without a pause. What waits for its time is looked
// at until that has come.
func TestClaimWaitsForAWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &waitingRuns{}
		d := dispatcherOf(t, store)
		if _, err := d.Claim(t.Context(), protocol.ClaimRequest{Agent: "a", Wait: 25 * time.Second}); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("Claim() of an empty queue = %v", err)
		}
		if store.asked != 1 || store.looks != 0 {
			t.Errorf("%d looks at an empty queue in 25 s, and %d at what else there is", store.asked, store.looks)
		}

		type claimed struct {
			run   string
			after time.Duration
		}
		got := make(chan claimed, 1)
		claim := func() {
			began := time.Now()
			a, err := d.Claim(t.Context(), protocol.ClaimRequest{Agent: "a", Wait: 25 * time.Second})
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

// TestClaimSleepsThroughNothing: a run that is queued just after a claim was told that there
// is none is handed out at once.
func TestClaimSleepsThroughNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &waitingRuns{}
		d := dispatcherOf(t, store)
		store.after = func() {
			store.queue("run-1")
			d.Queued(t.Context())
		}
		began := time.Now()
		a, err := d.Claim(t.Context(), protocol.ClaimRequest{Agent: "a", Wait: 25 * time.Second})
		if err != nil || a.Run != "run-1" || time.Since(began) != 0 {
			t.Errorf("Claim() = %q, %v after %s", a.Run, err, time.Since(began))
		}
	})
}

// TestRunsOfOthersCostOneQuery: an agent that waits is woken by each run that is queued or
// ends. Where none is of a kind that it executes it asks for no more than that, and not
// again without being woken; one of applies asks for runs that put states right, too, and
// one of plans for those that release locks.
func TestRunsOfOthersCostOneQuery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, queued holdfast.RunKind
		own          bool
	}{
		{holdfast.RunPlan, holdfast.RunState, false},
		{holdfast.RunApply, holdfast.RunState, true},
		{holdfast.RunPlan, holdfast.RunUnlock, true},
		{holdfast.RunApply, holdfast.RunUnlock, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &waitingRuns{due: time.Now().Add(time.Hour), kind: c.queued}
			d := dispatcherOf(t, store)
			store.queue("run-1")
			ended := make(chan error, 1)
			go func() {
				_, err := d.Claim(t.Context(), protocol.ClaimRequest{Agent: "a", Kinds: []holdfast.RunKind{c.kind}, Wait: 25 * time.Second})
				ended <- err
			}()
			for range 3 {
				time.Sleep(time.Second / 4)
				d.Queued(t.Context())
			}
			if err := <-ended; !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("Claim() = %v", err)
			}
			if !c.own && (store.asked != 4 || store.looks != 0) || c.own && store.looks < 25 {
				t.Errorf("of %s for %s: asked %d times, looked %d times", c.kind, c.queued, store.asked, store.looks)
			}
			if takes := d.takes(holdfast.LocalRunner, c.queued, "p", false); takes != c.own {
				t.Errorf("an agent for %s executes runs of kind %s: %t", c.kind, c.queued, takes)
			}
		})
	}
}
