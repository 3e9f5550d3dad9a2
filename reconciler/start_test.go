package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
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
			queue, err := f.r.Dispatcher().Queue(t.Context(), holdfast.QueueFilter{Limit: 10})
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
	f.finish(first, protocol.Result{Status: holdfast.RunNoChanges})
	if a := f.claim(); a.Run != "" {
		t.Fatalf("%s is planned in the same minute", a.Cluster)
	}
	queue, err := f.r.Dispatcher().Queue(t.Context(), holdfast.QueueFilter{Limit: 10})
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

// chunkedStore has somebody look each time that the records of some clusters are read.
type chunkedStore struct {
	reconciler.Store
	look func()
}

func (s chunkedStore) Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	if len(filter.Names) > 0 {
		s.look()
	}
	return s.Store.Clusters(ctx, filter)
}

// TestProgressOfAStart: while a server that has begun reads a repository, whoever asks
// learns how many of its clusters are done.
func TestProgressOfAStart(t *testing.T) {
	t.Parallel()
	files := webTemplate("one")
	for i := range 120 {
		files[fmt.Sprintf("clusters/c%d.yaml", i)] = templated(fmt.Sprintf("c%d", i), "{path: ../templates/web}")
	}
	f := newFleet(t, files)
	f.must(f.r.TakeIn(t.Context(), infra, 0))
	var seen []string
	f.restart(func(o *reconciler.Options) {
		o.Store = chunkedStore{o.Store, func() { seen = append(seen, f.r.Progress(infra)) }}
	})
	f.must(f.r.TakeIn(t.Context(), infra, 0))
	if want := []string{"120 of 120 clusters read", "100 of 120 clusters recorded"}; !slices.Equal(seen, want) {
		t.Errorf("while it is taken in, it is at %q, want %q", seen, want)
	}
	if got := f.r.Progress(infra); got != "" || len(f.r.Ready()) > 0 {
		t.Errorf("in the end it is at %q, and the server waits for %v", got, f.r.Ready())
	}
}
