package idle

import (
	"slices"
	"testing"
)

func TestUnchanged(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-02000000 r-xp 00000000 fd:01 77                                 /usr/bin/holdfast
Size:              28672 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
02000000-05000000 r--p 01c00000 fd:01 77                                 /usr/bin/holdfast
Anonymous:             0 kB
05000000-05200000 rw-p 04c00000 fd:01 77                                 /usr/bin/holdfast
Anonymous:             0 kB
05200000-05300000 r-xp 04e00000 fd:01 77                                 /usr/bin/holdfast
Anonymous:             4 kB
05300000-05400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f0000000000-7f0000100000 r--p 00000000 fd:01 78                         /var/lib/holdfast/db/holdfast.db-shm
Anonymous:             0 kB
7ffd00000000-7ffd00002000 r--p 00000000 00:00 0                          [vvar]
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x2000000}, {0x2000000, 0x5000000}}
	if got := unchanged([]byte(smaps), "/usr/bin/holdfast"); !slices.Equal(got, want) {
		t.Errorf("%#x, want %#x", got, want)
	}
}

// TestUnmapProgram: a process continues that has unmapped its program.
func TestUnmapProgram(t *testing.T) {
	t.Parallel()
	for range 3 {
		unmapProgram()
		if allocated, _ := heap(); allocated == 0 {
			t.Error("nothing is allocated")
		}
	}
}
