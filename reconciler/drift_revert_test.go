package reconciler_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// reverted is a cluster whose drift is reverted automatically.
const reverted = `drift: {schedule: "0 * * * *", onDrift: apply}`

// asks is a person's command through the API.
func (f *fleet) asks(verb holdfast.Verb, clusters ...string) holdfast.Command {
	f.t.Helper()
	return f.api("alice", verb, clusters...)
}

// drift has the next check find plan.
func (f *fleet) drift(plan holdfast.Plan) holdfast.Run {
	f.t.Helper()
	f.later()
	return f.checks(plan)
}

func TestDriftIsRevertedByItself(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, reverted)
	before := f.cluster("prod").Applied
	check := f.drift(scaled("5"))
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply queued Drifted")
	apply := f.newest("prod")
	if apply.Shown != check.ID || !apply.Exact || apply.Bundle != before.Bundle || apply.SourceDigest != before.SourceDigest ||
		apply.StateLocation != before.StateLocation || len(apply.Reviews) != 1 || apply.Reviews[0].Run != check.ID || apply.Actor != "" {
		t.Fatalf("the apply is %+v", apply)
	}
	f.look() // what asks again changes nothing
	f.r.Resume(t.Context())
	f.settle()
	f.execute(func(a protocol.Assignment) protocol.Result {
		if a.Modules != before.Run {
			t.Errorf("the apply has the modules of %q, want those of %s, which was applied", a.Modules, before.Run)
		}
		return good(a)
	})
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply applied")
	rec := f.cluster("prod")
	if rec.Applied.Run != apply.ID || rec.Applied.SourceDigest != before.SourceDigest || rec.Waiting != "" {
		t.Errorf("after the apply: %+v, waiting %q", rec.Applied, rec.Waiting)
	}
	f.pass() // at once, to see whether it is gone
	f.checks(holdfast.Plan{})
	if d := f.cluster("prod").Drift; d.Status != holdfast.DriftNone || d.Revert != apply.ID || d.Applied != apply.ID {
		t.Errorf("after the next check: %+v", d)
	}
	f.drift(scaled("5")) // the same again, later, is reverted again
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply applied", "drift no_changes", "drift planned", "apply queued Drifted")
}

// TestRevertThatFindsAnotherPlan: an apply that was to revert a drift and finds
// another plan than the check has shown applies nothing. Its plan is the drift on
// record from then on, and is left alone until the next check.
func TestRevertThatFindsAnotherPlan(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, reverted)
	check := f.drift(scaled("5"))
	a := f.claim()
	if len(a.Reviews) != 1 || a.Reviews[0].Run != check.ID || a.Reviews[0].PlanDigest != check.PlanDigest || check.PlanDigest == "" {
		t.Fatalf("the apply is compared with %+v, want what %s has shown", a.Reviews, check.ID)
	}
	data, err := json.Marshal(scaled("9"))
	f.must(err)
	f.must(f.store.PutArtefact(t.Context(), a.AttemptRef, protocol.ArtefactPlan, bytes.NewReader(data)))
	held := planned(a)
	held.Reason = holdfast.ReasonPlanChanged
	f.finish(a, held)
	f.look()
	rec := f.cluster("prod")
	if rec.Drift.Run != a.Run || rec.Drift.Status != holdfast.DriftFound || !strings.Contains(rec.Drift.Hold, "found another plan") {
		t.Fatalf("it waits for %q: %+v", rec.Waiting, rec.Drift)
	}
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply planned PlanChanged")
	f.clock.Advance(time.Minute)
	f.look()
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply planned PlanChanged")
	again := f.drift(scaled("9"))
	if run := f.newest("prod"); run.Kind != holdfast.RunApply || run.Shown != again.ID {
		t.Errorf("after the next check: %s", strings.Join(f.runs("prod"), ", "))
	}
}

