package dispatch

import (
	"cmp"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// renewals are when the locks of runs were last confirmed, by run. It is safe for
// concurrent use.
type renewals struct {
	mu    sync.Mutex
	last  map[string]time.Time
	since map[string]time.Time // when it could first not be confirmed here
}

// confirmed notes that a run holds its lock now.
func (r *renewals) confirmed(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[run] = time.Now()
	delete(r.since, run)
}

// unconfirmed is how long nobody could confirm the run's lock, as far as is known here:
// another replica may have confirmed it until shortly before this one failed to. A replica
// that never did starts to count now.
func (r *renewals) unconfirmed(run string, between time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.last[run]
	if !ok {
		r.last[run] = time.Now()
		return 0
	}
	failed, ok := r.since[run]
	if !ok {
		failed = time.Now()
		r.since[run] = failed
	}
	return min(time.Since(last), time.Since(failed)+between)
}

// ended forgets a run.
func (r *renewals) ended(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, run)
	delete(r.since, run)
}

// signs are the signs of life of running attempts: those that this replica has taken in,
// stored or not, and those of others that it saw in the records. The newer one counts. It
// is safe for concurrent use.
type signs struct {
	mu    sync.Mutex
	beats map[holdfast.AttemptRef]beat
}

// beat is an attempt's last sign of life.
type beat struct {
	stored time.Time // the last one that was seen in the records
	at     time.Time // the last one that was taken in here, by the server's clock
	step   string    // what the attempt does, by that
	seen   time.Time // the newer one, with the monotonic clock: a wall clock that jumps kills nobody
	known  bool      // one came after this replica had started to look
}

// heard records a sign of life.
func (s *signs) heard(ref holdfast.AttemptRef, step string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.beats[ref]
	b.at, b.seen, b.known = at, time.Now(), true
	b.step = cmp.Or(step, b.step)
	s.beats[ref] = b
}

// observe reads what the records have of all running attempts.
func (s *signs) observe(running []attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	beats := make(map[holdfast.AttemptRef]beat, len(running))
	for _, a := range running {
		b, ok := s.beats[a.ref]
		switch {
		case !ok:
			b.seen = time.Now()
		case !b.stored.IsZero() && a.heartbeatAt.After(b.stored) && a.heartbeatAt.After(b.at): // taken in by another replica
			b.seen, b.known = time.Now(), true
		}
		b.stored = a.heartbeatAt
		beats[a.ref] = b
	}
	s.beats = beats
}

// missed notes that signs of life may have been missed, as the records could not be
// read: every attempt has the time again that it has after a start.
func (s *signs) missed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, b := range s.beats {
		b.seen, b.known = time.Now(), false
		s.beats[ref] = b
	}
}

// unheard is how long there was no new sign of life of an attempt; zero if it was not
// looked at yet. It is known if there was one since this replica looks.
func (s *signs) unheard(ref holdfast.AttemptRef) (silence time.Duration, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.beats[ref]
	if !ok {
		return 0, false
	}
	return time.Since(b.seen), b.known
}

// onto returns a run with its newest sign of life and the step of that. One with a time in
// the future came from a clock that is ahead, or was set back since: it counts from when it
// was seen here.
func (s *signs) onto(run holdfast.Run, now time.Time) holdfast.Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, seen := s.beats[run.Ref()]
	if b.at.After(run.HeartbeatAt) {
		run.HeartbeatAt, run.Step = b.at.UTC(), cmp.Or(b.step, run.Step)
	}
	if seen && run.HeartbeatAt.After(now) {
		run.HeartbeatAt = now.Add(-time.Since(b.seen)).UTC()
	}
	return run
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
