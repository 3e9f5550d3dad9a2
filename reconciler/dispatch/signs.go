package dispatch

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// renewals are when the locks of runs were last confirmed, by run. It is safe for
// concurrent use.
type renewals struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// confirmed notes that a run holds its lock now.
func (r *renewals) confirmed(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[run] = time.Now()
}

// unconfirmed is for how long nobody could confirm the run's lock. A replica
// that never did starts to count now.
func (r *renewals) unconfirmed(run string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.last[run]
	if !ok {
		r.last[run] = time.Now()
		return 0
	}
	return time.Since(since)
}

// ended forgets a run.
func (r *renewals) ended(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, run)
}

// signs are the signs of life of running attempts, as the sweep saw them. It is safe
// for concurrent use.
type signs struct {
	mu    sync.Mutex
	beats map[holdfast.AttemptRef]beat
}

// beat is a run's last sign of life, and when this process saw it first.
type beat struct {
	at   time.Time
	seen time.Time // with the monotonic clock: a wall clock that jumps kills nobody
}

// observe takes in the signs of life of all running attempts.
func (s *signs) observe(running []holdfast.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	beats := make(map[holdfast.AttemptRef]beat, len(running))
	for _, run := range running {
		last, ok := s.beats[run.Ref()]
		if !ok || !last.at.Equal(run.HeartbeatAt) {
			last = beat{at: run.HeartbeatAt, seen: time.Now()}
		}
		beats[run.Ref()] = last
	}
	s.beats = beats
}

// unheard is for how long no new sign of life was observed of an attempt; zero if
// it was not looked at yet.
func (s *signs) unheard(run holdfast.Run) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.beats[run.Ref()]
	if !ok || !last.at.Equal(run.HeartbeatAt) {
		return 0
	}
	return time.Since(last.seen)
}

// age makes all of them older by ago.
func (s *signs) age(ago time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, b := range s.beats {
		b.seen = b.seen.Add(-ago)
		s.beats[ref] = b
	}
}
