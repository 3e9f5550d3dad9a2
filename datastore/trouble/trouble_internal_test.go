package trouble

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

type fault struct{ some bool }

func (fault) Error() string       { return "no space left" }
func (fault) DiskProblem() string { return "the disk is full" }
func (f fault) SomeWritten() bool { return f.some }

// TestTrouble: what nothing can be written to is well again with the first write; where some writes
// succeed, none may have failed for a while.
func TestTrouble(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, some := range []bool{false, true} {
		var l Last
		if l.Problem() != "" {
			t.Errorf("at first: %q", l.Problem())
		}
		l.note(fmt.Errorf("store run: %w", fault{some}), now)
		l.note(errors.New("a conflict"), now.Add(time.Hour))
		if l.Problem() != "the disk is full" {
			t.Errorf("after it: %q", l.Problem())
		}
		l.note(nil, now.Add(holds/2))
		if full := l.Problem() != ""; full != some {
			t.Errorf("some are written: %t: after one of them %q", some, l.Problem())
		}
		l.note(nil, now.Add(holds+1))
		if l.Problem() != "" {
			t.Errorf("in the end: %q", l.Problem())
		}
	}
}