// TestSameDriftIsRevertedOnce: what comes back at once is not fought over, whatever
// its value.
func TestSameDriftIsRevertedOnce(t *testing.T) {
	t.Parallel()
	failed := func(a protocol.Assignment) protocol.Result { r := failing(a); r.Applying = false; return r }
	tests := map[string]struct {
		end  func(protocol.Assignment) protocol.Result
		back string // what it has drifted to after it was reverted
	}{
		"it was reverted":                     {end: good, back: "5"},
		"it was reverted, and is another one": {end: good, back: "6"},
		"it failed":                           {end: failed},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := driftFleet(t, reverted)
			f.drift(scaled("5"))
			apply := f.execute(c.end)
			if c.back != "" {
				f.pass()
				f.checks(scaled(c.back))
			}
			f.look()
			rec := f.cluster("prod")
			if rec.Waiting != holdfast.ReasonRevertFailed || rec.Drift.Revert != apply.ID || rec.Drift.Hold != string(holdfast.ReasonRevertFailed) {
				t.Fatalf("it waits for %q (%s): %+v", rec.Waiting, rec.WaitingDetail, rec.Drift)
			}
			f.drift(scaled("5"))
			if run := f.newest("prod"); run.Kind != holdfast.RunDrift {
				t.Errorf("it is tried again: %s", strings.Join(f.runs("prod"), ", "))
			}
			if got := f.cluster("prod").Drift.Revert; got != apply.ID {
				t.Errorf("the revert of the same drift is %q", got)
			}
			f.drift(scaled("9")) // another value of what was reverted does not count as another drift
			want := holdfast.RunApply
			if c.back != "" {
				want = holdfast.RunDrift
			}
			if run := f.newest("prod"); run.Kind != want {
				t.Errorf("another value: %s", strings.Join(f.runs("prod"), ", "))
			}
		})
	}
}

func TestFailedRevertInItsMiddle(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, reverted)
	f.drift(scaled("5"))
	f.execute(failing)
	rec := f.cluster("prod")
	if rec.Phase != holdfast.PhaseFailed || !rec.Drift.Due.IsZero() {
		t.Errorf("it is %s, due at %s", rec.Phase, rec.Drift.Due)
	}
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply errored EngineFailed", "plan queued ApplyFailed")
}

func TestDriftIsHeld(t *testing.T) {
	t.Parallel()
	replaced := drifted(changes{change(group, holdfast.ActionUpdate, "zone a b")}, change(group, holdfast.ActionReplace, "zone b a"))
	partly := drifted(changes{change(group, holdfast.ActionUpdate, "size 3 5", "zone a b")}, change(group, holdfast.ActionUpdate, "size 5 3", "zone b a"))
	tests := map[string]struct {
		spec   []string
		plan   holdfast.Plan
		reason holdfast.Reason
		detail string
	}{
		"needs an approval": {[]string{reverted, "apply: {requires: [approved]}"}, scaled("5"), holdfast.ReasonDriftHeld, "approval"},
		"destroys":          {[]string{reverted}, replaced, holdfast.ReasonDriftHeld, "destroy"},
		"changes what is hidden": {
			[]string{`drift: {schedule: "0 * * * *", onDrift: apply, ignore: [{address: "**", attribute: size, reason: autoscaler}]}`},
			partly, holdfast.ReasonDriftHeld, "ignore rule",
		},
		"outside of the windows": {
			[]string{reverted, `apply: {windows: [{kind: allow, schedule: "0 22 * * *", duration: 2h}]}`},
			scaled("5"), holdfast.ReasonWindowClosed, "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := driftFleet(t, tt.spec...)
			check := f.drift(tt.plan)
			rec := f.cluster("prod")
			if rec.Waiting != tt.reason || !strings.Contains(rec.WaitingDetail, tt.detail) || rec.Drift.Hold == "" ||
				!strings.Contains(rec.Drift.Hold, tt.detail) {
				t.Fatalf("it waits for %q (%s), hold %q", rec.Waiting, rec.WaitingDetail, rec.Drift.Hold)
			}
			f.expectRuns("prod", "plan no_changes", "drift planned")
			if name == "outside of the windows" {
				if c := f.asks(holdfast.VerbApply, "prod"); c.Status != holdfast.CommandRefused {
					t.Errorf("it is %s outside of the windows", c.Status)
				}
				return
			}
			if c := f.asks(holdfast.VerbApply, "prod"); c.Status != holdfast.CommandDone {
				t.Fatalf("a person's word is %s: %s", c.Status, c.Reply)
			}
			if run := f.newest("prod"); run.Shown != check.ID || run.Actor != "alice" || run.Reason != holdfast.ReasonApproved {
				t.Errorf("the apply is %+v", run)
			}
			f.execute(good)
			f.pass()
			f.checks(holdfast.Plan{})
			if rec := f.cluster("prod"); rec.Waiting != "" || rec.Drift.Hold != "" || rec.Drift.Status != holdfast.DriftNone {
				t.Errorf("afterwards it waits for %q: %+v", rec.Waiting, rec.Drift)
			}
		})
	}
}

