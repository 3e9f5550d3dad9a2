package reconciler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestCheckOfAMovedBaseIsDiscarded: what was found is of something that is no longer
// applied.
func TestCheckOfAMovedBaseIsDiscarded(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.later()
	check := f.claim()
	f.merge(1, byMerge)
	// It ends as if it had not heard that it should stop, and the apply follows
	// before anybody looks at it.
	f.restart()
	result := protocol.Result{Status: holdfast.RunPlanned, Fence: check.Fence}
	f.must(f.store.PutArtefact(t.Context(), check.AttemptRef, protocol.ArtefactPlan, strings.NewReader("{}")))
	f.must(f.r.Dispatcher().Finish(t.Context(), check.AttemptRef, f.left(check, result)))
	f.restart()
	f.clock.Advance(time.Minute) // an apply waits no longer for its repository to be read
	f.executeAll(good)
	f.r.Resume(t.Context())
	f.settle()
	rec := f.cluster("prod")
	if rec.Applied.Run != f.newest("prod").ID || rec.Drift.Run != "" || rec.Drift.Status != holdfast.DriftUnchecked {
		t.Errorf("the record says %+v after %s", rec.Drift, strings.Join(f.runs("prod"), ", "))
	}
	if rec.Drift.Due.IsZero() {
		t.Error("it is not due any more")
	}
}

func TestDriftIsRecorded(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.later()
	run := f.checks(scaled("5"))
	d := f.cluster("prod").Drift
	if d.Status != holdfast.DriftFound || d.Counts != (holdfast.DriftCounts{Changed: 1}) || d.Run != run.ID ||
		!d.Since.Equal(run.FinishedAt) || d.Fingerprint == "" || !slices.Equal(d.Causes, []string{"aws_eks_node_group size"}) {
		t.Fatalf("the record says %+v", d)
	}
	since, print := d.Since, d.Fingerprint

	f.later()
	for range 2 { // each is retried automatically a few times, that is another test
		f.fails()
		f.clock.Advance(24 * time.Hour)
		f.pass()
	}
	d = f.cluster("prod").Drift
	if d.Status != holdfast.DriftFailed || d.Failures != 2 || d.Detail != "no such instance type" || d.Fingerprint != print || !d.Since.Equal(since) {
		t.Errorf("after failed checks: %+v", d)
	}
	f.checks(scaled("5"))
	d = f.cluster("prod").Drift
	if d.Status != holdfast.DriftFound || d.Failures != 0 || d.Detail != "" || d.Fingerprint != print || !d.Since.Equal(since) {
		t.Errorf("after a good one: %+v, since %s", d, since)
	}
	f.later()
	run = f.checks(holdfast.Plan{})
	d = f.cluster("prod").Drift
	if d.Status != holdfast.DriftNone || d.Fingerprint != "" || !d.Since.Equal(run.FinishedAt) || d.Counts.Drifted() != 0 {
		t.Errorf("when it is gone: %+v", d)
	}
}

func TestCancelledCheckIsNotMadeAtOnceAgain(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.later()
	_, err := f.r.Command(t.Context(), holdfast.Command{Verb: holdfast.VerbCancel, Clusters: []string{"prod"}, Author: "alice", Trusted: true})
	f.must(err)
	f.settle()
	f.pass()
	f.expectRuns("prod", "plan no_changes", "drift canceled Canceled")
	if d := f.cluster("prod").Drift; d.Status != holdfast.DriftFailed || d.Detail != "it was canceled" {
		t.Errorf("the record says %+v", d)
	}
	f.clock.Advance(11 * time.Minute)
	f.pass()
	f.checks(holdfast.Plan{})
}

