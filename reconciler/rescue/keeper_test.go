package rescue

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// TestAgain: a push is tried again unless the backend has refused the state itself, or a
// person has canceled it; with long pauses where somebody has to do something first.
func TestAgain(t *testing.T) {
	t.Parallel()
	errored := func(cause holdfast.Reason, transient bool) holdfast.Run {
		return holdfast.Run{Status: holdfast.RunErrored, RunOutcome: holdfast.RunOutcome{Failure: &holdfast.Failure{Cause: cause, Transient: transient}}}
	}
	k := New(Options{Delay: time.Second})
	for name, c := range map[string]struct {
		job   holdfast.Run
		pause time.Duration // zero: never
	}{
		"the backend is away":                       {errored(holdfast.CauseStateBackend, true), 4 * time.Second},
		"the backend refuses the credentials":       {errored(holdfast.CauseStateBackend, false), maxDelay},
		"the credentials are missing":               {errored(holdfast.CauseCredentials, false), maxDelay},
		"the bucket is not there":                   {errored(holdfast.CauseNotFound, false), maxDelay},
		"the credentials may not":                   {errored(holdfast.CausePermission, false), maxDelay},
		"the backend has another state":             {errored(holdfast.CauseConflict, false), 0},
		"the engine fails":                          {errored(holdfast.CauseEngineFailed, false), 0},
		"its agent died":                            {holdfast.Run{Status: holdfast.RunInterrupted}, 4 * time.Second},
		"a person has canceled it":                  {holdfast.Run{Status: holdfast.RunCanceled}, 0},
		"it was canceled while the backend refused": {holdfast.Run{Status: holdfast.RunCanceled, RunOutcome: errored(holdfast.CausePermission, false).RunOutcome}, 0},
	} {
		if got := k.again(c.job); got != (c.pause > 0) {
			t.Errorf("%s: again is %v", name, got)
		}
		if got := k.pause(c.job, 2); c.pause > 0 && got != c.pause {
			t.Errorf("%s: the pause is %s, want %s", name, got, c.pause)
		}
	}
}

// Whoever pushes the state of a run hears that others of it were refused.
func TestNotSavedCountsWhatWasRefused(t *testing.T) {
	t.Parallel()
	for earlier, want := range map[int]string{
		0: "run r could not save its state",
		2: "run r could not save its state: this is the newest of 3 that were refused",
	} {
		if got := notSaved(holdfast.UnsavedState{Run: "r", Earlier: earlier}); got != want {
			t.Errorf("with %d before it: %q, want %q", earlier, got, want)
		}
	}
}

// pushes are the runs on record, and a state that can be read.
type pushes struct {
	Store
	runs map[string]holdfast.Run
}

func (p pushes) Run(_ context.Context, id string) (holdfast.Run, error) {
	if run, ok := p.runs[id]; ok {
		return run, nil
	}
	return holdfast.Run{}, holdfast.ErrNotFound
}

func (p pushes) OpenUnsaved(context.Context, holdfast.UnsavedState) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("{}")), nil
}

// A push that has failed is made again after its pause, and at once if it has ended at a time
// that has not come yet: the clock was set back since.
func TestDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]bool{0: false, 3 * time.Second: false, 4 * time.Second: true, -10 * time.Minute: true} {
		job := holdfast.Run{ID: "push", Status: holdfast.RunInterrupted, FinishedAt: now.Add(-after)}
		k := New(Options{
			Store: pushes{runs: map[string]holdfast.Run{job.ID: job}}, Delay: time.Second, Now: func() time.Time { return now },
		})
		if due, err := k.due(t.Context(), holdfast.UnsavedState{Run: "apply", Job: job.ID, Jobs: 2}); due != want || err != nil {
			t.Errorf("%s after a push has failed, another one is due: %t, %v", after, due, err)
		}
	}
}
