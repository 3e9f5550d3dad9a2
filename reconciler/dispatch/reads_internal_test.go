package dispatch

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestAuthorizeReadsNoRecord: each request of an agent is authorized, and what that needs to
// know of a run is not worth decoding it.
func TestAuthorizeReadsNoRecord(t *testing.T) {
	t.Parallel()
	store := newRunningRuns(1)
	d, _ := fleetOf(t, store)
	want := store.runs["run-0"]
	token := d.token(want.Ref())
	got, err := d.Authorize(t.Context(), want.Ref(), token)
	if err != nil || got.AttemptRef != want.Ref() || got.Kind != want.Kind || got.StateLocation != want.StateLocation {
		t.Errorf("Authorize() = %+v, %v", got, err)
	}
	if got, err := d.Authorize(t.Context(), want.Ref(), "another"); !errors.Is(err, holdfast.ErrUnauthorized) || got != (holdfast.RunBrief{}) {
		t.Errorf("Authorize() of another token = %+v, %v", got, err)
	}
	over := want
	over.Status = holdfast.RunQueued
	store.runs[want.ID] = over
	if got, err := d.Authorize(t.Context(), want.Ref(), token); !errors.Is(err, holdfast.ErrFenced) || got.Run != want.ID {
		t.Errorf("Authorize() of an attempt that is over = %+v, %v", got, err)
	}
	over.Status, over.Attempt = holdfast.RunRunning, want.Attempt+1
	store.runs[want.ID] = over
	if _, err := d.Authorize(t.Context(), want.Ref(), token); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("Authorize() of an attempt after which there is another = %v", err)
	}
	over.Attempt, over.Fence = want.Attempt, want.Fence+1_000_000 // the records were put back, and the run was claimed again
	store.runs[want.ID] = over
	if _, err := d.Authorize(t.Context(), want.Ref(), token); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("Authorize() of an attempt of before the restore = %v", err)
	}
	if _, err := d.Authorize(t.Context(), over.Ref(), token); !errors.Is(err, holdfast.ErrUnauthorized) {
		t.Errorf("Authorize() of the attempt of now, with the token of before = %v", err)
	}
	if len(store.read) != 0 {
		t.Errorf("records of %v were read", store.read)
	}
}

// TestFinishReadsItsRunOnce: unless somebody has written the run meanwhile, such as that it
// should stop: then the outcome is of what it is now.
func TestFinishReadsItsRunOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		race  func(run *holdfast.Run)
		reads int
		why   holdfast.Reason
	}{
		"alone":    {nil, 1, ""},
		"canceled": {func(run *holdfast.Run) { run.Cancel = holdfast.ReasonPreempted }, 2, holdfast.ReasonPreempted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newRunningRuns(1)
			store.race = test.race
			d, _ := fleetOf(t, store)
			if err := d.Finish(t.Context(), store.runs["run-0"].Ref(), protocol.Result{Status: holdfast.RunCanceled}); err != nil {
				t.Fatal(err)
			}
			if len(store.read) != test.reads {
				t.Errorf("its record was read %d times, want %d", len(store.read), test.reads)
			}
			if run := store.runs["run-0"]; run.Status == holdfast.RunRunning || run.Reason != test.why || run.Cancel != "" {
				t.Errorf("it ended %s, %q, to be canceled for %q", run.Status, run.Reason, run.Cancel)
			}
		})
	}
}
