package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// TestApplyOutsideOfTheWindow: who waits in the queue until the window has closed
// waits for the next one.
func TestApplyOutsideOfTheWindow(t *testing.T) {
	t.Parallel()
	const window = `apply: {windows: [{kind: allow, schedule: "0 13 * * *", duration: 2h}]}`
	t.Run("a revert", func(t *testing.T) {
		t.Parallel()
		f := driftFleet(t, reverted, window)
		f.drift(scaled("5")) // at 13:07
		apply := f.newest("prod")
		if apply.Kind != holdfast.RunApply {
			t.Fatalf("%s", strings.Join(f.runs("prod"), ", "))
		}
		f.clock.Advance(3 * time.Hour)
		if a := f.claim(); a.Kind.Writes() {
			t.Fatal("it is applied outside of the window")
		}
		f.settle()
		if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonWindowClosed {
			t.Errorf("it waits for %q", rec.Waiting)
		} else if !strings.HasPrefix(rec.WaitingDetail, "they are closed until 2") || !strings.HasSuffix(rec.WaitingDetail, " 13:00 UTC") {
			t.Errorf("it waits as %q, want until when", rec.WaitingDetail)
		}
		report, err := f.r.Drift(t.Context(), "prod")
		if err != nil || !strings.HasPrefix(report.Windows, "closed until 2") || !strings.HasSuffix(report.Windows, " 13:00 UTC") {
			t.Errorf("the report on drift says %q, %v", report.Windows, err)
		}
		f.clock.Advance(21 * time.Hour)
		f.look()
		f.r.Resume(t.Context())
		f.settle()
		f.checks(scaled("5")) // that was long ago: it is looked at again first
		if run := f.newest("prod"); run.Kind != holdfast.RunApply || run.Status != holdfast.RunQueued {
			t.Errorf("in the next window: %s", strings.Join(f.runs("prod"), ", "))
		}
	})
	t.Run("a merge", func(t *testing.T) {
		t.Parallel()
		f := driftFleet(t, window)
		f.clock.Advance(time.Hour + time.Minute)
		f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
		f.executeAll(good)
		f.merge(1, byMerge)
		if run := f.newest("prod"); run.Kind != holdfast.RunApply || run.Status != holdfast.RunQueued {
			t.Fatalf("%s", strings.Join(f.runs("prod"), ", "))
		}
		f.clock.Advance(3 * time.Hour)
		if a := f.claim(); a.Kind.Writes() {
			t.Fatal("it is applied outside of the window")
		}
		f.settle()
		if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonWindowClosed {
			t.Errorf("it waits for %q", rec.Waiting)
		}
		f.clock.Advance(21 * time.Hour)
		f.look()
		f.r.Resume(t.Context())
		f.settle()
		if run := f.execute(good); run.Kind != holdfast.RunApply || run.Status != holdfast.RunApplied || len(run.Reviews) != 1 {
			t.Errorf("in the next window: %s", strings.Join(f.runs("prod"), ", "))
		}
	})
}

// TestOldRevertIsLookedAtAgain: a revert that has waited in the queue for longer
// than a check is believed in gives way to another check.
func TestOldRevertIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, reverted)
	f.drift(scaled("5"))
	f.clock.Advance(2 * time.Hour)
	if a := f.claim(); a.Kind.Writes() {
		t.Fatal("what was found two hours ago is reverted by itself")
	}
	f.settle()
	check := f.checks(scaled("7"))
	if run := f.newest("prod"); run.Kind != holdfast.RunApply || run.Shown != check.ID {
		t.Errorf("after another check: %s", strings.Join(f.runs("prod"), ", "))
	}
}
