package reconciler_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// says pushes another document of prod to the tracked branch.
func (f *fleet) says(spec ...string) {
	f.t.Helper()
	f.repo.Commit(master, "another policy", map[string]string{"clusters/prod.yaml": document("prod", spec...)})
	f.look()
}

// TestRevertThatWaitsIsTakenBack: what Git says of drift counts for an apply that
// was queued and has not begun, too.
func TestRevertThatWaitsIsTakenBack(t *testing.T) {
	t.Parallel()
	hiding := func(attribute string) string {
		return `drift: {schedule: "0 * * * *", onDrift: apply, ignore: [{address: "**", attribute: ` + attribute + `, reason: scaler}]}`
	}
	both := drifted(changes{change(group, holdfast.ActionUpdate, "size 3 5", "zone a b")}, change(group, holdfast.ActionUpdate, "size 5 3", "zone b a"))
	tests := map[string]struct {
		plan holdfast.Plan
		spec []string
		hold string
	}{
		"a rule hides it all":    {scaled("5"), []string{hiding("size")}, ""},
		"a rule hides a part":    {both, []string{hiding("size")}, "ignore rule"},
		"an approval is needed":  {scaled("5"), []string{reverted, "apply: {requires: [approved]}"}, "approval"},
		"it is to be reported":   {scaled("5"), []string{hourly}, ""},
		"nobody is to be told":   {scaled("5"), []string{`drift: {schedule: "0 * * * *", onDrift: ignore}`}, ""},
		"another rule was added": {scaled("5"), []string{hiding("zone")}, "continues"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := driftFleet(t, reverted)
			f.drift(tt.plan)
			apply := f.newest("prod")
			f.says(tt.spec...)
			run, err := f.store.Run(t.Context(), apply.ID)
			f.must(err)
			rec := f.cluster("prod")
			if tt.hold == "continues" {
				if run.Status != holdfast.RunQueued {
					t.Errorf("the apply is %s (%s)", run.Status, run.Reason)
				}
				return
			}
			if run.Status != holdfast.RunCanceled {
				t.Errorf("the apply is %s, want canceled: the record says %+v", run.Status, rec.Drift)
			}
			if a := f.claim(); a.Run != "" {
				t.Errorf("an agent gets a %s", a.Kind)
			}
			if (rec.Drift.Hold == "") != (tt.hold == "") || !strings.Contains(rec.Drift.Hold, tt.hold) {
				t.Errorf("it is held as %q, want %q", rec.Drift.Hold, tt.hold)
			}
			f.says(reverted) // and back: it was given up by us, not by a person
			// A condition stays until an apply has met it.
			if tt.hold == "approval" {
				if rec := f.cluster("prod"); !strings.Contains(rec.Drift.Hold, "the last applied version does") || f.claim().Run != "" {
					t.Errorf("without the condition it is held as %q: %s", rec.Drift.Hold, strings.Join(f.runs("prod"), ", "))
				}
				return
			}
			if run := f.newest("prod"); run.Kind != holdfast.RunApply || run.Status != holdfast.RunQueued {
				t.Errorf("after it is as it was: %s", strings.Join(f.runs("prod"), ", "))
			}
		})
	}
}

// TestCheckWithoutAPlan: a plan that nobody can read fails the check once, whatever the
// rules say.
func TestCheckWithoutAPlan(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, `drift: {schedule: "0 * * * *", ignore: [{address: "**", attribute: size, reason: scaler}]}`)
	f.later()
	a := f.claim()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f.must(f.r.Dispatcher().Finish(ctx, a.AttemptRef, protocol.Result{Status: holdfast.RunPlanned, Fence: a.Fence}))
	for range 20 {
		_, err := f.r.Reconciled(ctx, holdfast.Request{Cluster: "prod"})
		f.must(err)
	}
	if d := f.cluster("prod").Drift; d.Status != holdfast.DriftFailed || d.Failures != 1 {
		t.Errorf("one check without a plan is %+v", d)
	}
}

