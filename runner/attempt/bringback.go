// What a plan has made and the apply may have: files that the code or the plan names.

package attempt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// bringBack lays the workspace out again and puts into it the files that the plan
// has made in the folders of the bundle, such as archives that the apply uploads, as
// far as the code or the plan names them. Others, which nobody has reviewed, could be
// picked up by reviewed programs: a module next to a script that is found by its name,
// or a file in a folder that is gone through.
func (t *applying) bringBack(ctx context.Context) error {
	if err := t.renew(ctx); err != nil {
		return err
	}
	base, err := os.OpenRoot(t.dir)
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	defer base.Close()
	named, err := t.named()
	if err != nil {
		return fmt.Errorf("find out what the plan names: %w", err)
	}
	// HOME is not brought back: what a plan leaves there, such as .gitconfig or
	// .aws/config, would tell programs of the apply what to execute.
	name := filepath.Base(t.bundle)
	m := mover{base: base, from: filepath.Join(leftDir, name), to: filepath.Join(filepath.Base(t.work), name), named: named}
	if err := errors.Join(m.move(ctx, ".", false, false), m.removeLinks()); err != nil {
		return fmt.Errorf("bring back what the plan made: %w", err)
	}
	if m.left > 0 {
		t.say("%d files created by the plan are not available to the apply: neither the code nor a value of the plan names them, or they are links that point elsewhere: %s",
			m.left, strings.Join(m.first, ", "))
	}
	return t.exec.spaces.Discard(filepath.Join(t.dir, leftDir))
}

// mover moves what one folder has and another has not, if it is named.
type mover struct {
	base     *os.Root
	from, to string
	named    *names
	links    []string // that were moved
	left     int      // how many files and links were not
	first    []string // some of them
}

// move moves what is in a folder, which is in both, or new, or new and named. What is
// in a named one moves with it, but for links that lead out of the bundle: what is
// uploaded or read by that name would be a file of the machine.
func (m *mover) move(ctx context.Context, dir string, isNew, isNamed bool) error {
	entries, err := m.entries(dir)
	if err != nil {
		return err
	}
	if isNamed {
		if err := m.base.MkdirAll(filepath.Join(m.to, dir), 0o700); err != nil {
			return err
		}
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := filepath.Join(dir, entry.Name())
		if engineReads(entry.Name()) && !isNamed {
			continue
		}
		there, err := m.base.Lstat(filepath.Join(m.to, name))
		missing := isNew || errors.Is(err, fs.ErrNotExist)
		named := isNamed || missing && m.named.has(name)
		switch {
		case entry.IsDir() && (missing || err == nil && there.IsDir()):
			err = m.move(ctx, name, missing, named)
		case missing && named:
			if entry.Type()&fs.ModeSymlink != 0 {
				m.links = append(m.links, name)
			}
			if err = m.base.MkdirAll(filepath.Join(m.to, dir), 0o700); err == nil {
				err = m.base.Rename(filepath.Join(m.from, name), filepath.Join(m.to, name))
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
func (m *mover) removeLinks() error {
	if len(m.links) == 0 {
		return nil
	}
	inside, err := m.base.OpenRoot(m.to)
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

func (m *mover) leave(name string) {
	const listed, longest = 10, 200
	if m.left++; len(m.first) < listed && len(name) <= longest {
		m.first = append(m.first, fmt.Sprintf("%q", filepath.ToSlash(name)))
	}
}

// entries lists a folder; nothing if it is not one.
func (m *mover) entries(name string) ([]fs.DirEntry, error) {
	info, err := m.base.Lstat(filepath.Join(m.from, name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	dir, err := m.base.Open(filepath.Join(m.from, name))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}

// engineReads reports whether an engine takes a file or folder of that name for
// something that tells it what to do.
func engineReads(name string) bool {
	return modulecode.IsFile(name) || strings.HasSuffix(name, ".tfvars") || strings.HasSuffix(name, ".tfvars.json") ||
		slices.Contains([]string{
			dataDir, engineLockFile, holdfast.ArtefactErrored, ".terraformrc", ".tofurc", ".terraform.d", ".terraform-version",
			".opentofu-version", ".config", ".local",
		}, name)
}
