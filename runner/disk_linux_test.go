package runner_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/mounts"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// smallDisk mounts a disk of its own of so many bytes.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill leaves so many bytes free on dir's disk, until free is called.
func fill(t *testing.T, dir string, leave int64) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	size := int64(0)
	for {
		n, err := f.Write(block)
		size += int64(n)
		if errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Truncate(max(0, size-leave)), f.Close()); err != nil {
		t.Fatal(err)
	}
	return func() {
		// To remove it is not enough: a process that was forked meanwhile may have it
		// open until it executes its program.
		if err := errors.Join(os.Truncate(name, 0), os.Remove(name)); err != nil {
			t.Error(err)
		}
	}
}

// TestFullDisk: on a disk that is full, or becomes so at whatever step, an
// attempt ends as errored and says so; once there is space, attempts work again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	realEngine(t)
	if mounts.Again(t) {
		return
	}
	dir, server := smallDisk(t, 8<<20), newFakeServer(t)
	bundle := tarball(map[string]string{
		"main.tf": "terraform {\n  backend \"http\" {}\n}\nresource \"terraform_data\" \"x\" { input = [for i in range(3) : \"${filebase64(\"ballast\")}${i}\"] }\n",
		"ballast": noise(64 << 10),
	})
	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: realExecutor(t, filepath.Join(dir, "work"))})
	execute := func(run string) protocol.Result {
		a, settings := engineAssignment(run, holdfast.RunPlan), assignment(run, holdfast.RunPlan)
		a.Token, a.Lease, a.Deadline, a.StateLocation = settings.Token, settings.Lease, settings.Deadline, settings.StateLocation
		server.set(func() { server.objects[string(a.Bundle)] = bundle })
		server.assign(a)
		return server.result(t, run)
	}
	if got := execute("run-before"); got.Status != holdfast.RunPlanned {
		t.Fatalf("before: %+v, %+v", got, got.Failure)
	}
	steps := map[string]bool{}
	for i, leave := range []int64{0, 32 << 10, 100 << 10, 200 << 10, 400 << 10, 600 << 10, 800 << 10, 1000 << 10} {
		free := fill(t, dir, leave)
		got := execute(fmt.Sprintf("run-full-%d", i))
		free()
		f := got.Failure
		if got.Status != holdfast.RunErrored || got.Reason != "DiskFull" || f == nil || f.Cause != "DiskFull" || !f.Transient || !strings.Contains(f.Hint, "free space") {
			t.Errorf("%d bytes left: %s (%s) %+v", leave, got.Status, got.Reason, f)
			continue
		}
		steps[f.Step] = true
		if after := execute(fmt.Sprintf("run-after-%d", i)); after.Status != holdfast.RunPlanned {
			t.Errorf("with space again: %+v, %+v", after, after.Failure)
		}
	}
	for _, step := range []string{"prepare", "plan", "show"} {
		if !steps[step] {
			t.Errorf("the disk was never full in %s, only in %v", step, steps)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "work", "workspaces", "*")); len(left) > 0 {
		t.Errorf("workspaces left: %v", left)
	}
}
