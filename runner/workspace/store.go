// Which workspace an attempt gets.

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/flock"
	"github.com/holdfast-dev/holdfast/protocol"
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
	locationPrefix = "at-"
	ownerFile      = "attempt"
	PlanName       = "plan.bin"
	HomeDir        = "home" // in work/, as are the others
	TmpDir         = "tmp"
)

// Folders of a store's.
const (
	workspacesDir = "workspaces"
	locationsDir  = "locations"
	discardedDir  = "discarded" // what is being removed
)

// SafeName reports whether name is safe as the name of a file: at most 128 bytes, and none
// that leads elsewhere.
func SafeName(name string) bool { return len(name) <= 128 && safeName.MatchString(name) }

var safeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Store hands workspaces out, one to each attempt. It is safe for
// concurrent use; one process has its folder at a time.
type Store struct {
	dir    string
	logger *slog.Logger

	discarding sync.Mutex // held while something in discardedDir is removed
}

// NewStore returns the store in dir, and makes its folders. Workspaces lie in one of
// mode, for engines to pass through.
func NewStore(dir string, mode fs.FileMode, logger *slog.Logger) (*Store, error) {
	for name, mode := range map[string]fs.FileMode{workspacesDir: mode, locationsDir: 0o700, discardedDir: 0o700} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, mode); err != nil {
			return nil, err
		}
		if err := os.Chmod(path, mode); err != nil {
			return nil, err
		}
	}
	return &Store{dir: dir, logger: logger}, nil
}

// Shut keeps engines out of the workspaces of dead attempts: what is in them can
// belong to the user that the engine of another run is next. Nobody has taken one yet.
func (w *Store) Shut() {
	dirs, _ := filepath.Glob(filepath.Join(w.dir, workspacesDir, "*"))
	for _, dir := range dirs {
		if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // no engine still needs it
			w.logger.Warn("workspace of a dead attempt stays open", "err", err)
		}
	}
}

// Folder is a folder that belongs to one attempt until release.
type Folder struct {
	Dir     string
	Release func()
}

// Take returns an empty folder for an attempt. It has the location's path
// unless another attempt works there: one of this process that was given up but
// has not ended, or one of another process.
func (w *Store) Take(a protocol.Assignment) (Folder, error) {
	own := w.OwnDir(a.AttemptRef)
	if err := folders.RemoveAll(own); err != nil {
		return Folder{}, fmt.Errorf("clear workspace: %w", err)
	}
	if a.StateLocation != "" {
		p, err := w.takeLocation(a)
		if err == nil {
			return p, nil
		}
		if failure.DiskFull(err) {
			return Folder{}, err
		}
		w.logger.Warn("workspace is at another path than usual", "cluster", a.Cluster, "run", a.Run, "err", err)
	}
	if err := w.ownFolder(own, a.AttemptRef); err != nil {
		return Folder{}, err
	}
	return Folder{Dir: own, Release: func() {}}, nil
}

// takeLocation takes the folder of the assignment's state location.
func (w *Store) takeLocation(a protocol.Assignment) (Folder, error) {
	hash := strings.TrimPrefix(string(holdfast.DigestOf([]byte(a.StateLocation))), "sha256:")[:24]
	lock, err := os.OpenFile(filepath.Join(w.dir, locationsDir, hash), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return Folder{}, fmt.Errorf("lock workspace: %w", err)
	}
	release := func() { _ = flock.Release(lock) }
	if err := flock.Exclusive(lock); err != nil {
		release()
		if errors.Is(err, flock.ErrHeld) {
			err = fmt.Errorf("another attempt works on %s: %w", a.StateLocation, holdfast.ErrLocked)
		}
		return Folder{}, fmt.Errorf("lock workspace: %w", err)
	}
	dir := filepath.Join(w.dir, workspacesDir, locationPrefix+hash)
	err = w.clearLeftover(dir)
	if err == nil {
		err = w.ownFolder(dir, a.AttemptRef)
	}
	if err != nil {
		release()
		return Folder{}, err
	}
	return Folder{Dir: dir, Release: release}, nil
}

// clearLeftover empties the place of a dead attempt that nobody has brought to
// its end. A state that its engine could not save is put aside, not removed.
func (w *Store) clearLeftover(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	KillLeftovers(dir)
	state, err := Rescue(dir)
	if err != nil && !errors.Is(err, ErrUnusable) {
		return fmt.Errorf("clear workspace: %w", err)
	}
	if state != nil || err != nil {
		aside, err := SetAside(dir)
		if err != nil {
			return fmt.Errorf("clear workspace: %w", err)
		}
		w.logger.Error("workspace kept: it holds an unsaved state", "err", errors.New("keep "+aside))
		return nil
	}
	if err := w.Discard(dir); err != nil {
		return fmt.Errorf("clear workspace: %w", err)
	}
	return nil
}

// SetAside gives a workspace that must not be lost the path of its attempt, and
// returns it.
func (w *Store) SetAside(dir string) (string, error) { return SetAside(dir) }

// SetAside is Store.SetAside for whoever has no Store.
func SetAside(dir string) (string, error) {
	_ = os.Chmod(dir, 0o700) //nolint:gosec // no engine still needs it
	name := ownerOf(dir)
	if !SafeName(name) || strings.HasPrefix(name, locationPrefix) {
		name = "unknown"
	}
	target := filepath.Join(filepath.Dir(dir), name)
	for i := 2; target != dir; i++ {
		if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
			return target, os.Rename(dir, target)
		}
		target = filepath.Join(filepath.Dir(dir), fmt.Sprintf("%s.%d", name, i))
	}
	return dir, nil
}

// ownFolder makes dir and writes down whose it is, before anything else is in it.
func (w *Store) ownFolder(dir string, ref holdfast.AttemptRef) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
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

// OwnDir is the folder for an attempt when it cannot have its location's.
func (w *Store) OwnDir(ref holdfast.AttemptRef) string {
	return filepath.Join(w.dir, workspacesDir, ownerName(ref))
}

// Of returns the folder, below WorkDir, in which an attempt is or was
// executed. It does not exist before and once the attempt has ended.
func (w *Store) Of(ref holdfast.AttemptRef) string {
	name := ownerName(ref)
	dirs, _ := filepath.Glob(filepath.Join(w.dir, workspacesDir, locationPrefix+"*"))
	for _, dir := range dirs {
		if ownerOf(dir) == name {
			return dir
		}
	}
	return w.OwnDir(ref)
}
