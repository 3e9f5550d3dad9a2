package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/holdfast-dev/holdfast/runner/folders"
)

// errNotRegular is of a file that is something else than a regular file.
var errNotRegular = errors.New("not a regular file")

// Give makes slot the owner of dir and everything below it, before an engine
// starts there; where the mode has no user for a slot it does nothing. No
// process of the slot may be alive. A file with a second name is refused: the
// other name can be somebody else's. So is what is beyond folders.Workspace, with
// folders.ErrBounds.
func (s *Starter) Give(ctx context.Context, dir string, slot Slot) error {
	if !s.Mode().OwnUser() {
		return nil
	}
	if slot.UID <= 0 || slot.GID <= 0 {
		return fmt.Errorf("give %s: mode %s needs a user of the slot", dir, s.Mode())
	}
	if err := folders.Chown(ctx, dir, slot.UID, slot.GID, folders.Workspace()); err != nil {
		return fmt.Errorf("give %s to user %d: %w", dir, slot.UID, err)
	}
	return nil
}

// Admit lets the engine of slot pass through dir, a folder of the agent's with what one
// run is given, and no other slot's. It lists nothing.
func (s *Starter) Admit(dir string, slot Slot) error {
	if !s.Mode().OwnUser() || s.Mode().OwnRoot() {
		return nil
	}
	err := os.Chown(dir, -1, slot.GID)
	if err == nil {
		err = os.Chmod(dir, 0o710) //nolint:gosec // for the group of one slot
	}
	if err != nil {
		return fmt.Errorf("open %s to user %d: %w", dir, slot.UID, err)
	}
	return nil
}

// Show lets the engine of slot read a file of the agent's, and no other slot's. Nobody
// writes it.
func (s *Starter) Show(file *os.File, slot Slot) error {
	mode := os.FileMode(0o400)
	if s.Mode().OwnUser() {
		if err := file.Chown(-1, slot.GID); err != nil {
			return err
		}
		mode = 0o440
	}
	return file.Chmod(mode)
}

// ShowFolder lets the engine of slot list a folder of the agent's and pass through it, and no
// other slot's. Nobody but the agent writes it; what is in it has to be shown for itself.
func (s *Starter) ShowFolder(dir string, slot Slot) error {
	if !s.Mode().OwnUser() {
		return nil
	}
	err := os.Chown(dir, -1, slot.GID)
	if err == nil {
		err = os.Chmod(dir, 0o750) //nolint:gosec // for the group of one slot
	}
	if err != nil {
		return fmt.Errorf("show folder to user %d: %w", slot.UID, err)
	}
	return nil
}

// Open opens a file that an engine made: name below dir, which the slot's user
// can write. It is an error unless the file is regular, reached without links,
// has one name only, belongs to the slot's user (to the agent's, where the mode
// has none for a slot) and has at most limit bytes.
func (s *Starter) Open(dir, name string, slot Slot, limit int64) (*os.File, error) {
	file, err := open(dir, name)
	if err != nil {
		return nil, fmt.Errorf("take %s: %w", name, err)
	}
	if err := s.check(file, slot, limit); err != nil {
		file.Close()
		return nil, fmt.Errorf("take %s: %w", name, err)
	}
	return file, nil
}

func (s *Starter) check(file *os.File, slot Slot, limit int64) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	owner := os.Geteuid()
	if s.Mode().OwnUser() {
		owner = slot.UID
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular() || !ok:
		return errNotRegular
	case stat.Nlink != 1:
		return fmt.Errorf("it has %d names", stat.Nlink)
	case int(stat.Uid) != owner:
		return fmt.Errorf("it belongs to user %d, not %d", stat.Uid, owner)
	case info.Size() > limit:
		return fmt.Errorf("it has %d bytes, more than %d", info.Size(), limit)
	}
	return nil
}

// Take copies a file that an engine made, as Open checks it, to a new file of
// the agent's: to must not exist. The slot's engine can read it (see Show), so that
// it can be mounted for another start.
func (s *Starter) Take(dir, name string, slot Slot, limit int64, to string) error {
	from, err := s.Open(dir, name, slot, limit)
	if err != nil {
		return err
	}
	defer from.Close()
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("take %s: %w", name, err)
	}
	n, err := io.Copy(file, io.LimitReader(from, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("it grew beyond %d bytes", limit)
	}
	if err == nil {
		err = s.Show(file, slot)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(to)
		return fmt.Errorf("take %s to %s: %w", name, filepath.Base(to), err)
	}
	return nil
}
