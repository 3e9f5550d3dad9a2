package show

import (
	"testing"
	"time"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// TestDuration: a server's clock that was put back while a run was executed makes no
// negative time.
func TestDuration(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for ended, want := range map[time.Time]string{began.Add(90 * time.Second): "90s", began.Add(-10 * time.Minute): "0s"} {
		if got := (&app{}).duration(v1.Run{StartedAt: began, FinishedAt: ended}); got != want {
			t.Errorf("from %s to %s: %s, want %s", began, ended, got, want)
		}
	}
}
