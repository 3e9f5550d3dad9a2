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

// TestStart starts an engine in a workspace and looks at what it was given.
func TestStart(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, mode)
			s, dir, at := l.Starter, l.dir, l.at
			var out bytes.Buffer
			exit, err := s.Run(t.Context(), sandbox.Command{
				Path: "/bin/sh", Args: []string{"-c", `pwd; echo "$A"; echo made >made; exit 3`},
				Dir: at, Env: map[string]string{"A": "b"}, Slot: l.slot,
				Mounts: []sandbox.Mount{{Source: dir, Target: "/workspace", Writable: true}},
				Stdout: &out, Stderr: &out,
			})
			if err != nil || exit.Code != 3 || exit.Signal != 0 {
				t.Fatalf("got %+v, %v, want exit code 3; it said:\n%s", exit, err, &out)
			}
			if want := at + "\nb\n"; out.String() != want {
				t.Errorf("it said %q, want %q", &out, want)
			}
			taken := filepath.Join(openDir(t), "taken")
			if err := s.Take(dir, "made", l.slot, 5, taken); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(taken); err != nil || string(b) != "made\n" {
				t.Errorf("got %q, %v", b, err)
			}
			if err := s.Take(dir, "made", l.slot, 4, taken+"2"); err == nil || !strings.Contains(err.Error(), "5 bytes, more than 4") {
				t.Errorf("a file that is too large: got %v", err)
			}
		})
	}
}
