package reconciler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// hourly is a schedule that a cluster is checked by.
const hourly = `drift: {schedule: "0 * * * *"}`

// driftFleet is prod, with more lines of spec, and preprod, which is not
// checked; both are adopted.
func driftFleet(t *testing.T, spec ...string) *fleet {
	t.Helper()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", spec...)
	f := newFleet(t, files)
	f.adopt()
	return f
}

// pass lets checks that are due be queued.
func (f *fleet) pass() {
	f.t.Helper()
	_, err := f.r.DriftPass(f.t.Context())
	f.must(err)
	f.settle()
}

// checks executes the next run, which has to be a drift check that finds
// plan, and posts what there is to tell.
func (f *fleet) checks(plan holdfast.Plan) holdfast.Run {
	f.t.Helper()
	a := f.claim()
	if a.Run == "" || a.Kind != holdfast.RunDrift {
		f.t.Fatalf("the next run is %q (%s), want a drift check; runs of prod:\n%s", a.Run, a.Kind, strings.Join(f.runs("prod"), "\n"))
	}
	return f.finds(a, plan)
}

// finds ends a drift check that found plan.
func (f *fleet) finds(a protocol.Assignment, plan holdfast.Plan) holdfast.Run {
	f.t.Helper()
	data, err := json.Marshal(plan)
	f.must(err)
	f.must(f.store.PutArtefact(f.t.Context(), a.AttemptRef, protocol.ArtefactPlan, bytes.NewReader(data)))
	result := protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"}
	if len(plan.Changes) > 0 {
		result.Status = holdfast.RunPlanned
	}
	f.finish(a, result)
	f.post()
	run, err := f.store.Run(f.t.Context(), a.Run)
	f.must(err)
	return run
}

// fails executes a check that fails.
func (f *fleet) fails() {
	f.t.Helper()
	run := f.execute(failing)
	if run.Kind != holdfast.RunDrift || run.Status != holdfast.RunErrored {
		f.t.Fatalf("run %+v is not a failed check", run)
	}
	f.post()
}

// later is the next slot of an hourly schedule, whatever the jitter.
func (f *fleet) later() {
	f.t.Helper()
	f.clock.Advance(time.Hour + 7*time.Minute)
	f.pass()
}

// scaled is drift: somebody has scaled a node group to size.
func scaled(size string) holdfast.Plan {
	return drifted(changes{change(group, holdfast.ActionUpdate, "size 3 "+size)}, change(group, holdfast.ActionUpdate, "size "+size+" 3"))
}

func TestDriftIsCheckedOnSchedule(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	rec := f.cluster("prod")
	if due := rec.Drift.Due; due.Before(noon.Add(time.Hour)) || due.After(noon.Add(time.Hour+6*time.Minute)) {
		t.Fatalf("it is due at %s, want a little after one", due)
	}
	if due := f.cluster("preprod").Drift.Due; !due.IsZero() {
		t.Fatalf("a cluster without a schedule is due at %s", due)
	}
	f.pass()
	f.expectRuns("prod", "plan no_changes")

	f.later()
	f.expectRuns("prod", "plan no_changes", "drift queued Schedule")
	queued := f.newest("prod")
	applied := rec.Applied
	if queued.Bundle != applied.Bundle || queued.Dir != applied.Dir || queued.SourceDigest != applied.SourceDigest ||
		queued.StateLocation == "" || queued.StateLocation != applied.StateLocation || !queued.Exact ||
		queued.Revision != applied.Revision || queued.Repo != infra || queued.Document.Name != "prod" {
		t.Errorf("the check is %+v of %+v", queued, applied)
	}
	f.pass()
	f.checks(holdfast.Plan{})
	rec = f.cluster("prod")
	if d := rec.Drift; d.Status != holdfast.DriftNone || d.Run != queued.ID || d.Applied != applied.Run || d.CheckedAt.IsZero() ||
		d.Due.Before(noon.Add(2*time.Hour)) || d.Fingerprint != "" {
		t.Errorf("after the check: %+v", d)
	}
	f.pass()
	f.expectRuns("prod", "plan no_changes", "drift no_changes")
}

