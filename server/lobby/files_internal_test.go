package lobby

import (
	"math"
	"testing"
)

// Strangers never take all the files that a process may have open.
func TestSilentAmong(t *testing.T) {
	t.Parallel()
	for files, want := range map[uint64]int{1024: 512, 4096: 2048, 65_536: maxSilent, math.MaxUint64: maxSilent} {
		if got := silentAmong(files); got != want {
			t.Errorf("with %d files %d wait", files, got)
		}
	}
	if openFiles() < 256 {
		t.Errorf("this process may have %d files open", openFiles())
	}
}
