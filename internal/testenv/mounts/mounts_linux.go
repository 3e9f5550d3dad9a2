// Package mounts lets tests that mount something run for every user: one who may not
// is given a user and a mount namespace, in which they run again. Only tests use it.
package mounts

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// again is set in processes that Again has started.
const again = "HOLDFAST_TEST_MOUNTS"

// capSysAdmin is CAP_SYS_ADMIN, which mounting takes.
const capSysAdmin = 21

// Again reports whether t was run in another process, as this one may not mount. It
// has failed then if it failed there, and its caller is to return. Where neither is
// possible it ends the test.
func Again(t *testing.T) bool {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k")
	if err == nil {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		return false
	}
	if os.Getenv(again) != "" {
		t.Fatalf("nothing can be mounted in a user namespace either: %v", err)
	}
	timeout := time.Duration(0)
	if deadline, ok := t.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$", "-test.timeout="+timeout.String())
	cmd.Env = append(os.Environ(), again+"=1")
	uid, gid := os.Getuid(), os.Getgid()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{capSysAdmin},
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in a user namespace: %v\n%s", err, out)
	}
	t.Log("it passes in a user namespace")
	return true
}
