package statelock

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// StateLock is the engine's own lock on a state, with its fields as the http
// backend sends them. Info is the body as it came.
type StateLock struct {
	ID        string              `json:"ID"`
	Operation string              `json:"Operation"`
	Who       string              `json:"Who"`
	Version   string              `json:"Version"`
	Created   time.Time           `json:"Created"`
	Info      []byte              `json:"-"`
	By        holdfast.AttemptRef `json:"-"`
}

// StateLockedError says who holds a state's lock. It is an ErrLocked.
type StateLockedError struct{ Lock StateLock }

func (e *StateLockedError) Error() string {
	return "state locked by " + e.Lock.Who + " (" + e.Lock.ID + ")"
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *StateLockedError) Is(target error) bool { return target == holdfast.ErrLocked }
