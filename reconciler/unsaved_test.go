package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/statelock"
)

// unsavedApply is a fleet in which the apply of a merge could not save its state,
// and another pull request is open that touches the cluster.
func unsavedApply(t *testing.T, files map[string]string) (*fleet, protocol.Assignment) {
	t.Helper()
	f := newFleet(t, files)
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.open(2, map[string]string{"infra/prod/more.tf": module("three")})
	f.executeAll(good)
	f.merge(1, byMerge)
	a := f.claim()
	f.must(f.store.PutArtefact(t.Context(), a.AttemptRef, protocol.ArtefactErrored, strings.NewReader(`{"serial": 4, "lineage": "l"}`)))
	f.finish(a, protocol.Result{
		Status: holdfast.RunErrored, Reason: holdfast.CauseStateUnsaved, Applying: true, EngineName: "terraform", EngineVersion: "1.11.4",
		Failure: &holdfast.Failure{Step: "apply", Summary: "the backend is away", Cause: holdfast.CauseStateUnsaved},
	})
	f.post()
	return f, a
}

func (f *fleet) waitsForState(when string) {
	f.t.Helper()
	f.settle()
	f.post()
	f.clock.Advance(time.Minute) // words of progress are not written at once
	f.lookAt(2)
	f.post()
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonStateUnsaved {
		f.t.Errorf("%s it waits for %q", when, rec.Waiting)
	}
	for _, pr := range []int{1, 2} {
		if body := f.forge.comment(pr); !strings.Contains(body, "holdfast state") {
			f.t.Errorf("%s the comment of #%d does not say what to do:\n%s", when, pr, body)
		}
	}
}

