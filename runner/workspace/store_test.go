package workspace

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDiscardSlowly: a run does not wait until what it leaves is removed, and
// that is removed in the end: by this agent, or by the next one.
func TestDiscardSlowly(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	e, err := NewStore(work, 0o700, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(work, workspacesDir, "at-x")
	left := filepath.Join(work, discardedDir, "of a predecessor")
	for _, name := range []string{dir, left} {
		if err := os.MkdirAll(filepath.Join(name, strings.Repeat("d/", 150)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.discardIn(dir, -time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the workspace is in the way of the next run: %v", err)
	}
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if entries, err := os.ReadDir(filepath.Join(work, discardedDir)); err != nil {
			t.Fatal(err)
		} else if len(entries) == 0 {
			return
		} else if time.Since(begun) > time.Minute {
			t.Fatalf("%d folders are left", len(entries))
		}
	}
}
