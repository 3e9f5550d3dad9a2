package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// TestTrouble: what fails every second for a day is said some thirty times.
func TestTrouble(t *testing.T) {
	t.Parallel()
	start, full := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), errors.New("disk is full")
	var trouble queue.Trouble
	if _, said := trouble.Over(); said {
		t.Error("without any trouble it is said that it is over")
	}
	var at []time.Duration
	for s := time.Duration(0); s < 24*time.Hour; s += time.Second {
		if trouble.Says(full, start.Add(s)) {
			at = append(at, s)
		}
	}
	first := []time.Duration{0, time.Minute, 3 * time.Minute, 7 * time.Minute, 15 * time.Minute, 31 * time.Minute, 63 * time.Minute, 123 * time.Minute}
	if len(at) < len(first) || !slices.Equal(at[:len(first)], first) || len(at) > 31 {
		t.Errorf("it is said %d times: %v", len(at), at)
	}
	if since, said := trouble.Over(); !said || !since.Equal(start) {
		t.Errorf("Over() = %v, %v", since, said)
	}
	if _, said := trouble.Over(); said {
		t.Error("that it is over is said twice")
	}

	now := start.Add(24 * time.Hour)
	if trouble.Says(full, now) {
		t.Error("what has failed a second ago, too, is said at once")
	}
	if _, said := trouble.Over(); said {
		t.Error("what was not said is said to be over")
	}
	n := 0
	for i := range 100 {
		if trouble.Says(fmt.Errorf("only %d bytes are left", i), now) {
			n++
		}
	}
	if n != 7 {
		t.Errorf("of a hundred other causes %d are said at once", n)
	}
	trouble.Over()
	if later := now.Add(3 * time.Hour); !trouble.Says(full, later) {
		t.Error("what has not failed for hours is not said at once")
	} else if trouble.Says(full, later.Add(time.Second)) || !trouble.Says(full, later.Add(time.Minute)) {
		t.Error("it is not said again a minute later, as in the beginning")
	}
}