// TestUnsavedState: nothing is planned or applied with the state that the backend
// has, whoever asks, until the one that it has not is pushed.
func TestUnsavedState(t *testing.T) {
	t.Parallel()
	f, failed := unsavedApply(t, foreignState())
	f.waitsForState("after the apply")
	for _, verb := range []holdfast.Verb{holdfast.VerbPlan, holdfast.VerbApply} {
		if c := f.api("alice", verb, "prod"); c.Status != holdfast.CommandRefused {
			t.Errorf("%s is %s %q", verb, c.Status, c.Reply)
		}
	}
	if c := f.command(2, "alice", "/holdfast plan"); c.Status != holdfast.CommandRefused {
		t.Errorf("plan of a pull request is %s %q", c.Status, c.Reply)
	}
	if a := f.claim(); a.Run != "" {
		t.Fatalf("%s of %s is handed out", a.Kind, a.Cluster)
	}

	f.must(f.r.Rescue().Pass(t.Context()))
	f.must(f.r.Rescue().Pass(t.Context())) // one is enough
	push := f.claim()
	if push.Kind != holdfast.RunState || push.State == nil || push.State.Unsaved.Run != failed.Run ||
		push.Bundle != failed.Bundle || !push.Exact || push.PinVersion != "1.11.4" {
		t.Fatalf("handed out is %+v", push)
	}
	away := protocol.Result{Status: holdfast.RunErrored, Reason: "Network", Failure: &holdfast.Failure{
		Step: "push", Summary: "connection refused", Cause: "Network", Transient: true,
	}}
	f.finish(push, away)
	f.waitsForState("after a push that failed")
	for range 20 { // its own attempts, then another run, for as long as it takes
		f.clock.Advance(time.Hour)
		f.must(f.r.Rescue().Pass(t.Context()))
		f.settle()
		if a := f.claim(); a.Run == "" {
			t.Fatal("it is not pushed again")
		} else if a.Kind != holdfast.RunState {
			t.Fatalf("%s is handed out", a.Kind)
		} else if push = a; true {
			f.finish(a, away)
		}
	}
	f.waitsForState("after many")
	f.clock.Advance(time.Hour)
	f.must(f.r.Rescue().Pass(t.Context()))
	f.execute(func(protocol.Assignment) protocol.Result { return protocol.Result{Status: holdfast.RunApplied} })
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonApplyFailed {
		t.Errorf("after the push it waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
	if body := f.forge.comment(2); strings.Contains(body, "holdfast state") {
		t.Errorf("the other pull request is not planned again:\n%s", body)
	}
}

// TestUnsavedStateByHand: a push that cannot succeed is not tried again automatically,
// and a person gives the state up.
func TestUnsavedStateByHand(t *testing.T) {
	t.Parallel()
	f, _ := unsavedApply(t, foreignState())
	f.must(f.r.Rescue().Pass(t.Context()))
	f.execute(func(protocol.Assignment) protocol.Result {
		return protocol.Result{Status: holdfast.RunErrored, Reason: "Conflict", Failure: &holdfast.Failure{
			Step: "push", Summary: "cannot import state with serial 4 over newer state with serial 5", Cause: "Conflict",
		}}
	})
	f.clock.Advance(24 * time.Hour)
	f.must(f.r.Rescue().Pass(t.Context()))
	if a := f.claim(); a.Run != "" {
		t.Errorf("%s is handed out after a push that cannot succeed", a.Kind)
	}
	f.waitsForState("after a push that cannot succeed")
	run, err := f.r.Rescue().PushUnsaved(t.Context(), "prod", "ana", []byte(`{"serial": 6, "lineage": "l"}`))
	f.must(err)
	if _, err := f.r.Rescue().PushUnsaved(t.Context(), "prod", "ana", nil); err == nil {
		t.Error("a second push is queued beside the first")
	}
	if run.Actor != "ana" || run.State.Unsaved.Version == 0 {
		t.Errorf("queued is %+v", run)
	}
	f.execute(failing)
	_, err = f.r.Rescue().WaiveUnsaved(t.Context(), "prod", "ana", "imported by hand")
	f.must(err)
	f.settle()
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonApplyFailed {
		t.Errorf("after it was given up it waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
}

// TestUnsavedStateOfAWrongClock: a push that failed while the clock was a month ahead
// is made again now.
func TestUnsavedStateOfAWrongClock(t *testing.T) {
	t.Parallel()
	f, _ := unsavedApply(t, foreignState())
	f.clock.Advance(30 * 24 * time.Hour)
	f.must(f.r.Rescue().Pass(t.Context()))
	for !f.newest("prod").Status.Done() {
		f.execute(func(protocol.Assignment) protocol.Result {
			return protocol.Result{Status: holdfast.RunErrored, Reason: "Network", Failure: &holdfast.Failure{
				Step: "push", Summary: "connection refused", Cause: "Network", Transient: true,
			}}
		})
		f.clock.Advance(time.Hour)
	}
	if last := f.newest("prod"); last.Kind != holdfast.RunState || last.Status != holdfast.RunErrored {
		t.Fatalf("the push is %s %s", last.Kind, last.Status)
	}
	f.clock.Advance(-30 * 24 * time.Hour)
	f.must(f.r.Rescue().Pass(t.Context()))
	if a := f.claim(); a.Kind != holdfast.RunState {
		t.Errorf("handed out is %q", a.Kind)
	}
}

// TestARenameWaitsForAnUnsavedState: the new name takes over once the state is pushed,
// which is not given up for it, wherever the state is.
func TestARenameWaitsForAnUnsavedState(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{"our own backend": twoClusters(), "another one": foreignState()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := unsavedApply(t, files)
			f.must(f.r.Rescue().Pass(t.Context()))
			f.repo.Commit(master, "rename", map[string]string{
				"clusters/prod.yaml": strings.Replace(document("prod"), "{name: prod}", "{name: live, renamedFrom: prod}", 1),
			})
			f.look()
			if rec := f.cluster("prod"); rec.Desired.Removed || rec.Deletion != nil || rec.Waiting != holdfast.ReasonStateUnsaved {
				t.Errorf("the old name waits for %q (%s), and has ended: %v", rec.Waiting, rec.WaitingDetail, rec.Deletion)
			}
			f.must(f.r.Rescue().Pass(t.Context()))
			push := f.claim()
			if push.Kind != holdfast.RunState {
				t.Fatalf("handed out is %q", push.Kind)
			}
			f.finish(push, protocol.Result{Status: holdfast.RunApplied})
			f.look()
			if name == "our own backend" { // it has not arrived there: a person gives it up
				_, err := f.r.Rescue().WaiveUnsaved(t.Context(), "prod", "alice", "a test")
				f.must(err)
				f.look()
			}
			if rec := f.cluster("prod"); rec.Deletion == nil || rec.Deletion.To != "live" {
				t.Errorf("the new name has not taken over: it waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
			}
		})
	}
}

// What an apply uploads under a lock that is not the state's is not pushed while that
// apply is executed: what its engine saves until the end is newer, and it ends well.
func TestRefusedUploadOfAnApplyThatEndsWell(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	a := f.claim()
	f.must(f.store.LockState(t.Context(), a.StateLocation, statelock.StateLock{ID: "lock", By: a.AttemptRef}))
	upload := func(lock, state string) error {
		_, err := f.store.PutState(t.Context(), holdfast.StateWrite{Location: a.StateLocation, LockID: lock, By: a.AttemptRef, Data: []byte(state)})
		return err
	}
	if upload("another", `{"serial": 9, "lineage": "junk"}`) == nil {
		t.Fatal("an upload under another lock was taken")
	}
	f.must(f.r.Rescue().Pass(t.Context()))
	f.must(upload("lock", `{"version": 4, "serial": 1, "lineage": "l", "resources": []}`))
	f.finish(a, good(a))
	f.must(f.r.Rescue().Pass(t.Context()))
	f.settle()
	if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.Run != a.Run {
		t.Errorf("after an apply that ended well it waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
	if push := f.claim(); push.Kind == holdfast.RunState {
		t.Errorf("%+v is to be pushed", push.State)
	}
}

// What an apply has made whose state was given up is created by no merge.
func TestWhatAStateThatWasGivenUpHad(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.execute(func(protocol.Assignment) protocol.Result {
		return protocol.Result{
			Status: holdfast.RunErrored, Reason: holdfast.CauseStateUnsaved, Applying: true,
			Failure: &holdfast.Failure{
				Step: "apply", Summary: "the backend is away", Cause: holdfast.CauseStateUnsaved,
				Completed: []string{"a.work: created", "a.other: updated"},
			},
		}
	})
	_, err := f.r.Rescue().WaiveUnsaved(t.Context(), "prod", "ana", "it is gone")
	f.must(err)
	f.settle()
	f.wantMayExist("prod", holdfast.RunPlan, "a.work")
	f.heldFor("prod", "a.work")
}
