package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

const testLease = 30 * time.Second

// runningRuns is a Store of runs that agents execute. It counts what is written and read.
type runningRuns struct {
	Store

	runs       map[string]holdfast.Run
	broken     error                   // of each write
	unreadable error                   // of each read
	beats      int                     // stored
	read       []string                // records
	race       func(run *holdfast.Run) // what somebody else does before the next end; once
	heard      func()                  // what happens before a silent attempt is ended
	lacking    bool                    // what attempts have left may be lost
}

// Runners is empty: there is the local one alone.
func (s *runningRuns) Runners(context.Context) ([]runnerspec.Record, error) { return nil, nil }

func (s *runningRuns) Breakers(context.Context) ([]holdfast.Breaker, error) { return nil, nil }

// AnyQueued has whoever asks look at what is queued.
func (s *runningRuns) AnyQueued(context.Context, holdfast.ClaimFilter) (bool, error) {
	return true, nil
}

func newRunningRuns(n int) *runningRuns {
	s := &runningRuns{runs: map[string]holdfast.Run{}}
	for i := range n {
		id := fmt.Sprint("run-", i)
		s.runs[id] = holdfast.Run{
			ID: id, Status: holdfast.RunRunning, Kind: holdfast.RunPlan, RunSpec: holdfast.RunSpec{StateLocation: "clusters/" + id},
			RunProgress: holdfast.RunProgress{Attempt: 1, Fence: int64(i), Agent: "a", AgentProcess: "one", AgentFolder: "here", HeartbeatAt: time.Now()},
		}
	}
	return s
}

func (s *runningRuns) EachRunning(_ context.Context, do func(holdfast.AttemptRef, string, time.Time)) error {
	for _, run := range s.runs {
		if run.Status == holdfast.RunRunning {
			do(run.Ref(), run.Agent, run.HeartbeatAt)
		}
	}
	return s.unreadable
}

func (s *runningRuns) Runs(context.Context, holdfast.RunFilter) ([]holdfast.Run, error) {
	return nil, s.unreadable // none is queued
}

func (s *runningRuns) Run(_ context.Context, id string) (holdfast.Run, error) {
	s.read = append(s.read, id)
	return s.runs[id], s.unreadable
}

func (s *runningRuns) Brief(_ context.Context, id string) (holdfast.RunBrief, error) {
	run, ok := s.runs[id]
	if !ok {
		return holdfast.RunBrief{}, holdfast.ErrNotFound
	}
	return holdfast.RunBrief{
		AttemptRef: run.Ref(), Cluster: run.Cluster, Kind: run.Kind, Status: run.Status, StateLocation: run.StateLocation, Bundle: run.Bundle,
	}, s.unreadable
}

func (s *runningRuns) MayLack(holdfast.AttemptRef) bool { return s.lacking }

func (s *runningRuns) UpdateRun(_ context.Context, run holdfast.Run) (holdfast.Run, error) {
	if s.broken == nil {
		s.runs[run.ID] = run
	}
	return run, s.broken
}

func (s *runningRuns) Beat(_ context.Context, ref holdfast.AttemptRef, step string, now time.Time) (holdfast.Run, error) {
	run := s.runs[ref.Run]
	if s.broken != nil {
		return run, s.broken
	}
	run.HeartbeatAt, run.Step = now, step
	s.beats++
	return s.UpdateRun(nil, run) //nolint:staticcheck // nobody looks at it
}

func (s *runningRuns) EndAttempt(_ context.Context, _ holdfast.AttemptRef, run holdfast.Run, _ []holdfast.Resource) (holdfast.Run, error) {
	if s.race != nil {
		now := s.runs[run.ID]
		s.race(&now)
		s.runs[run.ID], s.race = now, nil
		return run, holdfast.ErrConflict
	}
	return s.UpdateRun(nil, run) //nolint:staticcheck // nobody looks at it
}

func (s *runningRuns) EndSilent(
	ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource, heard time.Time,
) (holdfast.Run, error) {
	if s.heard != nil {
		s.heard()
	}
	if !s.runs[ref.Run].HeartbeatAt.Equal(heard) {
		return run, holdfast.ErrHeard
	}
	return s.EndAttempt(ctx, ref, run, resources)
}

