package attempt

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/mounts"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// An engine that leaves no plan file on a full disk has failed for want of space, however
// it ended; with space, its own words hold.
func TestNoPlanFile(t *testing.T) {
	t.Parallel()
	if mounts.Again(t) {
		return
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=262144"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	ended := &failure.Error{Cause: "EngineFailed", Err: errors.New("plan: exit status 2"), Exit: &failure.ExitError{Code: 2}}
	step := &planning{&attempt{space: &space{dir: dir}}}
	if got := step.noPlanFile(ended); !errors.Is(got, ended) {
		t.Errorf("with space: %v", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), bytes.Repeat([]byte("x"), 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	for name, how := range map[string]error{"exit status 2": ended, "well": nil} {
		var known *failure.Error
		if got := step.noPlanFile(how); !errors.As(got, &known) || known.Cause != holdfast.CauseDiskFull || !known.Transient {
			t.Errorf("ended with %s on a full disk: %v", name, got)
		}
	}
}