// TestOldFindingIsLookedAtAgain: the world may be another one when a window
// opens.
func TestOldFindingIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, `drift: {schedule: "0 13 * * *", onDrift: apply}`, `apply: {windows: [{kind: allow, schedule: "0 22 * * *", duration: 2h}]}`)
	f.clock.Advance(95 * time.Minute)
	f.pass()
	f.checks(scaled("5"))
	f.clock.Advance(9 * time.Hour)
	f.r.Resume(t.Context())
	f.settle()
	f.expectRuns("prod", "plan no_changes", "drift planned", "drift queued Schedule")
	f.checks(scaled("5"))
	f.expectRuns("prod", "plan no_changes", "drift planned", "drift planned", "apply queued Drifted")
}

func TestPersonsWordAboutDrift(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before func(*fleet)
		ask    func(*fleet) holdfast.Command
		want   string // of the newest run; or what the refusal says
	}{
		"apply what the check found": {func(*fleet) {}, func(f *fleet) holdfast.Command { return f.asks(holdfast.VerbApply, "prod") }, "apply queued Approved"},
		"by the check's name": {func(*fleet) {}, func(f *fleet) holdfast.Command {
			return f.ofRun("alice", holdfast.VerbApply, f.newest("prod"))
		}, "apply queued Approved"},
		"approve": {func(*fleet) {}, func(f *fleet) holdfast.Command { return f.asks(holdfast.VerbApprove, "prod") }, "apply queued Approved"},
		"a later plan": {func(f *fleet) {
			f.asks(holdfast.VerbPlan, "prod")
			f.look()
			f.execute(planned)
		}, func(f *fleet) holdfast.Command { return f.asks(holdfast.VerbApply, "prod") }, "apply queued Approved"},
		"an older check": {func(f *fleet) { f.drift(scaled("7")) }, func(f *fleet) holdfast.Command {
			all, err := f.store.Runs(f.t.Context(), holdfast.RunFilter{Cluster: "prod"})
			f.must(err)
			return f.ofRun("alice", holdfast.VerbApply, all[1])
		}, "there is a newer plan"},
		"suspended": {func(f *fleet) { f.suspend("prod", true, "alice", ""); f.settle() }, func(f *fleet) holdfast.Command {
			return f.asks(holdfast.VerbApply, "prod")
		}, "suspended"},
		"it is gone": {func(f *fleet) { f.drift(holdfast.Plan{}) }, func(f *fleet) holdfast.Command {
			return f.asks(holdfast.VerbApply, "prod")
		}, "up to date"},
		"asked for twice": {func(f *fleet) { f.asks(holdfast.VerbApply, "prod") }, func(f *fleet) holdfast.Command {
			return f.asks(holdfast.VerbApply, "prod")
		}, "in progress"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := driftFleet(t, hourly)
			f.drift(scaled("5"))
			tt.before(f)
			c := tt.ask(f)
			if c.Status == holdfast.CommandRefused || len(c.UpToDate) > 0 {
				if !strings.Contains(c.Reply, tt.want) {
					t.Errorf("it is %s: %s; want %q", c.Status, c.Reply, tt.want)
				}
				return
			}
			run := f.newest("prod")
			if got := strings.Join([]string{string(run.Kind), string(run.Status), string(run.Reason)}, " "); got != tt.want || run.Actor != "alice" {
				t.Errorf("the newest run is %q by %q, want %q", got, run.Actor, tt.want)
			}
			f.look()
			if after := f.newest("prod"); after.Status != run.Status {
				t.Errorf("another look makes it %s (%s)", after.Status, after.Reason)
			}
		})
	}
}

