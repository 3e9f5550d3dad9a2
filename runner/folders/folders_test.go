package folders_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/runner/folders"
)

// chain makes folders below one another, with a file in each, and returns the
// name of the first.
func chain(t *testing.T, dir string, depth int) string {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := unix.Mkdirat(fd, "d", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		fd = next
		file, err := unix.Openat(fd, "file", unix.O_WRONLY|unix.O_CREAT, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(file)
	}
	_ = unix.Close(fd)
	return filepath.Join(dir, "d")
}

// few makes the process run out of descriptors soon.
func few(t *testing.T, n uint64) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) })
}

// TestRemoveDeep removes what neither a path nor the process' descriptors are
// enough for.
func TestRemoveDeep(t *testing.T) { //nolint:paralleltest // it bounds the descriptors of the process
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const depth = 3_000
	chain(t, dir, depth)
	few(t, 256)
	if err := folders.Remove(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

// TestRemove removes what is awkward, and nothing that links lead to.
func TestRemove(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir, outside := filepath.Join(base, "work"), filepath.Join(base, "outside")
	file := filepath.Join(outside, "kept")
	for _, err := range []error{
		os.Mkdir(outside, 0o700), os.WriteFile(file, nil, 0o600),
		os.MkdirAll(filepath.Join(dir, "closed", "closed", "in it"), 0o700),
		os.WriteFile(filepath.Join(dir, "closed", "closed", "file"), nil, 0o400),
		os.Symlink(outside, filepath.Join(dir, "link")),
		os.Symlink(outside, filepath.Join(dir, "closed", "link")),
		unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
		os.Chmod(filepath.Join(dir, "closed", "closed"), 0o000),
		os.Chmod(filepath.Join(dir, "closed"), 0o500),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1200 {
		if err := os.MkdirAll(filepath.Join(dir, "wide", fmt.Sprint(i), "below"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := folders.Remove(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
	if _, err := os.Lstat(file); err != nil {
		t.Errorf("what a link led to: %v", err)
	}
	for _, name := range []string{dir, filepath.Join(dir, "no", "such")} {
		if err := folders.Remove(t.Context(), name); err != nil {
			t.Errorf("nothing to remove: %v", err)
		}
	}
	if err := os.Symlink(outside, dir); err != nil {
		t.Fatal(err)
	}
	if err := folders.Remove(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(file); err != nil {
		t.Errorf("what a link led to: %v", err)
	}
}

// TestEnds ends a walk, and a removal, whose context has ended.
func TestEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	chain(t, dir, 150)
	over, cause := errors.New("over"), context.Canceled
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if err := folders.Check(ctx, dir, folders.Workspace()); !errors.Is(err, over) {
		t.Errorf("walk: %v, want %v", err, cause)
	}
	if err := folders.Remove(ctx, dir); !errors.Is(err, over) {
		t.Errorf("removal: %v, want %v", err, cause)
	}
}

// TestBounds has folders at the bounds and beyond.
func TestBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	chain(t, dir, 20) // 20 folders, 20 files
	for _, c := range []struct {
		bounds folders.Bounds
		within bool
	}{
		{folders.Bounds{Depth: 20, Entries: 40}, true},
		{folders.Bounds{Depth: 19, Entries: 40}, false},
		{folders.Bounds{Depth: 20, Entries: 39}, false},
	} {
		err := folders.Check(t.Context(), dir, c.bounds)
		if within := err == nil; within != c.within || !within && !errors.Is(err, folders.ErrBounds) {
			t.Errorf("%+v: %v", c.bounds, err)
		}
	}
	if err := folders.Check(t.Context(), filepath.Join(dir, "nothing"), folders.Workspace()); err != nil {
		t.Errorf("no folder: %v", err)
	}
}

// TestChown refuses a file that has another name, and tells a long path shortly.
func TestChown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := filepath.Join(dir, strings.Repeat("a-long-name/", 100))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(deep, "first")
	if err := os.WriteFile(first, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := folders.Chown(t.Context(), dir, os.Getuid(), os.Getgid(), folders.Workspace()); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(first, filepath.Join(deep, "second")); err != nil {
		t.Fatal(err)
	}
	err := folders.Chown(t.Context(), dir, os.Getuid(), os.Getgid(), folders.Workspace())
	if err == nil || !strings.Contains(err.Error(), "has another name") || len(err.Error()) > 300 {
		t.Errorf("got %v", err)
	}
}
