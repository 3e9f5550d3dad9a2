package server

import (
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// uploads lets each attempt send one artefact at a time, as agents do: what is on
// its way is on disk before it replaces what was there, and counts nowhere yet.
// It is safe for concurrent use; the zero value is ready.
type uploads struct {
	mu   sync.Mutex
	busy map[holdfast.AttemptRef]bool
}

// begin reports whether no other upload of the attempt is on its way. Then end
// must follow.
func (u *uploads) begin(ref holdfast.AttemptRef) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.busy[ref] {
		return false
	}
	if u.busy == nil {
		u.busy = make(map[holdfast.AttemptRef]bool)
	}
	u.busy[ref] = true
	return true
}

func (u *uploads) end(ref holdfast.AttemptRef) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.busy, ref)
}
