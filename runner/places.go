package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
)

// A workspace has the same path for all attempts of a state location, so that
// code which reads its own path (abspath, path.cwd) means the same in the plan
// and in the apply:
//
//	workspaces/at-<hash of the location>/   in use by one attempt at a time
//	workspaces/<run>-<attempt>/             if that one is in use, or kept
//	workspaces/*/attempt                    whose it is
//	workspaces/*/work/                      what the engine can write: all else is the agent's
//	locations/<hash>                        locked while the first is in use
const (
	placePrefix = "at-"
	ownerFile   = "attempt"
	planName    = "plan.bin"
	homeDir     = "home" // in work/, as are the others
	tmpDir      = "tmp"
)

// place is a folder that belongs to one attempt until release.
type place struct {
	dir     string
	release func()
}

// takePlace returns an empty folder for an attempt. It has the location's path
// unless another attempt works there: one of this process that was given up but
// has not ended, or one of another process.
func (e *Executor) takePlace(a holdfast.Assignment) (place, error) {
	own := e.ownDir(a.AttemptRef)
	if err := folders.RemoveAll(own); err != nil {
		return place{}, fmt.Errorf("clear workspace: %w", err)
	}
	if a.StateLocation != "" {
		p, err := e.takeLocation(a)
		if err == nil {
			return p, nil
		}
		if failure.DiskFull(err) {
			return place{}, err
		}
		e.opts.Logger.Warn("workspace has a path of its own", "cluster", a.Cluster, "run", a.Run, "err", err)
	}
	if err := e.ownFolder(own, a.AttemptRef); err != nil {
		return place{}, err
	}
	return place{dir: own, release: func() {}}, nil
}

// takeLocation takes the folder of the assignment's state location.
func (e *Executor) takeLocation(a holdfast.Assignment) (place, error) {
	hash := strings.TrimPrefix(string(holdfast.DigestOf([]byte(a.StateLocation))), "sha256:")[:24]
	lock, err := os.OpenFile(filepath.Join(e.opts.WorkDir, locationsDir, hash), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return place{}, fmt.Errorf("lock workspace: %w", err)
	}
	release := func() {
		// A process that is just being started still has a copy of the file:
		// closing ours would leave it locked for an instant.
		_ = syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)
		_ = lock.Close()
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		release()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("another attempt works on %s: %w", a.StateLocation, holdfast.ErrLocked)
		}
		return place{}, fmt.Errorf("lock workspace: %w", err)
	}
	dir := filepath.Join(e.opts.WorkDir, workspacesDir, placePrefix+hash)
	err = e.clearLeftover(dir)
	if err == nil {
		err = e.ownFolder(dir, a.AttemptRef)
	}
	if err != nil {
		release()
		return place{}, err
	}
	return place{dir: dir, release: release}, nil
}

// clearLeftover empties the place of a dead attempt that nobody has brought to
// its end. A state that its engine could not save is put aside, not removed.
func (e *Executor) clearLeftover(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	killLeftovers(dir)
	state, err := rescue(dir)
	if err != nil {
		return fmt.Errorf("clear workspace: %w", err)
	}
	if state != nil {
		aside, err := e.setAside(dir)
		if err != nil {
			return fmt.Errorf("clear workspace: %w", err)
		}
		e.opts.Logger.Error("workspace kept: it holds an unsaved state", "err", errors.New("keep "+aside))
		return nil
	}
	if err := e.discard(dir); err != nil {
		return fmt.Errorf("clear workspace: %w", err)
	}
	return nil
}

// setAside gives a workspace that must not be lost the path of its attempt, and
// returns it.
func (e *Executor) setAside(dir string) (string, error) {
	_ = os.Chmod(dir, 0o700) //nolint:gosec // no engine still needs it
	name := ownerOf(dir)
	if !safeID.MatchString(name) || strings.HasPrefix(name, placePrefix) {
		name = "unknown"
	}
	target := filepath.Join(e.opts.WorkDir, workspacesDir, name)
	for i := 2; target != dir; i++ {
		if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
			return target, os.Rename(dir, target)
		}
		target = filepath.Join(e.opts.WorkDir, workspacesDir, fmt.Sprintf("%s.%d", name, i))
	}
	return dir, nil
}

// ownFolder makes dir and writes down whose it is, before anything else is in it.
func (e *Executor) ownFolder(dir string, ref holdfast.AttemptRef) error {
	if err := os.MkdirAll(dir, e.passable()); err != nil {
		return fmt.Errorf("make workspace: %w", err)
	}
	if err := os.Chmod(dir, e.passable()); err != nil {
		return fmt.Errorf("make workspace: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ownerFile), []byte(ownerName(ref)), 0o600); err != nil {
		_ = folders.RemoveAll(dir)
		return fmt.Errorf("make workspace: %w", err)
	}
	return nil
}

func ownerName(ref holdfast.AttemptRef) string {
	return fmt.Sprintf("%s-%d", filepath.Base(ref.Run), ref.Attempt)
}

// ownerOf returns the name of the attempt that a workspace belongs to, empty if
// it does not say.
func ownerOf(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if err != nil {
		return ""
	}
	return string(data)
}

// ownDir is the folder for an attempt when it cannot have its location's.
func (e *Executor) ownDir(ref holdfast.AttemptRef) string {
	return filepath.Join(e.opts.WorkDir, workspacesDir, ownerName(ref))
}

// WorkspaceDir returns the folder, below WorkDir, in which an attempt is or was
// executed. It does not exist before and once the attempt has ended.
func (e *Executor) WorkspaceDir(ref holdfast.AttemptRef) string {
	name := ownerName(ref)
	places, _ := filepath.Glob(filepath.Join(e.opts.WorkDir, workspacesDir, placePrefix+"*"))
	for _, dir := range places {
		if ownerOf(dir) == name {
			return dir
		}
	}
	return e.ownDir(ref)
}
