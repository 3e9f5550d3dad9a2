package rescue

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/statelock"
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
		if got := deadHolder(sighting{BackendLock: statelock.BackendLock{ID: "l", Created: at(made)}}, runs); got != want {
			t.Errorf("of a lock made at %d: %q, want %q", made, got, want)
		}
	}
	failed := func(status holdfast.RunStatus, cause holdfast.Reason, step string, crashed bool) holdfast.Run {
		run := died("away", 200, 210)
		run.Status, run.StateLocation = status, "here"
		run.Failure = &holdfast.Failure{Cause: cause, Step: step, Crashed: crashed}
		return run
	}
	elsewhere := failed(holdfast.RunInterrupted, holdfast.ReasonAgentKilled, "plan", false)
	elsewhere.StateLocation = "elsewhere"
	unlocking := failed(holdfast.RunInterrupted, holdfast.ReasonAgentKilled, "unlock", false)
	unlocking.State = &holdfast.StateJob{Action: holdfast.StateUnlock}
	for name, c := range map[string]struct {
		run  holdfast.Run
		left bool
	}{
		"its backend is away":                    {failed(holdfast.RunErrored, holdfast.CauseStateBackend, "plan", false), true},
		"its state was not saved":                {failed(holdfast.RunErrored, holdfast.CauseStateUnsaved, "apply", false), true},
		"it was refused the lock":                {failed(holdfast.RunErrored, holdfast.CauseStateLocked, "plan", false), false},
		"its engine failed":                      {failed(holdfast.RunErrored, holdfast.CauseEngineFailed, "apply", false), false},
		"its engine crashed":                     {failed(holdfast.RunErrored, holdfast.CauseEngineFailed, "apply", true), true},
		"it was canceled, and ended":             {failed(holdfast.RunCanceled, holdfast.ReasonCanceled, "apply", false), false},
		"it was canceled, and was killed":        {failed(holdfast.RunCanceled, holdfast.ReasonCanceled, "apply", true), true},
		"it was canceled before it was executed": {holdfast.Run{ID: "away", Status: holdfast.RunCanceled, FinishedAt: at(210)}, false},
		"it was superseded, and was killed":      {failed(holdfast.RunCanceled, holdfast.ReasonSuperseded, "plan", true), true},
		"its deadline passed, and it ended":      {failed(holdfast.RunErrored, holdfast.ReasonTimeout, "plan", false), false},
		"its deadline passed, and it was killed": {failed(holdfast.RunErrored, holdfast.ReasonTimeout, "plan", true), true},
		"it was killed in its init":              {failed(holdfast.RunErrored, holdfast.ReasonTimeout, "init", true), false},
		"it was killed while it was read":        {failed(holdfast.RunErrored, holdfast.ReasonTimeout, "show", true), false},
		"its memory ran out":                     {failed(holdfast.RunErrored, holdfast.CauseOutOfMemory, "apply", true), true},
		"a provider's memory ran out":            {failed(holdfast.RunErrored, holdfast.CauseOutOfMemory, "apply", false), false},
		"it had too many processes":              {failed(holdfast.RunErrored, holdfast.CauseTooManyProcesses, "plan", true), true},
		"its agent panicked":                     {failed(holdfast.RunErrored, holdfast.CauseInternal, "prepare", false), true},
		"a push was killed":                      {failed(holdfast.RunCanceled, holdfast.ReasonCanceled, "push", true), true},
		"an unlock was killed":                   {unlocking, false},
		"it has another state":                   {elsewhere, false},
	} {
		lock := sighting{BackendLock: statelock.BackendLock{ID: "l", Created: at(205)}, in: holdfast.Run{RunSpec: holdfast.RunSpec{StateLocation: "here"}}}
		if got := deadHolder(lock, []holdfast.Run{c.run}); (got == "away") != c.left {
			t.Errorf("%s: %q has left the lock, want %v", name, got, c.left)
		}
	}
	if got := deadHolder(sighting{BackendLock: statelock.BackendLock{ID: "l"}}, runs); got != "" {
		t.Errorf("of a lock without a time: %q", got)
	}
}