// TestUnappliedChangeIsNotDrift: the check is of what was applied, and the report
// keeps what waits apart.
func TestUnappliedChangeIsNotDrift(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.repo.Commit(master, "pushed", map[string]string{"infra/prod/main.tf": module("two")})
	f.look()
	f.executeAll(good)
	f.later()
	check := f.newest("prod")
	if rec := f.cluster("prod"); check.SourceDigest != rec.Applied.SourceDigest || check.SourceDigest == rec.Desired.SourceDigest {
		t.Fatalf("the check is of %s", check.SourceDigest)
	}
	f.checks(scaled("5"))
	report, err := f.r.Drift(t.Context(), "prod")
	f.must(err)
	if !report.NotApplied || report.Waiting != holdfast.ReasonUnreviewed || report.State.Counts.Changed != 1 {
		t.Errorf("the report is %+v", report)
	}
}

// TestRulesAreAppliedToWhatWasFound: a rule that is added hides at once, and one
// that is taken away or has expired tells again.
func TestRulesAreAppliedToWhatWasFound(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.later()
	run := f.checks(scaled("5"))
	rule := `drift: {schedule: "0 * * * *", ignore: [{address: "aws_eks_node_group.*", reason: "autoscaler", expires: 2026-03-01T15:30:00Z}]}`
	f.repo.Commit(master, "ignore it", map[string]string{"clusters/prod.yaml": document("prod", rule)})
	f.look()
	want := holdfast.DriftState{
		Status: holdfast.DriftNone, Run: run.ID, Applied: f.cluster("prod").Applied.Run, Hides: true,
		Counts: holdfast.DriftCounts{Ignored: 1},
	}
	got := f.cluster("prod").Drift
	trimmed := got
	trimmed.CheckedAt, trimmed.Due, trimmed.Since, trimmed.Rules, trimmed.Causes = time.Time{}, time.Time{}, time.Time{}, "", nil
	if diff := cmp.Diff(want, trimmed, cmp.Comparer(func(a, b holdfast.Digest) bool { return a == b })); diff != "" || got.Rules == "" {
		t.Fatalf("with the rule (-want +got):\n%s", diff)
	}
	report, err := f.r.Drift(t.Context(), "prod")
	f.must(err)
	if len(report.Items) != 1 || report.Items[0].Ignored != "autoscaler" {
		t.Errorf("it is not listed: %+v", report.Items)
	}
	f.later()
	f.checks(scaled("5"))
	if d := f.cluster("prod").Drift; d.Status != holdfast.DriftNone || !d.Due.Before(noon.Add(3*time.Hour+36*time.Minute)) {
		t.Errorf("the next check is at %s", d.Due)
	}
	f.later()
	f.checks(scaled("5")) // at 15:20
	f.clock.Advance(12 * time.Minute)
	f.pass() // for the expiry: what was found is seen as it is
	f.pass()
	f.expectRuns("prod", "plan no_changes", "drift planned", "drift planned", "drift planned")
	if d := f.cluster("prod").Drift; d.Status != holdfast.DriftFound || d.Counts.Changed != 1 || d.Counts.Ignored != 0 || d.Rules != "" {
		t.Errorf("after the rule has expired: %+v at %s", d, f.clock.Now())
	}
	f.expectRuns("preprod", "plan no_changes")
}

// TestEndedCheckIsNotRepeated: a pass that comes before the record says what a
// check has found makes no other one.
func TestEndedCheckIsNotRepeated(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.later()
	a := f.claim()
	f.must(f.store.PutArtefact(t.Context(), a.AttemptRef, protocol.ArtefactPlan, strings.NewReader("{}")))
	f.must(f.r.Dispatcher().Finish(t.Context(), a.AttemptRef, f.left(a, protocol.Result{Status: holdfast.RunNoChanges, Fence: a.Fence})))
	_, err := f.r.DriftPass(t.Context())
	f.must(err)
	f.restart()
	f.clock.Advance(11 * time.Minute) // whoever was to record it has died
	_, err = f.r.DriftPass(t.Context())
	f.must(err)
	f.expectRuns("prod", "plan no_changes", "drift no_changes")
	f.settle() // it has asked for what was forgotten
	if d := f.cluster("prod").Drift; d.Run != a.Run || d.Due.Before(noon.Add(2*time.Hour)) {
		t.Errorf("the record says %+v", d)
	}
}
