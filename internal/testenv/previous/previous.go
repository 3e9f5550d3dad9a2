package previous

import (
	"archive/tar"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/flock"
)

//go:embed COMMIT
var commit string

// Commit is the last one of the previous protocol.
func Commit() string { return strings.TrimSpace(commit) }

// Build returns the path of the program, which is built unless an earlier test did.
func Build() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "holdfast-test", "previous", Commit()+"-"+runtime.Version()+"-"+runtime.GOOS+"-"+runtime.GOARCH)
	program := filepath.Join(dir, "holdfast")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // agents may be other users
		return "", err
	}
	unlock, err := flock.Wait(context.Background(), filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(program); err == nil { // somebody else has built it
		return program, nil
	}
	source := filepath.Join(dir, "source")
	defer os.RemoveAll(source)
	if err := errors.Join(os.RemoveAll(source), checkOut(source)); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", program+".new", "./cmd/holdfast")
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build holdfast of commit %s: %w\n%s", Commit(), err, out)
	}
	return program, os.Rename(program+".new", program)
}

// checkOut writes the commit's files into a folder.
func checkOut(dir string) error {
	var archive, said bytes.Buffer
	git := exec.Command("git", "-c", "core.fsmonitor=false", "archive", "--format=tar", Commit())
	git.Stdout, git.Stderr = &archive, &said
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err == nil { // an archive is of the folder that it is asked for in
		git.Dir = strings.TrimSpace(string(top))
	}
	if err := git.Run(); err != nil {
		return fmt.Errorf("the commit %s of the previous protocol is not in this clone: fetch the whole history (git fetch --unshallow): %w: %s",
			Commit(), err, said.String())
	}
	return unpack(dir, &archive)
}

func unpack(dir string, archive io.Reader) error {
	for files := tar.NewReader(archive); ; {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		path := filepath.Join(dir, head.Name) //nolint:gosec // it is our own history
		switch head.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755) //nolint:gosec // nothing is secret there
		case tar.TypeReg:
			err = write(path, files, head.FileInfo().Mode())
		case tar.TypeSymlink:
			err = os.Symlink(head.Linkname, path)
		}
		if err != nil {
			return err
		}
	}
}

func write(path string, from io.Reader, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // nothing is secret there
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode.Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from) //nolint:gosec // it is our own history
	return errors.Join(err, f.Close())
}
