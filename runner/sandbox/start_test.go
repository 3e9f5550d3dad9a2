//go:build linux

package sandbox_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// slot is a user that nobody else is on machines that run tests.
var slot = sandbox.Slot{UID: 70001, GID: 70001}

// TestStart starts an engine in a workspace and looks at what it was given.
func TestStart(t *testing.T) {
	t.Parallel()
	modes := []sandbox.Mode{sandbox.ModeNone}
	if os.Geteuid() == 0 {
		modes = append(modes, sandbox.ModeSlots)
	}
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			s, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: mode, Slot: slot})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := s.Give(dir, slot); err != nil {
				t.Fatal(err)
			}
			at := dir
			if mode.OwnRoot() {
				at = "/workspace"
			}
			var out bytes.Buffer
			exit, err := s.Run(t.Context(), sandbox.Command{
				Path: "/bin/sh", Args: []string{"-c", `pwd; echo "$A"; echo made >made; exit 3`},
				Dir: at, Env: map[string]string{"A": "b"}, Slot: slot,
				Mounts: []sandbox.Mount{{Source: dir, Target: "/workspace", Writable: true}},
				Stdout: &out, Stderr: &out,
			})
			if err != nil || exit.Code != 3 || exit.Signal != 0 {
				t.Fatalf("got %+v, %v, want exit code 3; it said:\n%s", exit, err, &out)
			}
			if want := at + "\nb\n"; out.String() != want {
				t.Errorf("it said %q, want %q", &out, want)
			}
			taken := filepath.Join(t.TempDir(), "taken")
			if err := s.Take(dir, "made", slot, 5, taken); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(taken); err != nil || string(b) != "made\n" {
				t.Errorf("got %q, %v", b, err)
			}
			if err := s.Take(dir, "made", slot, 4, taken+"2"); err == nil || !strings.Contains(err.Error(), "5 bytes, more than 4") {
				t.Errorf("a file that is too large: got %v", err)
			}
		})
	}
}
