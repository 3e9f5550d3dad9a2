package rescue

import (
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
