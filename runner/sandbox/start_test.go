//go:build linux

package sandbox_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/folders"
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
				Path: "/bin/sh", Args: []string{"-c", `pwd; echo "$A" >/dev/stdout; echo made >made; exit 3`},
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

// TestStartCountsItsOwn starts an engine with few processes while others of the same agent
// have more: only its own count.
func TestStartCountsItsOwn(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		if !mode.CountsProcesses() {
			continue
		}
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, mode)
			for range 12 {
				peer(t, l)
			}
			for range 3 {
				c := l.command("whoami")
				c.Limits.Processes = 32
				if exit, said := l.run(t, c); exit.Code != 0 {
					t.Errorf("%+v: %s", exit, said)
				}
			}
		})
	}
}

// TestStartReplaces mounts over what every sandbox has.
func TestStartReplaces(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		if !mode.OwnRoot() {
			continue
		}
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, mode)
			hosts := filepath.Join(openDir(t), "hosts")
			if err := os.WriteFile(hosts, []byte("127.0.0.1 mine\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(hosts, 0o644); err != nil {
				t.Fatal(err)
			}
			c := l.command("")
			c.Path, c.Args = "/bin/cat", []string{"/etc/hosts", "/etc/passwd"}
			c.Mounts = append(c.Mounts, sandbox.Mount{Source: hosts, Target: "/etc/hosts"}, sandbox.Mount{Source: hosts, Target: "/etc/passwd"})
			exit, said := l.run(t, c)
			if want := "127.0.0.1 mine\n127.0.0.1 mine\n"; exit.Code != 0 || said != want {
				t.Errorf("%+v: it said %q, want %q", exit, said, want)
			}
			c = l.command("")
			c.Path, c.Args = "/bin/sh", []string{"-c", "test -e /etc/shadow || test -c /dev/null"}
			c.Mounts = append(c.Mounts, sandbox.Mount{Source: "/etc"}, sandbox.Mount{Source: "/dev"})
			if exit, said := l.run(t, c); exit.Code != 0 {
				t.Errorf("all of /etc: %+v: %s", exit, said)
			}
		})
	}
}

// TestStartOutput has an output that cannot be written: what is left of it is
// not taken for all of it.
func TestStartOutput(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, mode)
			c := l.command("whoami")
			c.Stdout = full{}
			if exit, err := l.Run(t.Context(), c); !errors.Is(err, errFull) {
				t.Errorf("got %+v, %v, want %v", exit, err, errFull)
			}
		})
	}
}

// full is a writer of a disk that is full.
type full struct{}

var errFull = errors.New("no space")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestStartRemovesWhatIsLeft: what a slot's user has in /tmp is removed before a start, whoever has
// died meanwhile, and what the start is given stays, as does what is another user's.
func TestStartRemovesWhatIsLeft(t *testing.T) {
	t.Parallel()
	if !slices.Contains(modes(t), users) {
		t.Log("no mode in which users share a /tmp")
		return
	}
	l := newLab(t, users)
	other := newSlot(t)
	make := func(uid int) string {
		dir, err := os.MkdirTemp("/tmp", "sandbox-test-left-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = folders.RemoveAll(dir) })
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), folders.Chown(t.Context(), dir, uid, uid, folders.Workspace())); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	left, given, foreign := make(l.slot.UID), make(l.slot.UID), make(other.UID)
	c := l.command("read", filepath.Join(given, "file"))
	c.Mounts = append(c.Mounts, sandbox.Mount{Source: given, Writable: true})
	if exit, said := l.run(t, c); exit.Code != attackWorked {
		t.Errorf("%+v: %s", exit, said)
	}
	for _, dir := range []string{given, foreign} {
		if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(left); err == nil {
		t.Error("what was left is there")
	}
}
