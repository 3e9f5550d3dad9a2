package folders

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpen: a name that somebody else has chosen opens files and folders, and nothing
// that waits, does something, or is the kernel's.
func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	for _, err := range []error{
		unix.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("text"), 0o600),
		os.Symlink("file", filepath.Join(dir, "link")), os.Symlink("/dev/ptmx", filepath.Join(dir, "device")),
		os.Symlink("/proc/self", filepath.Join(dir, "self")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // which is silent
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for _, name := range []string{
		pipe, "/dev/ptmx", "/dev/null", filepath.Join(dir, "device"), "/dev/../proc", "/proc/self/environ", "/sys", "/sys/kernel",
		ofDescriptor(int(opened.Fd())), ofDescriptor(int(writer.Fd())), filepath.Join(dir, "self", "environ"), "/proc/self/root" + file,
	} {
		if file, err := Open(name); err == nil {
			t.Errorf("%s was opened", name)
			file.Close()
		}
	}
	for _, name := range []string{file, filepath.Join(dir, "link"), dir} {
		file, err := Open(name)
		if err != nil {
			t.Error(err)
			continue
		}
		file.Close()
	}
	if _, err := Open(filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

// TestSumsEnd: hashes are of each file once, and end with a context.
func TestSumsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := View{Cwd: "/nowhere", Own: []string{"/nowhere"}}
	sums, err := v.Sums(t.Context(), []string{file, filepath.Dir(file) + "/./file", "/dev/ptmx", "/proc/self/environ"})
	if err != nil || sums[file] == "" || sums["/dev/ptmx"] != "cannot be read" || sums["/proc/self/environ"] != "cannot be read" {
		t.Errorf("%v, %v", sums, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	for _, name := range []string{file, dir} {
		if sums, err := v.Sums(ctx, []string{name}); !errors.Is(err, over) {
			t.Errorf("%v, %v", sums, err)
		}
	}
	left := int64(2)
	one, err := sumOf(t.Context(), file, &left)
	if err != nil || left != 0 {
		t.Errorf("%v, %d bytes are left", err, left)
	}
	if other, err := sumOf(t.Context(), file, &left); err != nil || other == one {
		t.Errorf("%v: no bound", err)
	}
}

// TestMakeOurs: what a link leads to keeps its mode, as whoever owns the folder around
// it can put one there at any time.
func TestMakeOurs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "folder"), 0o500), os.Mkdir(filepath.Join(dir, "other"), 0o500),
		os.Symlink("other", filepath.Join(dir, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := makeOurs(unix.AT_FDCWD, filepath.Join(dir, "folder")); err != nil {
		t.Error(err)
	}
	if err := makeOurs(unix.AT_FDCWD, filepath.Join(dir, "link")); err == nil {
		t.Error("a link is taken for a folder")
	}
	for name, want := range map[string]os.FileMode{"folder": 0o700, "other": 0o500} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}