// TestRestartsNeitherSkipNorRepeat: when a check is due is in the records.
func TestRestartsNeitherSkipNorRepeat(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	for slot := range 3 {
		f.clock.Advance(30 * time.Minute)
		f.restart()
		f.r.Resume(t.Context())
		f.look()
		f.pass()
		if got := len(f.runs("prod")); got != 1+slot {
			t.Fatalf("%d runs before slot %d:\n%s", got, slot, strings.Join(f.runs("prod"), "\n"))
		}
		f.clock.Advance(37 * time.Minute)
		f.restart()
		f.pass()
		f.restart() // before it is claimed
		f.r.Resume(t.Context())
		f.look()
		f.pass()
		f.checks(holdfast.Plan{})
		f.clock.Advance(-7 * time.Minute)
	}
	f.clock.Advance(6 * time.Hour) // all asleep: it is made up for once
	f.restart()
	f.pass()
	f.checks(holdfast.Plan{})
	f.pass()
	if got := len(f.runs("prod")); got != 5 {
		t.Errorf("%d runs after a long sleep:\n%s", got, strings.Join(f.runs("prod"), "\n"))
	}
}

func TestDefaultSchedule(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(o *reconciler.Options) { o.Sources.DriftSchedule = "0 * * * *" })
	f.adopt()
	f.later()
	f.expectRuns("prod", "plan no_changes", "drift queued Schedule")
	f.expectRuns("preprod", "plan no_changes", "drift queued Schedule")
	f.repo.Commit(master, "quiet", map[string]string{"clusters/prod.yaml": document("prod", `drift: {schedule: "off"}`)})
	f.look()
	if due := f.cluster("prod").Drift.Due; !due.IsZero() {
		t.Errorf("switched off, it is due at %s", due)
	}
}

// TestOneReplicaQueuesChecks: the other one takes over when the first is silent.
func TestOneReplicaQueuesChecks(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.pass()
	first := f.r
	f.restart(func(o *reconciler.Options) { o.Replica.Identity = "other" })
	f.clock.Advance(time.Hour + 7*time.Minute)
	_, err := first.DriftPass(t.Context())
	f.must(err)
	f.pass()
	f.expectRuns("prod", "plan no_changes", "drift queued Schedule")
	f.checks(holdfast.Plan{})
	f.later()
	f.expectRuns("prod", "plan no_changes", "drift no_changes", "drift queued Schedule")
}

func TestChecksYield(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	var all []string
	for i := range 12 {
		name := fmt.Sprintf("c%02d", i)
		files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name, hourly), module("one")
		all = append(all, name)
	}
	f := newFleet(t, files, func(o *reconciler.Options) { o.Limits.Drift = 3; o.Limits.Runs = 20 })
	f.adopt()
	f.later()
	queued := func() (n int) {
		for _, name := range all {
			if f.newest(name).Kind == holdfast.RunDrift {
				n++
			}
		}
		return n
	}
	if n := queued(); n != 6 {
		t.Fatalf("%d checks are queued, want twice as many as may run", n)
	}
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	if a := f.claim(); a.Kind != holdfast.RunPlan {
		t.Fatalf("a %s is executed before the plan", a.Kind)
	}
	var running []protocol.Assignment
	for a := f.claim(); a.Run != ""; a = f.claim(refs(running)...) {
		running = append(running, a)
	}
	// The plan's agent no longer know its by then, and takes it again.
	running = slices.DeleteFunc(running, func(a protocol.Assignment) bool { return a.Kind == holdfast.RunPlan })
	if len(running) != 3 {
		t.Fatalf("%d checks run at once, want 3", len(running))
	}
	f.pass()
	if n := queued(); n != 6 {
		t.Errorf("%d checks are there, want still 6", n)
	}
	f.finds(running[0], holdfast.Plan{})
	f.pass()
	if n := queued(); n != 7 {
		t.Errorf("%d checks are there after one has ended, want 7", n)
	}
}

func refs(list []protocol.Assignment) []holdfast.AttemptRef {
	var out []holdfast.AttemptRef
	for _, a := range list {
		out = append(out, a.AttemptRef)
	}
	return out
}

