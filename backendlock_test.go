package holdfast_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func TestLockOf(t *testing.T) {
	t.Parallel()
	const detail = "Error message: pq: already locked\nLock Info:\n  ID:        b88a281c-5d78-d49b-d4e3-68e0b2eca1b6\n  Path:      -1\n" +
		"  Operation: OperationTypeApply\n  Who:       holdfast@vm\n  Version:   1.11.4\n  Created:   2026-11-23 03:46:41.518741764 +0000 UTC\n  Info:      \n"
	run := holdfast.Run{
		ID: "run-1", StateLocation: "pg:infra/own",
		Failure: &holdfast.Failure{Cause: "StateLocked", Diagnostics: []holdfast.Diagnostic{{Detail: detail}}},
	}
	got, ok := holdfast.LockOf(run)
	want := holdfast.BackendLock{
		ID: "b88a281c-5d78-d49b-d4e3-68e0b2eca1b6", Who: "holdfast@vm", Run: "run-1",
		Created: time.Date(2026, 11, 23, 3, 46, 41, 518741764, time.UTC),
	}
	if !ok || got != want {
		t.Errorf("LockOf() = %+v, %t, want %+v", got, ok, want)
	}
	own, other := run, run
	own.StateLocation = "clusters/own"
	other.Failure = &holdfast.Failure{Cause: "Network", Detail: detail}
	for name, run := range map[string]holdfast.Run{"our own backend": own, "another cause": other, "none": {StateLocation: "pg:x"}} {
		if lock, ok := holdfast.LockOf(run); ok {
			t.Errorf("LockOf(%s) = %+v", name, lock)
		}
	}
}
