package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// worthless is Redis at its worst, as after a failover to a replica that had none of
// the locks, or while two of them take themselves for the master: whoever asks for a
// lock gets it, and everybody has it.
type worthless struct{ reconciler.Locker }

func (worthless) Acquire(context.Context, string, string, time.Duration) error { return nil }
func (worthless) Renew(context.Context, string, string, time.Duration) error   { return nil }
func (worthless) Release(context.Context, string, string) error                { return nil }

// stale is the queue as replicas see it that read it before another one has claimed
// from it: every run of prod that has not begun may be claimed, the newest first.
type stale struct{ reconciler.Store }

func (s stale) Claimable(ctx context.Context, _ holdfast.ClaimFilter) (ids []string, err error) {
	runs, err := s.Runs(ctx, holdfast.RunFilter{Cluster: "prod"})
	for _, run := range runs {
		if run.Status == holdfast.RunQueued {
			ids = append(ids, run.ID)
		}
	}
	return ids, err
}

// TestNoLockGivesAStateToTwoRuns: with locks that exclude nobody, many agents of two
// replicas claim the runs of one state at once. The records let one of them have it.
func TestNoLockGivesAStateToTwoRuns(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) {
		opts.Replica.Locker = worthless{lock.NewMemory()}
	})
	f.adopt()
	const pulls = 4
	for n := range pulls {
		f.open(n+1, map[string]string{"infra/prod/main.tf": module(fmt.Sprint("v", n))})
	}
	replicas := []*reconciler.Reconciler{f.r}
	f.restart(func(opts *reconciler.Options) {
		opts.Replica.Identity, opts.Store = "another", stale{opts.Store}
	})
	replicas = append(replicas, f.r)

	for round := range pulls {
		got := claimAtOnce(t, replicas)
		if len(got) != 1 || got[0].StateLocation != "clusters/prod" {
			t.Fatalf("round %d: %d runs of one state were handed out, want one of prod", round, len(got))
		}
		f.finish(got[0], planned(got[0]))
	}
	if got := claimAtOnce(t, replicas); len(got) != 0 {
		t.Errorf("%d runs are left", len(got))
	}
}

// claimAtOnce has eight agents claim at the same time, half of them of each replica.
func claimAtOnce(t *testing.T, replicas []*reconciler.Reconciler) (got []protocol.Assignment) {
	t.Helper()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		start = make(chan struct{})
	)
	for i := range 8 {
		wg.Go(func() {
			<-start
			a, err := replicas[i%2].Dispatcher().Claim(t.Context(), protocol.ClaimRequest{Agent: fmt.Sprint("agent-", i)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				got = append(got, a)
			case !errors.Is(err, holdfast.ErrNotFound):
				t.Errorf("claim: %v", err)
			}
		})
	}
	close(start)
	wg.Wait()
	return got
}

// TestLockThatSomebodyElseGot: after a failover another attempt may have the lock of one
// that runs. An apply that has not begun does not begin; one that has is not broken off.
func TestLockThatSomebodyElseGot(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	apply := f.claim()
	if apply.Kind != holdfast.RunApply {
		t.Fatalf("claimed a %s", apply.Kind)
	}
	f.must(f.locks.Release(t.Context(), apply.StateLocation, lockOwner(apply)))
	f.must(f.locks.Acquire(t.Context(), apply.StateLocation, "run-stranger/1", time.Hour))
	reply, err := f.r.Dispatcher().Heartbeat(t.Context(), apply.AttemptRef, protocol.Heartbeat{Fence: apply.Fence})
	f.must(err)
	if reply.MayApply || reply.Cancel != "" {
		t.Errorf("the apply is told %+v, want it not to begin, and to continue if it has", reply)
	}
	if a := f.claim(apply.AttemptRef); a.StateLocation == apply.StateLocation {
		t.Errorf("its state was handed out again: %+v", a)
	}
}