// TestChecksStepBack: an apply or a plan of the same cluster goes first. The
// check stays due, and is made afterwards.
func TestChecksStepBack(t *testing.T) {
	t.Parallel()
	change := map[string]string{"infra/prod/main.tf": module("two")}
	t.Run("queued, for a plan", func(t *testing.T) {
		t.Parallel()
		f := driftFleet(t, hourly)
		f.later()
		f.open(1, change)
		f.expectRuns("prod", "plan no_changes", "drift canceled Preempted", "plan queued NewRevision")
		f.pass()
		f.executeAll(good)
		f.pass()
		f.expectRuns("prod", "plan no_changes", "drift canceled Preempted", "plan planned", "drift queued Schedule")
		f.checks(holdfast.Plan{}) // an open pull request is not a reason to look away
	})
	t.Run("running, for an apply", func(t *testing.T) {
		t.Parallel()
		f := driftFleet(t, hourly)
		f.open(1, change)
		f.executeAll(good)
		f.later()
		check := f.claim()
		f.merge(1, byMerge)
		reply, err := f.r.Dispatcher().Heartbeat(t.Context(), check.AttemptRef, protocol.Heartbeat{})
		f.must(err)
		if reply.Cancel != holdfast.ReasonPreempted {
			t.Fatalf("the check is told %q", reply.Cancel)
		}
		f.finish(check, protocol.Result{Status: holdfast.RunCanceled})
		f.expectRuns("prod", "plan no_changes", "plan planned", "drift canceled Preempted", "apply queued Merged")
		f.executeAll(good)
		if d := f.cluster("prod").Drift; d.Status != holdfast.DriftUnchecked || d.Run != "" {
			t.Errorf("after the apply: %+v", d)
		}
		f.later()
		f.checks(holdfast.Plan{})
	})
	t.Run("running, not for a plan", func(t *testing.T) {
		t.Parallel()
		f := driftFleet(t, hourly)
		f.later()
		check := f.claim()
		f.open(1, change)
		f.finds(check, holdfast.Plan{})
		f.expectRuns("prod", "plan no_changes", "drift no_changes", "plan queued NewRevision")
	})
	t.Run("asked for, it waits behind a plan", func(t *testing.T) {
		t.Parallel()
		f := driftFleet(t)
		_, err := f.r.CheckDrift(t.Context(), "prod", "alice")
		f.must(err)
		f.open(1, change)
		f.expectRuns("prod", "plan no_changes", "drift queued Requested", "plan queued NewRevision")
		if a := f.claim(); a.Kind != holdfast.RunPlan {
			t.Errorf("a %s goes first", a.Kind)
		}
	})
}

// TestSuspendedClustersAreNotChecked: and are, soon after that has ended.
func TestSuspendedClustersAreNotChecked(t *testing.T) {
	t.Parallel()
	suspend := map[string]func(f *fleet, on bool){
		"cluster": func(f *fleet, on bool) { f.suspend("prod", on, "alice", "") },
		"project": func(f *fleet, on bool) {
			f.must(f.r.SuspendAll(f.t.Context(), holdfast.Suspension{Project: "p", By: "alice"}, on))
		},
		"fleet": func(f *fleet, on bool) { f.must(f.r.SuspendAll(f.t.Context(), holdfast.Suspension{By: "alice"}, on)) },
	}
	for name, set := range suspend {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := driftFleet(t, hourly)
			f.later() // it is queued
			set(f, true)
			f.settle()
			f.expectRuns("prod", "plan no_changes", "drift canceled Suspended")
			f.later()
			f.later()
			f.expectRuns("prod", "plan no_changes", "drift canceled Suspended")
			set(f, false)
			f.settle()
			f.later()
			f.checks(holdfast.Plan{})
		})
	}
}

