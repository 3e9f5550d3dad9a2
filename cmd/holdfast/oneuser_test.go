package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/flock"
)

// TestMarkUser: agents of one user all plan, or all apply.
func TestMarkUser(t *testing.T) {
	t.Parallel()
	tmp, uid := t.TempDir(), os.Getuid()
	mark := func(applies bool) *os.File {
		t.Helper()
		file, err := markUser(tmp, uid, applies)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, applies := range []bool{false, true} {
		one, two := mark(applies), mark(applies)
		for range 2 {
			if _, err := markUser(tmp, uid, !applies); !errors.Is(err, errOneUser) {
				t.Errorf("applies: %t: an agent for the other kind: %v", applies, err)
			}
			if err := flock.Release(one); err != nil { // the other one lives on
				t.Fatal(err)
			}
			one = mark(applies)
		}
		if err := errors.Join(flock.Release(one), flock.Release(two)); err != nil {
			t.Fatal(err)
		}
	}
}

// A folder that somebody else could open, or has put there, marks nobody.
func TestMarkOfAnotherUser(t *testing.T) {
	t.Parallel()
	tmp, uid := t.TempDir(), os.Getuid()
	for name, put := range map[string]func(dir string) error{
		"open":   func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o755)) }, //nolint:gosec // that is the fault
		"a link": func(dir string) error { return os.Symlink(t.TempDir(), dir) },
		"a file": func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	} {
		sub := filepath.Join(tmp, name)
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		if file, err := markUser(sub, uid+1, false); err == nil {
			t.Errorf("%s: a folder of another user: %v", name, file.Name())
		}
		if err := os.RemoveAll(markFolder(sub, uid+1)); err != nil {
			t.Fatal(err)
		}
		if err := put(markFolder(sub, uid)); err != nil {
			t.Fatal(err)
		}
		if file, err := markUser(sub, uid, false); err == nil {
			t.Errorf("%s: %v", name, file.Name())
		}
	}
}
