package queue

import "time"

// Trouble says when to log something that fails again and again: at once, then at intervals
// that double from a minute to an hour, and once when it is over. Intermittent failures are
// one trouble. The zero value is ready to use. One goroutine uses it.
type Trouble struct {
	since, last time.Time       // of the first and the last failure
	failing     bool            // there was no success since
	next        time.Time       // when it is said again
	pause       time.Duration   // between the last time that it was said and next; zero: there was none
	said        map[string]bool // what was said of it
	failureSaid bool            // and not yet that it is over
}

const (
	troubleAgain, troubleMost = time.Minute, time.Hour
	// troubleCauses is how many causes are logged at once: a cause with a number in it
	// differs each time.
	troubleCauses = 8
)

// Says notes a failure, and reports whether to log it.
func (t *Trouble) Says(err error, now time.Time) bool {
	if t.pause == 0 || !t.failing && now.Sub(t.last) > t.pause { // the first one, or the first one for long
		*t = Trouble{since: now, next: now, said: make(map[string]bool)}
	}
	t.failing, t.last = true, now
	due := !now.Before(t.next)
	if cause := err.Error(); due || !t.said[cause] && len(t.said) < troubleCauses {
		t.said[cause], t.failureSaid = true, true
		if due {
			t.pause = min(max(2*t.pause, troubleAgain), troubleMost)
			t.next = now.Add(t.pause)
		}
		return true
	}
	return false
}

// Over notes a success. It reports whether to log that, and since when it had failed.
func (t *Trouble) Over() (since time.Time, said bool) {
	said, t.failureSaid, t.failing = t.failureSaid, false, false
	return t.since, said
}
