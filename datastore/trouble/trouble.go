package trouble

import (
	"errors"
	"sync/atomic"
	"time"
)

// holds is longer than the pauses after which is tried again what could not be written.
const holds = 30 * time.Second

// Last is the last trouble. It is safe for concurrent use.
type Last struct{ last atomic.Pointer[trouble] }

type trouble struct {
	problem string
	until   time.Time // how long it counts although something was written
}

// Note records how a write has ended. An error with a method DiskProblem says what is wrong, and
// one whose method SomeWritten is true that others may succeed: PostgreSQL on a full disk takes
// what fits into pages that it has. Then it counts until nothing has failed for a while.
func (l *Last) Note(err error) { l.note(err, time.Now()) }

func (l *Last) note(err error, now time.Time) {
	var disk interface{ DiskProblem() string }
	if errors.As(err, &disk) {
		is := trouble{problem: disk.DiskProblem()}
		var some interface{ SomeWritten() bool }
		if errors.As(err, &some) && some.SomeWritten() {
			is.until = now.Add(holds)
		}
		l.last.Store(&is)
		return
	}
	if last := l.last.Load(); err == nil && last != nil && now.After(last.until) {
		l.last.CompareAndSwap(last, nil)
	}
}

// Problem is what is wrong, in words; empty: nothing is.
func (l *Last) Problem() string {
	if last := l.last.Load(); last != nil {
		return last.problem
	}
	return ""
}