// TestScheduleRuns lets two replicas run side by side, as they would: each slot
// brings one check, whoever queues it, and what it finds is reverted.
func TestScheduleRuns(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, reverted)
	ctx, stop := context.WithCancel(t.Context())
	f.restart(func(o *reconciler.Options) { o.Replica.Waker = f.locks })
	one := f.r
	f.restart(func(o *reconciler.Options) { o.Replica.Identity = "other" })
	var g sync.WaitGroup
	for _, r := range []*reconciler.Reconciler{one, f.r} {
		g.Go(func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	defer g.Wait()
	defer stop()
	next := func(kind holdfast.RunKind) protocol.Assignment {
		t.Helper()
		for range 3 {
			a, err := f.r.Dispatcher().Claim(ctx, protocol.ClaimRequest{Agent: "agent", Wait: 30 * time.Second})
			if errors.Is(err, holdfast.ErrNotFound) {
				continue
			}
			f.must(err)
			if a.Kind != kind {
				t.Fatalf("the next run is a %s, want %s:\n%s", a.Kind, kind, strings.Join(f.runs("prod"), "\n"))
			}
			return a
		}
		t.Fatalf("there is no %s:\n%s", kind, strings.Join(f.runs("prod"), "\n"))
		return protocol.Assignment{}
	}
	end := func(a protocol.Assignment, plan holdfast.Plan, status holdfast.RunStatus) {
		t.Helper()
		data, err := json.Marshal(plan)
		f.must(err)
		f.must(f.store.PutArtefact(ctx, a.AttemptRef, protocol.ArtefactPlan, bytes.NewReader(data)))
		f.must(f.r.Dispatcher().Finish(ctx, a.AttemptRef, f.left(a, protocol.Result{Status: status, Fence: a.Fence, Applying: a.Kind.Writes()})))
	}
	jump := func() {
		f.clock.Advance(67 * time.Minute)
		f.must(f.locks.Wake(ctx, "drift")) // a clock that jumps is seen within a minute, otherwise
	}
	jump()
	end(next(holdfast.RunDrift), scaled("5"), holdfast.RunPlanned)
	end(next(holdfast.RunApply), holdfast.Plan{}, holdfast.RunApplied)
	end(next(holdfast.RunDrift), holdfast.Plan{}, holdfast.RunNoChanges)
	jump()
	end(next(holdfast.RunDrift), holdfast.Plan{}, holdfast.RunNoChanges)
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply applied", "drift no_changes", "drift no_changes")
}

// TestOneInTroubleKeepsNobodyWaiting: what is wrong with one cluster puts off its
// own check only.
func TestOneInTroubleKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"], files["clusters/preprod.yaml"] = document("prod", hourly), document("preprod", hourly)
	f := newFleet(t, files, func(o *reconciler.Options) { o.Limits.Drift = 1 })
	f.adopt()
	broken := f.cluster("preprod")
	broken.Applied.Run, broken.Applied.StateLocation = "run-zzzzzzzz", "" // a run that is not kept
	broken.Drift.Due = noon
	_, err := f.store.SaveCluster(t.Context(), broken)
	f.must(err)
	f.clock.Advance(67 * time.Minute)
	_, err = f.r.DriftPass(t.Context())
	f.must(err)
	f.expectRuns("prod", "plan no_changes", "drift queued Schedule")
	if due := f.cluster("preprod").Drift.Due; !due.After(f.clock.Now()) {
		t.Errorf("the one in trouble is due at %s", due)
	}
}

// TestScheduleWaitsForNoDecision: a decision that waits for a code host keeps its own
// cluster from being checked, and no other one.
func TestScheduleWaitsForNoDecision(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"], files["clusters/preprod.yaml"] = document("prod", hourly), document("preprod", hourly)
	f := newFleet(t, files)
	f.adopt()
	f.clock.Advance(2 * time.Hour)
	unlock := f.r.HoldDecisions("preprod")
	passed := make(chan error, 1)
	go func() {
		_, err := f.r.DriftPass(context.WithoutCancel(t.Context()))
		passed <- err
	}()
	select {
	case err := <-passed:
		f.must(err)
	case <-time.After(time.Minute):
		t.Error("the schedule waits for a decision about one cluster")
	}
	if run := f.newest("prod"); run.Kind != holdfast.RunDrift {
		t.Errorf("the newest run of the other cluster is a %s", run.Kind)
	}
	unlock()
	f.clock.Advance(time.Minute)
	f.pass()
	if run := f.newest("preprod"); run.Kind != holdfast.RunDrift {
		t.Errorf("after the decision its newest run is a %s", run.Kind)
	}
}

// TestTwoPassesMakeOneCheck: even if both replicas believe that it is theirs to
// look at the schedule, as after a clock has jumped.
func TestTwoPassesMakeOneCheck(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.clock.Advance(67 * time.Minute)
	one := f.r
	f.restart() // by the same name
	var g sync.WaitGroup
	for _, r := range []*reconciler.Reconciler{one, f.r} {
		g.Go(func() {
			if _, err := r.DriftPass(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	f.expectRuns("prod", "plan no_changes", "drift queued Schedule")
}