// TestSettingsAreRead: settings that change have their effect on what was found.
func TestSettingsAreRead(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.drift(scaled("5"))
	f.repo.Commit(master, "revert drift", map[string]string{"clusters/prod.yaml": document("prod", reverted)})
	f.look()
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply queued Drifted")
	f.repo.Commit(master, "or rather not", map[string]string{"clusters/prod.yaml": document("prod", hourly)})
	f.look()
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply canceled UpToDate")
	f.repo.Commit(master, "after all", map[string]string{"clusters/prod.yaml": document("prod", reverted)})
	f.look()
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply canceled UpToDate", "apply queued Drifted")
}

// TestRevertSurvivesACrash: between the queueing of an apply and the record that
// says so, nothing is queued twice.
func TestRevertSurvivesACrash(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, reverted)
	f.drift(scaled("5"))
	rec := f.cluster("prod")
	rec.Drift.Revert, rec.Drift.Hold = "", ""
	_, err := f.store.SaveCluster(t.Context(), rec)
	f.must(err)
	f.restart()
	f.look()
	f.r.Resume(t.Context())
	f.settle()
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply queued Drifted")
	apply := f.execute(func(a protocol.Assignment) protocol.Result { r := failing(a); r.Applying = false; return r })
	rec = f.cluster("prod")
	rec.Drift.Revert = ""
	_, err = f.store.SaveCluster(t.Context(), rec)
	f.must(err)
	f.restart()
	f.look()
	f.r.Resume(t.Context())
	f.settle()
	f.expectRuns("prod", "plan no_changes", "drift planned", "apply errored EngineFailed")
	if got := f.cluster("prod").Drift.Revert; got != apply.ID {
		t.Errorf("the revert is %q", got)
	}
}

// TestAMergeComesBeforeARevert: what Git says is not reverted.
func TestAMergeComesBeforeARevert(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, reverted)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.drift(scaled("5"))
	f.expectRuns("prod", "plan no_changes", "plan planned", "drift planned", "apply queued Drifted")
	f.merge(1, byMerge)
	f.expectRuns("prod", "plan no_changes", "plan planned", "drift planned", "apply canceled Superseded", "apply queued Merged")
}

// TestReplicasRevertDriftOnce: what two of them decide at the same time is done
// once.
func TestReplicasRevertDriftOnce(t *testing.T) {
	t.Parallel()
	for range 5 {
		f := driftFleet(t, hourly)
		f.drift(scaled("5"))
		f.repo.Commit(master, "revert drift", map[string]string{"clusters/prod.yaml": document("prod", reverted)})
		f.must(f.r.TakeIn(t.Context(), infra, 0))
		replicas := []*reconciler.Reconciler{f.r}
		for _, name := range []string{"two", "three"} {
			f.restart(func(o *reconciler.Options) { o.Replica.Identity = name })
			f.must(f.r.TakeIn(t.Context(), infra, 0))
			replicas = append(replicas, f.r)
		}
		var g sync.WaitGroup
		for _, r := range replicas {
			g.Go(func() {
				_, err := r.Reconciled(t.Context(), holdfast.Request{Cluster: "prod"})
				if err != nil && !errors.Is(err, holdfast.ErrConflict) {
					t.Error(err)
				}
			})
		}
		g.Wait()
		f.expectRuns("prod", "plan no_changes", "drift planned", "apply queued Drifted")
	}
}
