package claimant

import (
	"sync"
	"time"
)

// Refusals bound how often refusals are logged and recorded: an agent asks again and again.
// It is safe for concurrent use.
type Refusals struct {
	mu   sync.Mutex
	last map[string]time.Time // by who and why
}

// refusedEvery is how often the same is written about for the same reason.
const refusedEvery = time.Minute

// Due reports whether a refusal is to be written now.
func (r *Refusals) Due(who, why string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := who + "\x00" + why
	if last, ok := r.last[key]; ok && now.Sub(last) < refusedEvery {
		return false
	}
	if r.last == nil {
		r.last = make(map[string]time.Time)
	}
	r.last[key] = now
	return true
}
