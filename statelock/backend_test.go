package statelock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/statelock"
)

func TestLockOf(t *testing.T) {
	t.Parallel()
	const detail = "Error message: pq: already locked\nLock Info:\n  ID:        b88a281c-5d78-d49b-d4e3-68e0b2eca1b6\n  Path:      -1\n" +
		"  Operation: OperationTypeApply\n  Who:       holdfast@vm\n  Version:   1.11.4\n  Created:   2026-11-23 03:46:41.518741764 +0000 UTC\n  Info:      \n"
	run := holdfast.Run{
		ID:         "run-1",
		RunSpec:    holdfast.RunSpec{StateLocation: "pg:infra/own"},
		RunOutcome: holdfast.RunOutcome{Failure: &holdfast.Failure{Cause: "StateLocked", Diagnostics: []holdfast.Diagnostic{{Detail: detail}}}},
	}
	got, ok := statelock.Of(run)
	want := statelock.BackendLock{
		ID: "b88a281c-5d78-d49b-d4e3-68e0b2eca1b6", Who: "holdfast@vm", Run: "run-1",
		Created: time.Date(2026, 11, 23, 3, 46, 41, 518741764, time.UTC),
	}
	if !ok || got != want {
		t.Errorf("LockOf() = %+v, %t, want %+v", got, ok, want)
	}
	const asked = "Error message: HTTP remote state already locked:\nID=held-1\nLock Info:\n  ID:        asked-1\n" +
		"  Who:       holdfast@vm\n  Created:   2026-11-23 03:46:41.5 +0000 UTC\n"
	for detail, want := range map[string]statelock.BackendLock{
		asked: {ID: "held-1", Run: "run-1"},
		strings.Replace(asked, "asked-1", "held-1", 1): {
			ID: "held-1", Who: "holdfast@vm", Run: "run-1", Created: time.Date(2026, 11, 23, 3, 46, 41, 500_000_000, time.UTC),
		},
	} {
		run.Failure = &holdfast.Failure{Cause: holdfast.CauseStateLocked, Detail: detail}
		if got, ok := statelock.Of(run); !ok || got != want {
			t.Errorf("LockOf() of an http backend = %+v, %t, want %+v", got, ok, want)
		}
	}
	session := run
	session.Failure = &holdfast.Failure{Cause: holdfast.CauseStateLocked, Detail: strings.Replace(detail, "pq: already locked", "Workspace is already locked: default", 1)}
	own, other := run, run
	own.StateLocation = "clusters/own"
	other.Failure = &holdfast.Failure{Cause: "Network", Detail: detail}
	for name, run := range map[string]holdfast.Run{"our own backend": own, "another cause": other, "a session of PostgreSQL": session, "none": {RunSpec: holdfast.RunSpec{StateLocation: "pg:x"}}} {
		if lock, ok := statelock.Of(run); ok {
			t.Errorf("LockOf(%s) = %+v", name, lock)
		}
	}
}
