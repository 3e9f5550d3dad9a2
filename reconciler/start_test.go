package reconciler_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// TestAnApplyWaitsForALookAtGit: what was queued when a process ended may have been taken
// back when the next one begins.
func TestAnApplyWaitsForALookAtGit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ reverted, unread bool }{
		"as before": {}, "taken back": {reverted: true}, "not read for a minute": {unread: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reverted, unread := tt.reverted, tt.unread
			f := built(t, twoClusters())
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(planned)
			f.post()
			f.merge(1, byMerge)
			f.restart()
			if reverted {
				f.repo.Commit(master, "revert", map[string]string{"infra/prod/main.tf": twoClusters()["infra/prod/main.tf"]})
			}
			if a := f.claim(); a.Run != "" {
				t.Fatalf("the %s of %s begins before its repository was read", a.Kind, a.Cluster)
			}
			queue, err := f.r.Dispatcher().Queue(t.Context(), nil, 0, 10)
			f.must(err)
			if len(queue) != 1 || queue[0].Run.Kind != holdfast.RunApply || queue[0].Reason != holdfast.ReasonRepositoryUnread || queue[0].Detail == "" {
				t.Errorf("the queue is %+v", queue)
			}
			if !unread {
				f.look()
			} else {
				f.clock.Advance(time.Minute)
			}
			if a := f.claim(); (a.Run == "") != reverted {
				t.Errorf("then the run is %q (%s)", a.Run, a.Kind)
			}
		})
	}
}

// TestFirstPlansComeLast: a fleet that is found whole, as with a fresh database, holds up no
// pull request, and its plans are spread out.
func TestFirstPlansComeLast(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) { opts.Limits.First = 60 })
	f.look()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	if run := f.execute(planned); run.PullRequest.Number != 1 {
		t.Fatalf("first the %s of %s is handed out, want that of the pull request", run.Kind, run.Cluster)
	}
	first := f.claim()
	if first.Run == "" {
		t.Fatal("no first plan is handed out")
	}
	f.finish(first, holdfast.Result{Status: holdfast.RunNoChanges})
	if a := f.claim(); a.Run != "" {
		t.Fatalf("%s is planned in the same minute", a.Cluster)
	}
	queue, err := f.r.Dispatcher().Queue(t.Context(), nil, 0, 10)
	f.must(err)
	if len(queue) != 1 || queue[0].Reason != holdfast.ReasonAdoptionCapped || queue[0].Detail == "" {
		t.Errorf("the queue is %+v", queue)
	}
	f.restart()
	f.look()
	if a := f.claim(); a.Run != "" {
		t.Fatalf("%s is planned in the same minute by the next process", a.Cluster)
	}
	f.clock.Advance(61 * time.Second)
	if a := f.claim(); a.Run == "" || a.Cluster == first.Cluster {
		t.Errorf("a minute later %q is planned", a.Cluster)
	}
}

// TestRetriesOfFirstPlansTakeNobodysTime: however often one is tried again, the next one
// starts when it would have.
func TestRetriesOfFirstPlansTakeNobodysTime(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) {
		opts.Limits.First, opts.Limits.Retries, opts.Limits.RetryDelay = 60, 2, 10*time.Second
	})
	f.look()
	first := f.claim()
	f.finish(first, transient(first))
	for _, pause := range []time.Duration{10 * time.Second, 20 * time.Second} {
		f.clock.Advance(pause)
		a := f.claim()
		if a.Run != first.Run {
			t.Fatalf("%q is handed out after %s, want the plan of %s again", a.Run, pause, first.Cluster)
		}
		f.finish(a, transient(a))
	}
	f.clock.Advance(29 * time.Second)
	if a := f.claim(); a.Run != "" {
		t.Fatalf("%s is planned in the same minute", a.Cluster)
	}
	f.clock.Advance(2 * time.Second)
	if a := f.claim(); a.Run == "" || a.Cluster == first.Cluster {
		t.Errorf("a minute after the first plan %q is planned", a.Cluster)
	}
}