// TestSightings: a lock that a run came upon is known until a run with the same state has
// got the lock, or has released it. Others say nothing of it.
func TestSightings(t *testing.T) {
	t.Parallel()
	ended := func(status holdfast.RunStatus, step string, cause holdfast.Reason) holdfast.Run {
		run := holdfast.Run{ID: "newer", Kind: holdfast.RunPlan, Status: status}
		run.Attempt, run.StateLocation = 1, "s3:here"
		if step != "" {
			run.Failure = &holdfast.Failure{Step: step, Cause: cause}
		}
		return run
	}
	refused := func(id, location string, pr int) holdfast.Run {
		run := ended(holdfast.RunErrored, "plan", holdfast.CauseStateLocked)
		run.Failure.Detail, run.StateLocation, run.PullRequest.Number = "Lock Info:\n  ID:        "+id+"\n", location, pr
		return run
	}
	unlock := func(status holdfast.RunStatus, id string) holdfast.Run {
		run := ended(status, "", "")
		run.Kind, run.State = holdfast.RunState, &holdfast.StateJob{Action: holdfast.StateUnlock, LockID: id}
		return run
	}
	moved := func(run holdfast.Run) holdfast.Run {
		run.StateLocation = "s3:elsewhere"
		return run
	}
	early := ended(holdfast.RunPlanned, "", "") // it was made later, and executed before
	early.HeartbeatAt = early.HeartbeatAt.Add(-time.Second)
	elsewhere := moved(ended(holdfast.RunPlanned, "", ""))
	waits := ended(holdfast.RunCanceled, "", "")
	waits.Attempt = 0
	for name, c := range map[string]struct {
		newer []holdfast.Run // than the one that was refused the lock
		want  string
	}{
		"nothing":                         {nil, "left"},
		"a release that failed":           {[]holdfast.Run{unlock(holdfast.RunErrored, "left")}, "left"},
		"a release":                       {[]holdfast.Run{unlock(holdfast.RunApplied, "left")}, ""},
		"a release of another":            {[]holdfast.Run{unlock(holdfast.RunApplied, "other")}, "left"},
		"a second release that failed":    {[]holdfast.Run{unlock(holdfast.RunErrored, "left"), unlock(holdfast.RunApplied, "left")}, ""},
		"a plan":                          {[]holdfast.Run{ended(holdfast.RunPlanned, "", "")}, ""},
		"a plan of another state":         {[]holdfast.Run{elsewhere}, "left"},
		"a run that nobody has executed":  {[]holdfast.Run{waits}, "left"},
		"a run that is executed":          {[]holdfast.Run{ended(holdfast.RunRunning, "", "")}, "left"},
		"a failure before its engine":     {[]holdfast.Run{ended(holdfast.RunErrored, "prepare", holdfast.CauseNoEngine)}, "left"},
		"a failure of its init":           {[]holdfast.Run{ended(holdfast.RunErrored, "init", holdfast.CauseDownloadFailed)}, "left"},
		"a failure of its plan":           {[]holdfast.Run{ended(holdfast.RunErrored, "plan", holdfast.CauseCredentials)}, "left"},
		"a death in its plan":             {[]holdfast.Run{ended(holdfast.RunInterrupted, "plan", holdfast.ReasonAgentKilled)}, "left"},
		"a failure of its apply":          {[]holdfast.Run{ended(holdfast.RunErrored, "apply", holdfast.CauseEngineFailed)}, ""},
		"another lock":                    {[]holdfast.Run{refused("next", "s3:here", 0)}, "next"},
		"another that is released":        {[]holdfast.Run{unlock(holdfast.RunApplied, "next"), refused("next", "s3:here", 0)}, ""},
		"another state's":                 {[]holdfast.Run{refused("next", "s3:elsewhere", 0)}, "next"},
		"another state's, released":       {[]holdfast.Run{moved(unlock(holdfast.RunApplied, "next")), refused("next", "s3:elsewhere", 0)}, "left"},
		"a release of the other state's":  {[]holdfast.Run{unlock(holdfast.RunApplied, "next"), refused("next", "s3:elsewhere", 0)}, "next"},
		"that ID in another, released":    {[]holdfast.Run{moved(unlock(holdfast.RunApplied, "left"))}, "left"},
		"a plan that went before it":      {[]holdfast.Run{early}, "left"},
		"the same, of a pull request":     {[]holdfast.Run{refused("left", "s3:here", 7)}, "left"},
		"the same, after it had been got": {[]holdfast.Run{refused("left", "s3:here", 7), ended(holdfast.RunPlanned, "", "")}, "left of 7"},
	} {
		got := ""
		if seen := sightings(append(c.newer, refused("left", "s3:here", 0))); len(seen) > 0 {
			got = seen[0].ID
			if n := seen[0].in.PullRequest.Number; n != 0 {
				got += fmt.Sprintf(" of %d", n)
			}
		}
		if got != c.want {
			t.Errorf("%s: the lock is %q, want %q", name, got, c.want)
		}
	}
}

