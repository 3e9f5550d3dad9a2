package rescue

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// TestDeadHolder: of runs that died one soon after the other, the one in whose time a
// lock was made has left it, whichever is looked at first.
func TestDeadHolder(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(1_000_000+int64(seconds), 0) }
	died := func(id string, from, to int) holdfast.Run {
		return holdfast.Run{ID: id, Status: holdfast.RunInterrupted, StartedAt: at(from), FinishedAt: at(to)}
	}
	runs := []holdfast.Run{
		died("third", 60, 80),
		{ID: "well", Status: holdfast.RunApplied, StartedAt: at(41), FinishedAt: at(59)},
		died("second", 30, 40),
		died("first", 0, 20),
	}
	for made, want := range map[int]string{
		-61: "", -5: "first", 0: "first", 10: "first", 20: "first", 24: "first", 26: "second", 35: "second", 45: "second", 55: "third", 70: "third",
		139: "third", 141: "",
	} {
		if got := deadHolder(sighting{BackendLock: holdfast.BackendLock{ID: "l", Created: at(made)}}, runs); got != want {
			t.Errorf("of a lock made at %d: %q, want %q", made, got, want)
		}
	}
	away := holdfast.Run{ID: "away", Status: holdfast.RunErrored, StartedAt: at(200), FinishedAt: at(210)}
	for cause, want := range map[holdfast.Reason]string{
		holdfast.CauseStateBackend: "away", holdfast.CauseStateUnsaved: "away", holdfast.CauseStateLocked: "", holdfast.CauseEngineFailed: "",
	} {
		away.Failure = &holdfast.Failure{Cause: cause}
		if got := deadHolder(sighting{BackendLock: holdfast.BackendLock{ID: "l", Created: at(205)}}, []holdfast.Run{away}); got != want {
			t.Errorf("after a run that failed for %s: %q, want %q", cause, got, want)
		}
	}
	if got := deadHolder(sighting{BackendLock: holdfast.BackendLock{ID: "l"}}, runs); got != "" {
		t.Errorf("of a lock without a time: %q", got)
	}
}