// TestUnreadablePlanHoldsNothingUp: what a check has found and nobody can read
// keeps neither a merge nor the words about other clusters waiting.
func TestUnreadablePlanHoldsNothingUp(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.later()
	a := f.claim()
	f.must(f.store.PutArtefact(t.Context(), a.AttemptRef, protocol.ArtefactDocument, strings.NewReader("no plan")))
	f.must(f.r.Dispatcher().Finish(t.Context(), a.AttemptRef, protocol.Result{Status: holdfast.RunPlanned, Fence: a.Fence, PlanDigest: "sha256:1"}))
	f.must(f.r.Settle(t.Context()))
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	if d := f.cluster("prod").Drift; d.Status != holdfast.DriftFailed || !strings.Contains(d.Detail, "the plan cannot be used") {
		t.Errorf("the record says %+v", d)
	}
	if run := f.execute(good); run.Kind != holdfast.RunApply {
		t.Errorf("a merge is followed by a %s", run.Kind)
	}
}

// TestClockThatWasWrong: what was recorded in a time that has not come yet is not
// believed in for long.
func TestClockThatWasWrong(t *testing.T) {
	t.Parallel()
	const days = 40 * 24 * time.Hour
	f := driftFleet(t, reverted, `apply: {windows: [{kind: allow, schedule: "0 22 * * *", duration: 2h}]}`)
	f.clock.Advance(days)
	f.drift(scaled("5")) // outside of the windows
	f.clock.Advance(-days - 2*time.Hour)
	f.restart()
	f.look()
	if due, now := f.cluster("prod").Drift.Due, f.clock.Now(); due.Sub(now) > 2*time.Hour {
		t.Errorf("now it is %s, and the next check is at %s", now, due)
	}
	f.clock.Advance(10 * time.Hour) // within the windows
	f.look()
	f.pass()
	if run := f.newest("prod"); run.Kind != holdfast.RunDrift || run.Status != holdfast.RunQueued {
		t.Errorf("what was found nobody knows when is reverted: %s", strings.Join(f.runs("prod"), ", "))
	}
}

// TestBrokenCloudDoesNotHideDriftOfOthers: checks of a cloud that has a break do
// not fill the queue.
func TestBrokenCloudDoesNotHideDriftOfOthers(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for _, name := range []string{"a1", "a2", "a3", "a4", "a5", "a6", "z1", "z2"} {
		provider := map[byte]string{'a': "aws", 'z': "azure"}[name[0]]
		files["clusters/"+name+".yaml"] = document(name, hourly, "provider: "+provider)
		files["infra/"+name+"/main.tf"] = module("one")
	}
	f := newFleet(t, files, func(o *reconciler.Options) { o.Limits.Drift = 2; o.Limits.Runs = 20 })
	f.adopt()
	f.clock.Advance(59 * time.Minute)
	f.clock.Advance(8 * time.Minute)
	f.pass() // fills the queue
	for _, name := range []string{"a1", "a2", "a3"} {
		f.r.Dispatcher().ObserveProvider(t.Context(), holdfast.Run{
			ID: "run-" + name, Cluster: name, Status: holdfast.RunErrored,
			RunSpec:    holdfast.RunSpec{Document: holdfast.Cluster{Provider: "aws"}},
			RunOutcome: holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "plan", Cause: "ServiceUnavailable"}},
		})
	}
	var checked []string
	for range 4 {
		f.pass()
		a := f.claim()
		if a.Run == "" {
			break
		}
		f.finish(a, protocol.Result{Status: holdfast.RunNoChanges})
		checked = append(checked, a.Cluster)
	}
	slices.Sort(checked)
	if !slices.Equal(checked, []string{"z1", "z2"}) {
		t.Errorf("while aws has a break %v are checked", checked)
	}
}
