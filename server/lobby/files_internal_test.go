package lobby

import (
	"math"
	"testing"
	"time"
)

// Strangers never take all the files that a process may have open, at whichever of its three
// listeners they come.
func TestFilesAreLeft(t *testing.T) {
	t.Parallel()
	for _, files := range []int{256, 1024, 4096, 65_536, math.MaxInt} {
		l := newLobby(nil, time.Second, files)
		if 3*(l.maxSilent+l.maxStrangers) > files/4*3 {
			t.Errorf("with %d files, %d wait and %d more are strangers at each listener", files, l.maxSilent, l.maxStrangers)
		}
		if files >= 65_536 && (l.maxSilent != maxSilent || l.maxStrangers != maxStrangers) {
			t.Errorf("with %d files only %d wait", files, l.maxSilent)
		}
	}
	if openFiles() < 256 {
		t.Errorf("this process may have %d files open", openFiles())
	}
}
