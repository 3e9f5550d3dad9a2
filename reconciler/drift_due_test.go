package reconciler_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

func TestFailedCheckIsRetriedSooner(t *testing.T) {
	t.Parallel()
	rec := holdfast.ClusterRecord{
		Name: "prod", Phase: holdfast.PhaseActive,
		Desired: holdfast.Desired{Document: holdfast.Cluster{Drift: holdfast.DriftSettings{Schedule: "0 4 * * *"}}},
		Applied: holdfast.Applied{Run: "run-1", At: noon.Add(-time.Hour)},
		Drift:   holdfast.DriftState{Status: holdfast.DriftFailed, Applied: "run-1", CheckedAt: noon},
	}
	for failures, want := range map[int]time.Duration{1: 10 * time.Minute, 2: 20 * time.Minute, 4: 80 * time.Minute} {
		rec.Drift.Failures = failures
		if got := reconciler.DriftDue(rec, "").Sub(noon); got != want {
			t.Errorf("after %d failures it is due after %s, want %s", failures, got, want)
		}
	}
	rec.Drift.Failures = 60
	if got := reconciler.DriftDue(rec, "").Sub(noon); got < 16*time.Hour || got > 17*time.Hour {
		t.Errorf("after many failures it is due after %s, want as scheduled", got)
	}
	rec.Desired.Document.Drift.Schedule = ""
	if got := reconciler.DriftDue(rec, ""); !got.IsZero() {
		t.Errorf("what somebody asked for once is due at %s", got)
	}
}

func TestDriftDue(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		with func(*holdfast.ClusterRecord)
		want string // a time of the day; "" never; "later" on schedule
	}{
		"on schedule":         {func(*holdfast.ClusterRecord) {}, "later"},
		"never applied":       {func(r *holdfast.ClusterRecord) { r.Applied = holdfast.Applied{} }, ""},
		"gone":                {func(r *holdfast.ClusterRecord) { r.Ending = &holdfast.Ending{} }, ""},
		"being deleted":       {func(r *holdfast.ClusterRecord) { r.Desired.Removed = true }, ""},
		"suspended":           {func(r *holdfast.ClusterRecord) { r.Suspended = true }, ""},
		"a failed apply":      {func(r *holdfast.ClusterRecord) { r.Phase = holdfast.PhaseFailed }, ""},
		"updating":            {func(r *holdfast.ClusterRecord) { r.Phase = holdfast.PhaseUpdating }, "later"},
		"applied after drift": {func(r *holdfast.ClusterRecord) { r.Drift.Fingerprint, r.Drift.Applied = "sha256:x", "run-0" }, "11:00"},
		"drift, and no apply": {func(r *holdfast.ClusterRecord) { r.Drift.Fingerprint = "sha256:x" }, "later"},
		"off":                 {func(r *holdfast.ClusterRecord) { r.Desired.Document.Drift.Schedule = "off" }, ""},
		"off, and applied since": {func(r *holdfast.ClusterRecord) {
			r.Desired.Document.Drift.Schedule, r.Drift.Fingerprint, r.Drift.Applied = "off", "sha256:x", "run-0"
		}, "11:00"},
		"at fault, as applied": {func(r *holdfast.ClusterRecord) {
			r.Desired.Document.Drift.Schedule, r.Desired.Faults = "", holdfast.Faults{{Message: "broken"}}
		}, "later"},
		"a rule expires first": {func(r *holdfast.ClusterRecord) {
			r.Drift.Counts.Ignored = 1
			r.Desired.Document.Drift.Ignore = []holdfast.DriftRule{{Expires: noon.Add(-time.Hour)}, {Expires: noon.Add(time.Hour)}}
		}, "13:00"},
		"a rule expires that hid nothing": {func(r *holdfast.ClusterRecord) {
			r.Desired.Document.Drift.Ignore = []holdfast.DriftRule{{Expires: noon.Add(time.Hour)}}
		}, "later"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := holdfast.Cluster{Drift: holdfast.DriftSettings{Schedule: "0 4 * * *"}}
			rec := holdfast.ClusterRecord{
				Name: "prod", Phase: holdfast.PhaseActive,
				Desired: holdfast.Desired{Document: doc}, Applied: holdfast.Applied{Run: "run-1", At: noon.Add(-time.Hour), Document: doc},
				Drift: holdfast.DriftState{Status: holdfast.DriftNone, Applied: "run-1", CheckedAt: noon},
			}
			tt.with(&rec)
			got := ""
			if due := reconciler.DriftDue(rec, ""); due.Day() == 2 {
				got = "later"
			} else if !due.IsZero() {
				got = due.Format("15:04")
			}
			if got != tt.want {
				t.Errorf("it is due %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCheckDriftWhenAsked(t *testing.T) {
	t.Parallel()
	f := driftFleet(t)
	run, err := f.r.CheckDrift(t.Context(), "prod", "alice")
	f.must(err)
	if run.Kind != holdfast.RunDrift || run.Reason != holdfast.ReasonRequested || run.Actor != "alice" {
		t.Errorf("the run is %+v", run)
	}
	again, err := f.r.CheckDrift(t.Context(), "prod", "bob")
	f.must(err)
	if again.ID != run.ID {
		t.Errorf("asked twice, there are two: %s and %s", run.ID, again.ID)
	}
	f.checks(scaled("5"))
	report, err := f.r.Drift(t.Context(), "prod")
	f.must(err)
	if report.State.Status != holdfast.DriftFound || len(report.Items) != 1 || report.Items[0].Address != group || report.Revision == "" {
		t.Errorf("the report is %+v", report)
	}
	if _, err := f.r.CheckDrift(t.Context(), "nobody", "alice"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("an unknown cluster: %v", err)
	}
}

func TestCheckDriftIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before func(*fleet)
		want   string
	}{
		"never applied": {func(f *fleet) {
			f.repo.Commit(master, "one more", map[string]string{"clusters/new.yaml": document("new"), "infra/new/main.tf": module("one")})
			f.look()
		}, "never applied"},
		"suspended": {func(f *fleet) { f.must(f.r.Suspend(f.t.Context(), "new", true, "alice", "")) }, "suspended"},
		"project suspended": {func(f *fleet) {
			f.must(f.r.SuspendAll(f.t.Context(), holdfast.Suspension{Project: "p", By: "alice"}, true))
		}, "suspended (project)"},
		"all suspended": {func(f *fleet) { f.must(f.r.SuspendAll(f.t.Context(), holdfast.Suspension{By: "alice"}, true)) }, "suspended (fleet)"},
		"an apply is queued": {func(f *fleet) {
			f.open(1, map[string]string{"infra/new/main.tf": module("two")})
			f.executeAll(good)
			f.merge(1, byMerge)
		}, "is queued"},
		"an apply has failed in its middle": {func(f *fleet) {
			f.open(1, map[string]string{"infra/new/main.tf": module("two")})
			f.executeAll(good)
			f.merge(1, byMerge)
			f.execute(failing)
			f.executeAll(good)
		}, "failed in its middle"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			if name != "never applied" {
				f.repo.Commit(master, "one more", map[string]string{"clusters/new.yaml": document("new"), "infra/new/main.tf": module("one")})
			}
			f.adopt()
			tt.before(f)
			_, err := f.r.CheckDrift(t.Context(), "new", "alice")
			if !errors.Is(err, holdfast.ErrConflict) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("it is %v, want a conflict that says %q", err, tt.want)
			}
		})
	}
}
