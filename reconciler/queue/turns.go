package queue

import (
	"slices"
	"sync"
)

// Turns say whose turn is next, where not all can be served each time. They are safe for
// concurrent use.
type Turns struct {
	mu   sync.Mutex
	last map[string]int // by what they are of
}

// NewTurns returns turns that nobody has had.
func NewTurns() *Turns { return &Turns{last: make(map[string]int)} }

// Next returns at most that many of all numbers, which it is passed in their order; after
// the highest the lowest is next.
func (t *Turns) Next(of string, all []int, most int) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	from, _ := slices.BinarySearch(all, t.last[of]+1)
	some := slices.Concat(all[from:], all[:from])
	some = some[:min(most, len(some))]
	if len(some) > 0 {
		t.last[of] = some[len(some)-1]
	}
	return some
}
