package clock_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/clock"
)

// A clock that is set back counts, one that is set forward does not.
func TestWatch(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := clock.NewWatch(func() time.Time { return at })
	for i, step := range []struct{ by, want time.Duration }{
		{time.Minute, 0}, {-10 * time.Minute, 10 * time.Minute}, {0, 0}, {time.Hour, 0}, {-time.Millisecond, 0},
	} {
		at = at.Add(step.by)
		if got := w.SetBack(); got != step.want {
			t.Errorf("step %d, by %s: SetBack() = %s, want %s", i, step.by, got, step.want)
		}
	}
	if got := clock.NewWatch(time.Now).SetBack(); got != 0 {
		t.Errorf("SetBack() of the machine's clock = %s", got)
	}
}
