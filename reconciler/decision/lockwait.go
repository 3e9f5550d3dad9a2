package decision

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// LockWait is how runs wait for the lock of a state's backend: for a short time in
// the slot of their agent, and then between attempts, without a slot.
type LockWait struct {
	Timeout time.Duration // of the whole wait, from the first refusal on; zero: not at all
	Pause   time.Duration // before the second attempt; the pauses double
}

const (
	// lockInSlot bounds the wait of one engine in its slot: enough for a short command
	// of somebody else's.
	lockInSlot = 5 * time.Second
	// lockPauseMost bounds the pause before the next attempt: the lock may be released
	// at any moment.
	lockPauseMost = time.Minute
)

// InSlot is how long an engine waits for the lock, in its slot.
func (w LockWait) InSlot() time.Duration { return min(w.Timeout, lockInSlot) }

// Next is the pause before the next attempt of a run that has not got the lock since
// then: as long as it has waited already, so that the pauses double. It is false once
// Timeout is over; the last attempt begins when it is.
func (w LockWait) Next(since, now time.Time) (time.Duration, bool) {
	waited := now.Sub(Believable(since, now))
	if waited >= w.Timeout {
		return 0, false
	}
	pause := min(max(waited, w.Pause), lockPauseMost)
	return min(pause, w.Timeout-waited), true
}

// AwaitsLock reports whether a run pauses because it did not get the lock of its
// state's backend.
func AwaitsLock(run holdfast.Run) bool {
	return run.Status == holdfast.RunRetrying && run.Reason == holdfast.CauseStateLocked
}

// RefusedLock reports whether an attempt failed because it did not get that lock.
func RefusedLock(run holdfast.Run) bool {
	return run.Failure != nil && run.Failure.Cause == holdfast.CauseStateLocked
}
