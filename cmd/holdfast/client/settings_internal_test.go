package client

import (
	"io/fs"
	"testing"
)

// TestForOthers: a pod's user may read what root gives to its group, and root nothing
// that a group may read.
func TestForOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode   fs.FileMode
		owner  uint32
		reader int
		open   bool
	}{
		{0o600, 10001, 10001, false},
		{0o440, 10001, 10001, true},
		{0o440, 0, 10001, false},
		{0o640, 0, 10001, false},
		{0o444, 0, 10001, true},
		{0o660, 0, 10001, true},
		{0o400, 0, 0, false},
		{0o440, 0, 0, true},
	} {
		if got := c.mode&forOthers(c.owner, c.reader) != 0; got != c.open {
			t.Errorf("mode %04o of %d, read by %d: others can: %t, want %t", c.mode, c.owner, c.reader, got, c.open)
		}
	}
}
