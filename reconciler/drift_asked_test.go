package reconciler_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

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
		reason holdfast.Reason
	}{
		"never applied": {func(f *fleet) {
			f.repo.Commit(master, "one more", map[string]string{"clusters/new.yaml": document("new"), "infra/new/main.tf": module("one")})
			f.look()
		}, "never applied", holdfast.ReasonNeverApplied},
		"suspended": {func(f *fleet) { f.suspend("new", true, "alice", "") }, "suspended", holdfast.ReasonSuspended},
		"project suspended": {func(f *fleet) {
			f.must(f.r.SuspendAll(f.t.Context(), holdfast.Suspension{Project: "p", By: "alice"}, true))
		}, "suspended (project)", holdfast.ReasonSuspended},
		"all suspended": {func(f *fleet) { f.must(f.r.SuspendAll(f.t.Context(), holdfast.Suspension{By: "alice"}, true)) }, "suspended (fleet)", holdfast.ReasonSuspended},
		"an apply is queued": {func(f *fleet) {
			f.open(1, map[string]string{"infra/new/main.tf": module("two")})
			f.executeAll(good)
			f.merge(1, byMerge)
		}, "is queued", holdfast.ReasonInProgress},
		"an apply has failed in the middle": {func(f *fleet) {
			f.open(1, map[string]string{"infra/new/main.tf": module("two")})
			f.executeAll(good)
			f.merge(1, byMerge)
			f.execute(failing)
			f.executeAll(good)
		}, "failed partway", holdfast.ReasonApplyFailed},
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
			var refused *holdfast.RefusedError
			if !errors.As(err, &refused) || refused.Reason != tt.reason {
				t.Errorf("it is %v, want the reason %s", err, tt.reason)
			}
		})
	}
}
