package clock

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The clock is the machine's unless a file says how far it is off.
func TestClock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 0, "-10m\n": -10 * time.Minute, "90s": 90 * time.Second} {
		name := filepath.Join(t.TempDir(), "clock")
		if text != "" {
			write(t, name, text)
		}
		now, err := readFrom(name)
		if err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		at := now()
		after := time.Now()
		if at.Before(before.Add(want)) || at.After(after.Add(want)) {
			t.Errorf("with %q the clock shows %s between %s and %s", text, at, before, after)
		}
	}
	wrong := filepath.Join(t.TempDir(), "clock")
	write(t, wrong, "late")
	if _, err := readFrom(wrong); err == nil {
		t.Error("a file without a duration is not an error")
	}
}

// A binary whose build does not ask for it looks for no file, whatever its folder has.
func TestClockOfReleases(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"clock", "file"} {
		write(t, name, "-10m")
	}
	now, err := OfProcess()
	if err != nil || file != "" {
		t.Fatalf("a file %q is read: %v", file, err)
	}
	if off := time.Until(now()); off.Abs() > time.Minute {
		t.Errorf("the clock is off by %s", off)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
