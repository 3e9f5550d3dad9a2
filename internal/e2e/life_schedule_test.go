package e2e_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A schedule checks without being asked, and continues after a restart.
func TestDriftIsCheckedOnSchedule(t *testing.T) {
	t.Parallel()
	w := newFleet(t, settings{"drift.schedule": "* * * * *"})
	w.start()
	fleet := w.fleet()
	fleet.bring(join(w.keeper("alpha", "a=one"), w.keeper("beta", "b=two", `drift: {schedule: "off"}`)))
	w.take("alpha", "a")
	if due := w.record("alpha").Drift.Due; due.IsZero() {
		t.Error("alpha is never due")
	}
	if due := w.record("beta").Drift.Due; !due.IsZero() {
		t.Errorf("beta is due at %s, want never", due)
	}
	w.do("get drift --all", "not checked") // beta, whatever is known of alpha by now
	w.stop()
	w.start()
	w.untilLate("alpha is checked", func() (bool, string) {
		drift := w.record("alpha").Drift
		return drift.Status == holdfast.DriftFound, string(drift.Status)
	})
	if run := w.newest("alpha", holdfast.RunDrift); run.Actor != "" {
		t.Errorf("run %s was asked for by %q", run.ID, run.Actor)
	}
	fleet.untilIssue("drift alpha", false, `local_file.node["a"]`)
	if run := w.newest("beta", holdfast.RunDrift); run.ID != "" {
		t.Errorf("beta was checked by %s", run.ID)
	}
}
