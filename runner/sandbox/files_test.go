//go:build linux

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// TestTakeRefuses takes what an engine can leave in the place of a file.
func TestTakeRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leave func(path string) error
		want  string
	}{
		"nothing":  {func(string) error { return nil }, "no such file"},
		"a folder": {func(path string) error { return os.Mkdir(path, 0o700) }, "not a regular file"},
		"a FIFO":   {func(path string) error { return unix.Mkfifo(path, 0o600) }, "not a regular file"},
		"a link":   {func(path string) error { return os.Symlink("/etc/passwd", path) }, "not a regular file"},
		"an inner link": {func(path string) error {
			return firstError(os.WriteFile(path+"-real", nil, 0o600), os.Symlink(filepath.Base(path)+"-real", path))
		}, "not a regular file"},
		"a hard link": {func(path string) error {
			return firstError(os.WriteFile(path+"-real", nil, 0o600), os.Link(path+"-real", path))
		}, "2 names"},
		"too large": {func(path string) error { return os.WriteFile(path, make([]byte, 11), 0o600) }, "11 bytes, more than 10"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := starter(t)
			dir := t.TempDir()
			if err := test.leave(filepath.Join(dir, "plan")); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), "taken")
			err := s.Take(dir, "plan", sandbox.Slot{}, 10, to)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if _, err := os.Lstat(to); err == nil {
				t.Error("there is a file of it")
			}
		})
	}
}

// TestTakeFolder has a link on the way to the file, and a way out.
func TestTakeFolder(t *testing.T) {
	t.Parallel()
	s := starter(t)
	dir, outside := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(outside, "plan"), nil, 0o600),
		os.Symlink(outside, filepath.Join(dir, "link")),
		os.Mkdir(filepath.Join(dir, "real"), 0o700),
		os.WriteFile(filepath.Join(dir, "real", "plan"), []byte("x"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, ok := range map[string]bool{
		"real/plan": true, "link/plan": false, "../" + filepath.Base(outside) + "/plan": false, filepath.Join(outside, "plan"): false,
	} {
		file, err := s.Open(dir, name, sandbox.Slot{}, 10)
		if (err == nil) != ok {
			t.Errorf("%s: got %v", name, err)
		}
		if err == nil {
			file.Close()
		}
	}
}

// TestTakeForeign takes a file of another user than the slot's.
func TestTakeForeign(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("not root: nobody to give a file to")
		return
	}
	for _, mode := range modes(t) {
		if !mode.OwnUser() {
			continue
		}
		l := newLab(t, mode)
		stranger := newSlot(t)
		path := filepath.Join(l.dir, "plan")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, uid := range []int{0, stranger.UID} {
			if err := os.Chown(path, uid, uid); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Open(l.dir, "plan", l.slot, 10); err == nil || !strings.Contains(err.Error(), "belongs to user") {
				t.Errorf("%s: a file of user %d: got %v", mode, uid, err)
			}
		}
	}
}

// TestGive gives a workspace to a slot: links are not followed, and a file with
// a second name is not given.
func TestGive(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("not root: nobody to give a workspace to")
		return
	}
	for _, mode := range modes(t) {
		if !mode.OwnUser() {
			continue
		}
		t.Run(string(mode), func(t *testing.T) {
			l := newLab(t, mode)
			outside := filepath.Join(openDir(t), "file")
			if err := firstError(
				os.WriteFile(outside, nil, 0o600),
				os.MkdirAll(filepath.Join(l.dir, "a", "b"), 0o700),
				os.WriteFile(filepath.Join(l.dir, "a", "b", "file"), nil, 0o600),
				os.Symlink(outside, filepath.Join(l.dir, "a", "link")),
			); err != nil {
				t.Fatal(err)
			}
			if err := l.Give(t.Context(), l.dir, l.slot); err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string]int{outside: 0, l.dir: l.slot.UID, l.dir + "/a/b/file": l.slot.UID, l.dir + "/a/link": l.slot.UID} {
				var stat unix.Stat_t
				if err := unix.Lstat(path, &stat); err != nil || int(stat.Uid) != want {
					t.Errorf("%s belongs to %d, %v, want %d", path, stat.Uid, err, want)
				}
			}
			if err := os.Link(outside, filepath.Join(l.dir, "second")); err != nil {
				t.Fatal(err)
			}
			if err := l.Give(t.Context(), l.dir, l.slot); err == nil || !strings.Contains(err.Error(), "second has another name") {
				t.Errorf("got %v", err)
			}
			if err := l.Give(t.Context(), l.dir, sandbox.Slot{}); err == nil {
				t.Error("a workspace is given to the agent as a slot")
			}
		})
	}
}

func starter(t *testing.T) *sandbox.Starter {
	t.Helper()
	s, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: sandbox.ModeNone})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