// ended are the runs that no longer run.
func (s *runningRuns) ended() []string {
	return slices.Sorted(maps.Keys(maps.Collect(func(yield func(string, bool) bool) {
		for id, run := range s.runs {
			if run.Status != holdfast.RunRunning && !yield(id, true) {
				return
			}
		}
	})))
}

// dispatcherWith is a Dispatcher with these limits, whom nothing else keeps from anything.
func dispatcherWith(t *testing.T, store Store, limits Limits) *Dispatcher {
	t.Helper()
	all := everything{woken: func(string) {}}
	d, err := New(Options{Store: store, Locker: all, Fleet: all, TokenKey: make([]byte, 32), Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fleetOf is a Dispatcher of what runs; tick lets time pass as it does between two beats,
// with those of the runs that live, and looks at the leases.
func fleetOf(t *testing.T, store *runningRuns) (d *Dispatcher, tick func(living ...string)) {
	t.Helper()
	d = dispatcherWith(t, store, Limits{Runs: 10, Drift: 10, Lease: testLease})
	return d, func(living ...string) {
		t.Helper()
		time.Sleep(testLease / 6)
		for _, id := range living {
			_, err := d.Heartbeat(t.Context(), store.runs[id].Ref(), protocol.Heartbeat{Step: "plan", Process: "one"})
			if err != nil && store.unreadable == nil {
				t.Fatalf("beat of %s: %v", id, err)
			}
		}
		if err := d.Sweep(t.Context()); err != nil && !errors.Is(err, store.unreadable) {
			t.Fatalf("sweep: %v", err)
		}
	}
}

// TestBeatsThatCannotBeStored: they count, for as long as nothing can be stored; the run
// of an agent that is silent ends after its lease.
func TestBeatsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newRunningRuns(1)
		d, tick := fleetOf(t, store)
		tick("run-0")
		store.broken = errors.New("disk full")
		for range 60 {
			tick("run-0")
		}
		reply, err := d.Heartbeat(t.Context(), store.runs["run-0"].Ref(), protocol.Heartbeat{Step: "plan"})
		if err != nil || reply.MayApply || reply.Cancel != "" {
			t.Errorf("a beat that cannot be stored = %+v, %v: want no apply, and no end", reply, err)
		}
		store.broken = nil
		if tick(); len(store.ended()) != 0 {
			t.Fatal("a run whose heartbeat is fresh was ended")
		}
		for range 5 {
			tick()
		}
		if len(store.ended()) != 0 {
			t.Error("a run was ended before its lease was over")
		}
		if tick(); len(store.ended()) != 1 {
			t.Error("the run of a dead agent goes on after its lease")
		}
		if f := store.runs["run-0"].Failure; f == nil || f.Step != "plan" {
			t.Errorf("its failure is %+v: want the step of the last beat", f)
		}
	})
}

// TestBeatsAfterARestart: a server that has just started, or can read its records again,
// ends no run before agents had the time of a lease to beat.
func TestBeatsAfterARestart(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(t *testing.T, store *runningRuns, tick func(living ...string)) func(living ...string){
		"started": func(t *testing.T, store *runningRuns, _ func(living ...string)) func(living ...string) {
			t.Helper()
			time.Sleep(time.Hour)
			d, tick := fleetOf(t, store)
			doubtful, err := d.reap(t.Context(), protocol.ClaimRequest{Agent: "a", Process: "two", Folder: "here"})
			if err != nil || !doubtful {
				t.Errorf("reap() = %t, %v: want one that may live", doubtful, err)
			}
			for range 4 {
				tick()
			}
			if _, err = d.reap(t.Context(), protocol.ClaimRequest{Agent: "a", Process: "two", Folder: "here"}); err != nil || len(store.ended()) != 0 {
				t.Errorf("reap() ended %v, %v within a lease", store.ended(), err)
			}
			return tick
		},
		"can read again": func(_ *testing.T, store *runningRuns, tick func(living ...string)) func(living ...string) {
			store.unreadable = errors.New("busy")
			for range 60 {
				tick("run-0")
			}
			store.unreadable = nil
			for range 4 {
				tick()
			}
			return tick
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newRunningRuns(1)
				_, tick := fleetOf(t, store)
				tick("run-0")
				tick = again(t, store, tick)
				if len(store.ended()) != 0 {
					t.Fatal("a run was ended before its agent had the time to beat")
				}
				for range 4 {
					tick()
				}
				if len(store.ended()) != 1 {
					t.Error("the run of a dead agent goes on")
				}
			})
		})
	}
}

