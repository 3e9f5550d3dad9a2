package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/durable"
	"github.com/holdfast-dev/holdfast/internal/flock"
)

// Home is the folder of a store, which nobody else has until Close.
type Home struct {
	path       string
	remembered string // the identity of the database that has the records; empty: SQLite, or none yet
	lock       *flock.Lock
}

// OpenSQLite makes the file of a database and its folder, so that neither is for others'
// eyes, and takes the folder. It is an ErrLocked if another process has it.
func OpenSQLite(path string, now time.Time) (*Home, error) {
	remembered, err := identity(path)
	if err == nil && remembered != "" {
		err = fmt.Errorf("the records of this data folder are in the PostgreSQL database with the identity %s: "+
			"set datastore.url, or start with another data folder", remembered)
	}
	if err == nil {
		path, err = prepareFile(path)
	}
	if err != nil {
		return nil, err
	}
	return take(path, "", now)
}

// OpenElsewhere is OpenSQLite for records in another database: there is no file of one.
func OpenElsewhere(path string, now time.Time) (*Home, error) {
	remembered, err := identity(path)
	if err == nil {
		path, err = prepareFolder(path)
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 && remembered == "" {
		return nil, fmt.Errorf("this data folder has records in SQLite, in %s, which would be left behind: remove datastore.url "+
			"to keep using them, or start with another data folder, or move the files of db/ away to begin again", path)
	}
	return take(path, remembered, now)
}

func take(path, remembered string, now time.Time) (*Home, error) {
	lock, err := flock.Hold(path+".lock", now)
	if errors.Is(err, flock.ErrHeld) {
		return nil, fmt.Errorf("%w: only one server may open a database: %w", err, holdfast.ErrLocked)
	} else if err != nil {
		return nil, err
	}
	return &Home{path: path, remembered: remembered, lock: lock}, nil
}

// Path is the one true path of the SQLite file, or of where it would be: two links to a
// database are one database.
func (h *Home) Path() string { return h.path }

// Close lets the folder go.
func (h *Home) Close() error { return h.lock.Release() }

// Remember records in the folder which database has its records, by its identity. It is an
// error if that is another one, and reports whether the folder is new to it.
func (h *Home) Remember(database string) (added bool, err error) {
	switch h.remembered {
	case database:
		return false, nil
	case "":
		if err := writeMark(markOf(h.path), database); err != nil {
			return false, fmt.Errorf("remember which database the records are in: %w", err)
		}
		return true, nil
	default:
		return false, fmt.Errorf("the records of this data folder are in the database with the identity %s, and this one has %s: "+
			"look at datastore.url, or start with another data folder", h.remembered, database)
	}
}

// HandOver marks a folder with records in SQLite as that of the database that they were copied
// to. The file, which nobody may have open, gets another name, which is returned. A crash in
// between leaves it under its old one, and the folder is refused without the new database all
// the same.
func (h *Home) HandOver(database string, now time.Time) (kept string, err error) {
	if _, err := h.Remember(database); err != nil {
		return "", err
	}
	kept = h.path + ".copied-" + now.UTC().Format("20060102T150405Z")
	for _, suffix := range []string{"-wal", "-shm", ""} { // SQLite finds them by the name
		err := os.Rename(h.path+suffix, kept+suffix)
		if err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return "", fmt.Errorf("rename the SQLite file, which is not used from now on: %w", err)
		}
	}
	return kept, durable.SyncDir(filepath.Dir(h.path))
}

// Place names the folder on this machine, as long as the machine is up: who has the folder
// knows that nobody else does. A copy of it has another name. Empty: the system does not say.
func (h *Home) Place() string {
	boot := durable.Boot()
	info, err := os.Stat(h.path + ".lock")
	if err != nil || boot == "" {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return holdfast.DigestOf(fmt.Appendf(nil, "%s %d %d", boot, stat.Dev, stat.Ino)).Short()
}

// markOf is the file, next to where that of SQLite would be, with the identity of the
// database that has the records instead.
func markOf(path string) string { return filepath.Join(filepath.Dir(path), "postgres") }

func identity(path string) (string, error) {
	data, err := os.ReadFile(markOf(path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("read which database the records are in: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

func writeMark(path, identity string) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, identity)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// timelineOf is the file, next to the mark, with the newest timeline of that database.
func timelineOf(path string) string { return markOf(path) + ".timeline" }

// Timeline is the newest timeline that was seen of the database that has the records; empty: none was.
func (h *Home) Timeline() (string, error) {
	data, err := os.ReadFile(timelineOf(h.path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("read the newest timeline of the database: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// RememberTimeline has the folder remember a newer one.
func (h *Home) RememberTimeline(timeline string) error {
	if err := writeMark(timelineOf(h.path), timeline); err != nil {
		return fmt.Errorf("remember the newest timeline of the database: %w", err)
	}
	return nil
}

// prepareFolder creates the folder of a file for its owner only.
func prepareFolder(path string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	dir, err = filepath.EvalSymlinks(dir)
	return filepath.Join(dir, filepath.Base(path)), err
}

func prepareFile(path string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}