// TestReleaserOf: what was applied last, and what the tracked branch has had since, releases
// locks of its state; what was planned elsewhere before releases none.
func TestReleaserOf(t *testing.T) {
	t.Parallel()
	ran := func(id string, kind holdfast.RunKind, location string, begun bool) holdfast.Run {
		run := holdfast.Run{ID: id, Kind: kind}
		run.Attempt, run.Begun, run.StateLocation = 1, begun, location
		return run
	}
	apply := ran("applied", holdfast.RunApply, "s3:here", true)
	for name, c := range map[string]struct {
		branch []holdfast.Run
		want   string
	}{
		"nothing is applied":                  {nil, "found unlock"},
		"only a plan elsewhere":               {[]holdfast.Run{ran("plan", holdfast.RunPlan, "s3:there", false)}, "found unlock"},
		"a plan":                              {[]holdfast.Run{ran("plan", holdfast.RunPlan, "s3:here", false)}, "plan state"},
		"a plan since the apply":              {[]holdfast.Run{ran("plan", holdfast.RunPlan, "s3:here", false), apply}, "plan state"},
		"a plan elsewhere since the apply":    {[]holdfast.Run{ran("plan", holdfast.RunPlan, "s3:there", false), apply}, "applied state"},
		"an apply elsewhere that never began": {[]holdfast.Run{ran("refused", holdfast.RunApply, "s3:there", false), apply}, "applied state"},
		"an apply elsewhere since":            {[]holdfast.Run{ran("moved", holdfast.RunApply, "s3:there", true), apply}, "found unlock"},
		"its store is of the environment":     {[]holdfast.Run{ran("plan", holdfast.RunPlan, "s3:here"+holdfast.StoreOfEnvironment, false)}, "plan state"},
	} {
		by := releaserOf(sighting{in: ran("found", holdfast.RunPlan, "s3:here", false)}, c.branch)
		if got := by.from.ID + " " + string(by.kind); got != c.want {
			t.Errorf("%s: the lock is released by %q, want %q", name, got, c.want)
		}
	}
}

// TestLockOfAMigration: a lock that a migration finds is that of the new place, and is released
// with the code that has it, which is what was applied.
func TestLockOfAMigration(t *testing.T) {
	t.Parallel()
	applied := holdfast.Run{ID: "applied", Kind: holdfast.RunApply}
	applied.Attempt, applied.Begun, applied.StateLocation = 1, true, "clusters/prod"
	moves := holdfast.Run{ID: "moves", Kind: holdfast.RunState, Status: holdfast.RunErrored}
	moves.Attempt, moves.StateLocation = 1, "clusters/prod"
	moves.State = &holdfast.StateJob{Action: holdfast.StateMigrate, Move: &holdfast.StateMove{From: "clusters/prod", To: "s3:there"}}
	moves.Failure = &holdfast.Failure{Step: "push", Cause: holdfast.CauseStateLocked, Detail: "Lock Info:\n  ID:        left\n"}
	seen := sightings(lockedAt([]holdfast.Run{moves, applied}))
	if len(seen) != 1 || seen[0].ID != "left" {
		t.Fatalf("the locks are %+v", seen)
	}
	by := releaserOf(seen[0], []holdfast.Run{applied})
	if by.from.ID != "moves" || by.kind != holdfast.RunState || by.from.StateLocation != "s3:there" || moves.StateLocation != "clusters/prod" {
		t.Errorf("the lock is released by %s of %s at %s", by.kind, by.from.ID, by.from.StateLocation)
	}
}

// TestLockOfAMigrationAtThePresentPlace: a lock that the first plan of a migration finds is that of
// the current place, and is released with what was applied there; one that was left there by a
// migration that died, too, is known to be of a dead one.
func TestLockOfAMigrationAtThePresentPlace(t *testing.T) {
	t.Parallel()
	applied := holdfast.Run{ID: "applied", Kind: holdfast.RunApply}
	applied.Attempt, applied.Begun, applied.StateLocation = 1, true, "s3:here"
	move := &holdfast.StateJob{Action: holdfast.StateMigrate, Move: &holdfast.StateMove{From: "s3:here", To: "s3:there"}}
	moves := func(id string, at time.Time) holdfast.Run {
		run := holdfast.Run{ID: id, Kind: holdfast.RunState, Status: holdfast.RunErrored, StartedAt: at, FinishedAt: at.Add(time.Minute)}
		run.Attempt, run.StateLocation, run.State = 1, "s3:here", move
		return run
	}
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	died, found := moves("died", began), moves("found", began.Add(time.Hour))
	died.Status = holdfast.RunInterrupted
	found.Failure = &holdfast.Failure{
		Step: "plan", Cause: holdfast.CauseStateLocked, Detail: "Lock Info:\n  ID:        left\n  Created:   2026-11-30 12:00:30 +0000 UTC\n",
	}
	runs := lockedAt([]holdfast.Run{found, died, applied})
	seen := sightings(runs)
	if len(seen) != 1 || seen[0].ID != "left" || seen[0].in.StateLocation != "s3:here" {
		t.Fatalf("the locks are %+v", seen)
	}
	if by := releaserOf(seen[0], []holdfast.Run{applied}); by.from.ID != "applied" || by.kind != holdfast.RunState {
		t.Errorf("the lock is released by %s of %s", by.kind, by.from.ID)
	}
	if dead := deadHolder(seen[0], runs); dead != "died" {
		t.Errorf("it was left by %q", dead)
	}
}
