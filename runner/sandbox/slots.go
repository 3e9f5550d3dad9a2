// Which users engines get.

package sandbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Slots hands users out to attempts, the first that is free. The zero Slot is
// the agent's own user.
type Slots struct {
	first int           // 0: attempts have no users of their own
	free  chan struct{} // as many as are free

	mu   sync.Mutex
	used []bool
}

// NewSlots returns the slots of an agent, the first of which has that uid and gid; an
// error if the mode needs a user for each and there are none.
func NewSlots(mode Mode, first, count int) (*Slots, error) {
	if !mode.OwnUser() {
		return &Slots{}, nil
	}
	if count < 1 || first < 1 {
		return nil, fmt.Errorf("isolation %s needs a user for each slot", mode)
	}
	s := &Slots{first: first, free: make(chan struct{}, count), used: make([]bool, count)}
	for range count {
		s.free <- struct{}{}
	}
	return s, nil
}

// Take waits for a slot that nobody has.
func (s *Slots) Take(ctx context.Context) (Slot, error) {
	if s.first == 0 {
		return Slot{}, nil
	}
	select {
	case <-s.free:
	case <-ctx.Done():
		return Slot{}, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.used, false)
	s.used[i] = true
	return Slot{UID: s.first + i, GID: s.first + i}, nil
}

// Release gives a slot back. All that ran in it is dead.
func (s *Slots) Release(slot Slot) {
	if s.first == 0 {
		return
	}
	s.mu.Lock()
	s.used[slot.UID-s.first] = false
	s.mu.Unlock()
	s.free <- struct{}{}
}
