package decision_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
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
		if got := decision.DriftDue(checked(rec), rec, "").Sub(noon); got != want {
			t.Errorf("after %d failures it is due after %s, want %s", failures, got, want)
		}
	}
	rec.Drift.Failures = 60
	if got := decision.DriftDue(checked(rec), rec, "").Sub(noon); got < 16*time.Hour || got > 17*time.Hour {
		t.Errorf("after many failures it is due after %s, want as scheduled", got)
	}
	rec.Desired.Document.Drift.Schedule = ""
	if got := decision.DriftDue(checked(rec), rec, ""); !got.IsZero() {
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
		"gone":                {func(r *holdfast.ClusterRecord) { r.Deletion = &holdfast.Deletion{} }, ""},
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
			if due := decision.DriftDue(checked(rec), rec, ""); due.Day() == 2 {
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

// checked is when a cluster was applied or checked last: now, by a clock that was never
// wrong.
func checked(rec holdfast.ClusterRecord) time.Time {
	if rec.Applied.At.After(rec.Drift.CheckedAt) {
		return rec.Applied.At
	}
	return rec.Drift.CheckedAt
}

// A wait is over when its time has passed, and if it has begun at a time that has not come
// yet, by a clock that was set back since.
func TestLeft(t *testing.T) {
	t.Parallel()
	for since, want := range map[time.Duration]time.Duration{
		0: time.Minute, -10 * time.Second: 50 * time.Second, -2 * time.Minute: -time.Minute,
		3 * time.Second: 63 * time.Second, 10 * time.Minute: 0, 48 * time.Hour: 0,
	} {
		if got := decision.Left(noon, noon.Add(since), time.Minute); got != want {
			t.Errorf("Left() of a wait that has begun at %s = %s, want %s", since, got, want)
		}
	}
}
