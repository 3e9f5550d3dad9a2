//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// TestProbe takes the strongest mode, and the one that is asked for only.
func TestProbe(t *testing.T) {
	t.Parallel()
	works := modes(t)
	strongest := works[0]
	s, err := sandbox.Probe(t.Context(), sandbox.Options{Slot: newSlot(t), Program: program(t)})
	if strongest == sandbox.ModeNone {
		if !errors.Is(err, sandbox.ErrUnavailable) {
			t.Fatalf("no isolation, and nobody asked for none: got %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.Mode() != strongest {
		t.Errorf("got mode %s, want %s", s.Mode(), strongest)
	}
	for i, refused := range s.Refused() {
		if refused.Mode != sandbox.Modes()[i] || refused.Err == nil {
			t.Errorf("refused %+v", refused)
		}
	}
	if len(s.Refused()) == 0 && strongest != sandbox.ModeSlots {
		t.Error("it is not said why stronger modes do not work")
	}
	for _, mode := range sandbox.Modes() {
		s, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: mode, Slot: newSlot(t), Program: program(t)})
		if err != nil {
			if !errors.Is(err, sandbox.ErrUnavailable) {
				t.Errorf("%s: got %v", mode, err)
			}
			continue
		}
		if s.Mode() != mode {
			t.Errorf("asked for %s: got %s", mode, s.Mode())
		}
	}
	if _, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: "strong"}); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("an unknown mode: got %v", err)
	}
}

// TestProbeStarts has a mode that looks as if it worked, and an engine that
// cannot be started in it.
func TestProbeStarts(t *testing.T) {
	t.Parallel()
	mode := modes(t)[0]
	if _, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: mode, Slot: newSlot(t), Program: "/bin/true"}); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("the start ended with another code: got %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if _, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: mode, Program: program(t)}); err == nil {
		t.Error("a mode with users works without one")
	}
}

// TestProbeLacks: an agent that is root, and lacks a right that runs in mode users need,
// has not got that mode. It starts with the rights that docs/security.md names.
func TestProbeLacks(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("not root: no rights to lack")
		return
	}
	needs := map[string]int{
		"SETUID": unix.CAP_SETUID, "SETGID": unix.CAP_SETGID, "CHOWN": unix.CAP_CHOWN, "KILL": unix.CAP_KILL,
		"DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "FOWNER": unix.CAP_FOWNER,
	}
	probe := func(lacks int) string {
		var keep []string
		for _, c := range needs {
			if c != lacks {
				keep = append(keep, strconv.Itoa(c))
			}
		}
		slot := newSlot(t)
		cmd := exec.CommandContext(t.Context(), program(t), append([]string{strconv.Itoa(slot.UID)}, keep...)...)
		cmd.Env, cmd.Dir = append(os.Environ(), engineVerb+"=without", "SANDBOX_TEST_PROGRAM="+program(t), "TMPDIR="+openDir(t)), "/"
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := probe(-1); got != "users" {
		t.Errorf("with all that it needs: %s", got)
	}
	for name, c := range needs {
		if got := probe(c); !strings.Contains(got, sandbox.ErrUnavailable.Error()) {
			t.Errorf("without %s: %s", name, got)
		}
	}
}

// without says how mode users is probed for a user, by a process that has the
// capabilities of the other arguments only.
func without(args []string) int {
	if os.Getenv("SANDBOX_TEST_DROPPED") == "" {
		runtime.LockOSThread()
		for c := range 64 {
			if !slices.Contains(args[1:], strconv.Itoa(c)) {
				_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
			}
		}
		err := syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), "SANDBOX_TEST_DROPPED=1"))
		say(err)
		return 1
	}
	id := number(args[0])
	s, err := sandbox.Probe(context.Background(), sandbox.Options{Mode: users, Slot: sandbox.Slot{UID: id, GID: id}, Program: os.Getenv("SANDBOX_TEST_PROGRAM")})
	if err != nil {
		say(err)
		return 0
	}
	say(s.Mode())
	return 0
}