// TestBeatsAreStoredAtTimes: only if the stored one is older than a third of the lease.
func TestBeatsAreStoredAtTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newRunningRuns(1)
		_, tick := fleetOf(t, store)
		for range 12 { // two leases
			tick("run-0")
			if age := time.Since(store.runs["run-0"].HeartbeatAt); age > testLease/2 {
				t.Errorf("the stored beat is %s old: another replica would give the run up", age)
			}
		}
		if store.beats != 4 {
			t.Errorf("%d of 12 beats were stored, want every third", store.beats)
		}
	})
}

// TestAClaimReadsNoRunningRun: what agents are known to execute is not decoded, whether
// by a claim or by the watch over leases; a run whose lease has ended is.
func TestAClaimReadsNoRunningRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newRunningRuns(100)
		d, _ := fleetOf(t, store)
		var living []holdfast.AttemptRef
		for _, run := range store.runs {
			living = append(living, run.Ref())
		}
		present := func(agent string, executing ...holdfast.AttemptRef) {
			t.Helper()
			err := d.Present(t.Context(), protocol.ClaimRequest{Agent: agent, Process: "one", Folder: "here", Executing: executing})
			if err != nil {
				t.Fatal(err)
			}
		}
		look := func() {
			t.Helper()
			if err := d.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		present("a", living...)
		present("b")
		look()
		if len(store.read) != 0 {
			t.Errorf("records of %v were read", store.read)
		}
		time.Sleep(testLease)
		for _, ref := range living[1:] {
			d.signs.heard(ref, "", time.Now())
		}
		time.Sleep(time.Nanosecond)
		look()
		if read := slices.Compact(slices.Clone(store.read)); !slices.Equal(read, []string{living[0].Run}) {
			t.Errorf("when one lease has ended, records of %v were read", read)
		}
		store.read = nil
		present("a", living[2:]...) // it does not know one of those that run
		if read := slices.Compact(slices.Clone(store.read)); !slices.Equal(read, []string{living[1].Run}) {
			t.Errorf("when its agent does not know one run, records of %v were read", read)
		}
	})
}

// TestBeatsOfAnotherReplica: an attempt that another replica hears of is not ended here, though
// the records have only some of its beats. If both its agent and that replica die, it ends here
// after its lease.
func TestBeatsOfAnotherReplica(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newRunningRuns(2)
		here, _ := fleetOf(t, store)
		elsewhere, _ := fleetOf(t, store)
		beat := func(ids ...string) {
			t.Helper()
			time.Sleep(testLease / 6)
			for _, id := range ids {
				if _, err := elsewhere.Heartbeat(t.Context(), store.runs[id].Ref(), protocol.Heartbeat{Step: "plan", Process: "one"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := here.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 60 {
			beat("run-0", "run-1")
		}
		if store.beats > 60 || len(store.ended()) != 0 {
			t.Fatalf("%d beats were stored, and %v ended", store.beats, store.ended())
		}
		for range 8 { // the last stored one may be a third of a lease old
			beat("run-0")
		}
		if got := store.ended(); len(got) != 1 || got[0] != "run-1" {
			t.Errorf("after more than a lease without a word of run-1, %v ended", got)
		}
	})
}

// TestBeatWhileItsRunIsEnded: a beat that another replica stores after the records were looked
// at keeps the attempt.
func TestBeatWhileItsRunIsEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newRunningRuns(1)
		d, tick := fleetOf(t, store)
		tick("run-0")
		store.heard = func() {
			run := store.runs["run-0"]
			run.HeartbeatAt = time.Now()
			store.runs["run-0"] = run
		}
		time.Sleep(2 * testLease)
		if err := d.Sweep(t.Context()); err != nil || len(store.ended()) != 0 {
			t.Errorf("Sweep() = %v, and %v ended", err, store.ended())
		}
	})
}
