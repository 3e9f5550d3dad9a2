package reconciler_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// errDamaged is what a store says of a blob that is not as it was written.
var errDamaged = errors.New("content is damaged or was moved")

// damagedStore cannot read some of the artefacts.
type damagedStore struct {
	reconciler.Store
	damaged map[[2]string]bool // by run and name
}

// damageable restarts the fleet with a store whose artefacts can be damaged.
func (f *fleet) damageable() *damagedStore {
	f.t.Helper()
	store := &damagedStore{Store: f.store, damaged: make(map[[2]string]bool)}
	f.restart(func(opts *reconciler.Options) { opts.Store = store })
	return store
}

func (s *damagedStore) damage(run, name string) { s.damaged[[2]string{run, name}] = true }

func (s *damagedStore) Artefact(ctx context.Context, run, name string) (io.ReadCloser, error) {
	if s.damaged[[2]string{run, name}] {
		return nil, errDamaged
	}
	return s.Store.Artefact(ctx, run, name)
}

// A plan that stays unreadable does not hold up the cluster of which an apply died: what
// the apply was to create is not known then, and anything may exist.
func TestADamagedPlanHoldsUpNoCluster(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	store := f.damageable()
	f.merge(1, byMerge)
	a := f.claim()
	store.damage(a.Reviews[0].Run, protocol.ArtefactPlan)
	result := transient(a)
	result.Status, result.Reason, result.Fence = holdfast.RunInterrupted, holdfast.ReasonAgentKilled, a.Fence
	f.must(f.r.Dispatcher().Finish(t.Context(), a.AttemptRef, result))
	if err := f.r.Settle(t.Context()); !errors.Is(err, errDamaged) {
		t.Fatalf("at first it is %v, want it to be tried again: an object store may be away", err)
	}
	f.clock.Advance(11 * time.Minute)
	f.ask("prod")
	if rec := f.cluster("prod"); !rec.Left.Any {
		t.Errorf("on record is that the apply has left %+v", rec.Left)
	}
	f.execute(func(a protocol.Assignment) protocol.Result {
		if !a.AnyMayExist {
			t.Errorf("the agent of the %s is told %+v", a.Kind, a.AssignedResume)
		}
		result := planned(a)
		result.Reason, result.Detail = holdfast.ReasonMayExist, "anything may exist"
		return result
	})
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonMayExist {
		t.Fatalf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
	f.apply("prod")
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != "" || rec.Left.Any {
		t.Errorf("applied by a person, it waits for %q, and has left %+v", rec.Waiting, rec.Left)
	}
}

// Nor does a lock file that stays unreadable: a plan shows which providers it is made
// with.
func TestADamagedLockFileHoldsUpNoCluster(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.damageable().damage(f.cluster("prod").Applied.Run, protocol.ArtefactLockFile)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	if run := f.newest("prod"); run.Failure == nil || run.Failure.Cause != holdfast.CauseAssignment {
		t.Fatalf("at first the plan is %s, %+v", run.Status, run.Failure)
	}
	f.clock.Advance(11 * time.Minute)
	f.command(1, "alice", "/holdfast plan")
	f.executeAll(good)
	if run := f.newest("prod"); run.Status != holdfast.RunPlanned {
		t.Errorf("after a while it is %s, %+v", run.Status, run.Failure)
	}
}

// A plan that cannot be read is not waited for with the comment, and nobody reviews it:
// what it would do is shown nowhere.
func TestAPlanThatCannotBeReadIsNotReviewed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	store := f.damageable()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two"), "infra/preprod/main.tf": module("two")})
	prod := f.claim()
	for prod.Cluster != "prod" {
		f.finish(prod, planned(prod))
		prod = f.claim()
	}
	store.damage(prod.Run, protocol.ArtefactPlan)
	result := f.left(prod, planned(prod))
	result.Fence = prod.Fence
	f.must(f.r.Dispatcher().Finish(t.Context(), prod.AttemptRef, result))
	for again := prod; again.Run != ""; again = f.claim() {
		if again.Run != prod.Run {
			result := f.left(again, planned(again))
			result.Fence = again.Fence
			f.must(f.r.Dispatcher().Finish(t.Context(), again.AttemptRef, result))
		}
	}
	if err := f.r.Settle(t.Context()); !errors.Is(err, errDamaged) {
		t.Fatalf("at first it is %v, want it to be tried again", err)
	}
	f.clock.Advance(11 * time.Minute)
	f.must(f.r.Show(t.Context(), onePR))
	f.post()
	const words = "the plan that was made is not in the server's store"
	head := f.forge.get(1).Head
	if got, status := f.forge.comment(1), f.forge.status(head, holdfast.ContextPlan); !strings.Contains(got, words) || status != holdfast.StatusFailure {
		t.Errorf("the status is %q, the comment\n%s", status, got)
	}
	if at := f.newest("prod").PostedAt; !at.IsZero() {
		t.Errorf("the plan counts as shown since %s", at)
	}
	if f.newest("preprod").PostedAt.IsZero() {
		t.Error("the plan of the other cluster was not shown")
	}
	f.merge(1, byMerge)
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonUnreviewed {
		t.Errorf("merged, it waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
}

// What was shown stays reviewed when the plan cannot be read later on.
func TestAPlanThatWasShownStaysReviewed(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.damageable().damage(f.newest("prod").ID, protocol.ArtefactPlan)
	if err := f.r.Show(t.Context(), onePR); !errors.Is(err, errDamaged) {
		t.Fatalf("at first it is %v, want it to be tried again", err)
	}
	f.clock.Advance(11 * time.Minute)
	f.must(f.r.Show(t.Context(), onePR))
	f.post()
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusFailure {
		t.Errorf("the status is %q", got)
	}
	f.merge(1, byMerge)
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != "" || f.newest("prod").Status != holdfast.RunApplied {
		t.Errorf("merged, it waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
}

// The plan with which an apply was held is not shown either if it cannot be read: nobody
// has seen it, and the comment says so.
func TestAHeldPlanThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	store := f.damageable()
	f.merge(1, byMerge)
	a := f.claim()
	store.damage(a.Run, protocol.ArtefactPlan)
	result := planned(a)
	result.Reason, result.Detail = holdfast.ReasonPlanChanged, "the plan differs"
	f.endsQuietly(a, result)
	if err := f.r.Settle(t.Context()); !errors.Is(err, errDamaged) {
		t.Fatalf("at first it is %v, want it to be tried again", err)
	}
	f.clock.Advance(11 * time.Minute)
	f.settle()
	f.must(f.r.Show(t.Context(), onePR))
	f.post()
	if got := f.forge.comment(1); !strings.Contains(got, "the plan that was made is not in the server's store") {
		t.Errorf("the comment is\n%s", got)
	}
	if run := f.newest("prod"); !run.PostedAt.IsZero() || run.ID != a.Run {
		t.Errorf("the plan of the %s counts as shown since %s", run.Kind, run.PostedAt)
	}
}
