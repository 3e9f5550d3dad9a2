package intake

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// However many clusters a repository has, the log says every 5 seconds how far it is, and
// nothing of one that takes no longer.
func TestProgressIsLogged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		each time.Duration // takes a cluster
		want []string
	}{
		"slow": {time.Second / 100, []string{
			`progress="500 of 1,200 clusters read"`, `progress="1,000 of 1,200 clusters read"`,
			`progress="300 of 1,200 clusters recorded"`, `progress="800 of 1,200 clusters recorded"`,
		}},
		"quick": {time.Millisecond, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			counted := newTally("shop", slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
			for _, what := range []string{progressRead, progressRecorded} {
				for done := range 1200 {
					now = now.Add(test.each)
					counted.set(t.Context(), what, done+1, 1200)
				}
			}
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			if log.Len() == 0 {
				lines = nil
			}
			if len(lines) != len(test.want) {
				t.Fatalf("the log says %d times how far it is, want %d:\n%s", len(lines), len(test.want), log.String())
			}
			for i, want := range test.want {
				if !strings.Contains(lines[i], want) || !strings.Contains(lines[i], "repo=shop") {
					t.Errorf("line %d is %s, want %s", i, lines[i], want)
				}
			}
		})
	}
}

// Clusters that are read side by side are counted in any order, and how far a repository is
// is known until it was taken in.
func TestProgressOfARepository(t *testing.T) {
	t.Parallel()
	m := newMarks()
	counted := newTally("shop", slog.New(slog.DiscardHandler), time.Now)
	m.begin("shop", counted)
	if got := m.tallyOf("shop"); got != "" {
		t.Errorf("before anything was counted: %q", got)
	}
	for _, done := range []int{1, 3, 2} {
		counted.set(t.Context(), progressRead, done, 12345)
	}
	if got, want := m.tallyOf("shop"), "3 of 12,345 clusters read"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
	counted.set(t.Context(), progressRecorded, 1, 1000)
	if got, want := m.tallyOf("shop"), "1 of 1,000 clusters recorded"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
	if got := m.tallyOf("other"); got != "" {
		t.Errorf("of another repository: %q", got)
	}
	m.markReady("shop")
	m.begin("shop", counted) // its next head
	if got := m.tallyOf("shop"); got != "" {
		t.Errorf("after it was taken in: %q", got)
	}
}
