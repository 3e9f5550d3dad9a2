package clock

import "time"

// Watch notices when a clock is set back. It is not safe for concurrent use.
type Watch struct {
	now  func() time.Time
	last time.Time
}

// NewWatch returns a Watch of a clock, from now on.
func NewWatch(now func() time.Time) *Watch { return &Watch{now: now, last: now()} }

// SetBack returns by how much the clock was set back since the last call; zero if it was
// not, or by less than a second. It compares the clock with how much time has passed, where
// that is known apart from it.
func (w *Watch) SetBack() time.Duration {
	before := w.last
	w.last = w.now()
	passed, shown := w.last.Sub(before), w.last.Round(0).Sub(before.Round(0))
	if by := max(passed, 0) - shown; by >= time.Second {
		return by
	}
	return 0
}
