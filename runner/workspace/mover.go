// What is moved from one workspace to another.

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Mover moves what one folder has and another has not, if it is named.
type Mover struct {
	Base     *os.Root
	From, To string // folders in it
	// Named reports whether a file, link or folder is named; Kept, whether something of
	// that name stays where it is unless it is in a named folder.
	Named, Kept func(name string) bool

	Left  int      // how many files and links were not moved
	First []string // some of them
	links []string // that were moved
}

// Move moves all of that.
func (m *Mover) Move(ctx context.Context) error {
	return errors.Join(m.move(ctx, ".", false, false), m.removeLinks())
}

// move moves what is in a folder, which is in both, or new, or new and named. What is
// in a named one moves with it, except for links that lead out of the bundle: what is
// uploaded or read by that name would be a file of the machine.
func (m *Mover) move(ctx context.Context, dir string, isNew, isNamed bool) error {
	entries, err := m.entries(dir)
	if err != nil {
		return err
	}
	if isNamed {
		if err := m.Base.MkdirAll(filepath.Join(m.To, dir), 0o700); err != nil {
			return err
		}
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := filepath.Join(dir, entry.Name())
		if m.Kept(entry.Name()) && !isNamed {
			continue
		}
		there, err := m.Base.Lstat(filepath.Join(m.To, name))
		missing := isNew || errors.Is(err, fs.ErrNotExist)
		named := isNamed || missing && m.Named(name)
		switch {
		case entry.IsDir() && (missing || err == nil && there.IsDir()):
			err = m.move(ctx, name, missing, named)
		case missing && named:
			if entry.Type()&fs.ModeSymlink != 0 {
				m.links = append(m.links, name)
			}
			if err = m.Base.MkdirAll(filepath.Join(m.To, dir), 0o700); err == nil {
				err = m.Base.Rename(filepath.Join(m.From, name), filepath.Join(m.To, name))
			}
		case missing:
			m.leave(name)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeLinks removes the links among what was moved that lead out of the folder, or
// nowhere.
func (m *Mover) removeLinks() error {
	if len(m.links) == 0 {
		return nil
	}
	inside, err := m.Base.OpenRoot(m.To)
	if err != nil {
		return err
	}
	defer inside.Close()
	for _, name := range m.links {
		if _, err := inside.Stat(name); err == nil {
			continue
		}
		if err := inside.Remove(name); err != nil {
			return err
		}
		m.leave(name)
	}
	return nil
}

func (m *Mover) leave(name string) {
	const listed, longest = 10, 200
	if m.Left++; len(m.First) < listed && len(name) <= longest {
		m.First = append(m.First, fmt.Sprintf("%q", filepath.ToSlash(name)))
	}
}

// entries lists a folder; nothing if it is not one.
func (m *Mover) entries(name string) ([]fs.DirEntry, error) {
	info, err := m.Base.Lstat(filepath.Join(m.From, name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	dir, err := m.Base.Open(filepath.Join(m.From, name))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}
