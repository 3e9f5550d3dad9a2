package initcache

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/holdfast-dev/holdfast"
)

// Names in a root module.
const (
	dataDir     = ".terraform"
	lockFile    = ".terraform.lock.hcl"
	modulesFile = "modules.json"
	maxSmall    = 16 << 20 // bytes of a lock file, or of a backend's settings
)

// Source is a root module in which an engine's init has ended. Its engine is not
// trusted: what it left is copied, and only regular files of its own.
type Source struct {
	Root  string // folder of the root module
	Owner int    // uid that the engine ran as; its files must be that user's
	// Mirrors are folders that links among the providers may lead to.
	Mirrors  []string
	Unpinned bool // a fetched module has no version: the folder is only good for MaxAge
	Backend  bool // keep the backend's settings, too
}

// Publish makes a prepared folder of what init left, under final, with key as
// another name of it.
func (s *Store) Publish(from Source, key, final string) error {
	temp, err := os.MkdirTemp(s.opts.Dir, temporary)
	if err != nil {
		return err
	}
	defer func() { _ = removeAll(temp) }()
	root, err := os.OpenRoot(from.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	made := manifest{PreparedAt: s.opts.Now(), Unpinned: from.Unpinned}
	content := filepath.Join(temp, contentDir)
	if err := os.Mkdir(content, 0o755); err != nil { //nolint:gosec // engines read it
		return err
	}
	c := copier{from: root, owner: from.Owner}
	for _, name := range []string{Providers, Modules} {
		if err := c.tree(filepath.Join(dataDir, name), filepath.Join(content, name)); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	if err := checkLinks(content, from.Mirrors); err != nil {
		return err
	}
	if made.Lock, err = c.small(lockFile); err != nil {
		return err
	}
	if from.Backend {
		if made.Backend, err = c.small(filepath.Join(dataDir, "terraform.tfstate")); err != nil {
			return err
		}
	}
	if made.Fetched, err = digestFetched(filepath.Join(content, Modules)); err != nil {
		return err
	}
	all, err := list(content)
	if err != nil {
		return err
	}
	for _, f := range all {
		e := entry{Path: f.path, Link: f.link}
		if f.link == "" {
			if e.Sum, _, err = hash(f.name); err != nil {
				return err
			}
		}
		made.Files = append(made.Files, e)
	}
	data, err := json.Marshal(made)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(temp, manifestFile), data, 0o400); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o711); err != nil { //nolint:gosec // engines may pass through
		return err
	}
	return s.name(temp, key, final)
}

// name gives a complete folder its name.
func (s *Store) name(temp, key, final string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	target := filepath.Join(s.opts.Dir, final)
	if _, err := s.check(final); err != nil || s.inUse[final] == 0 {
		delete(s.seen, final)
		if err := removeAll(target); err != nil {
			return err
		}
		if err := os.Rename(temp, target); err != nil {
			return err
		}
	} // else another key's init came to the same
	if key == final {
		return nil
	}
	alias := filepath.Join(s.opts.Dir, key)
	if err := removeAll(alias); err != nil {
		return err
	}
	return os.Symlink(final, alias)
}

// copier copies what an engine left: regular files with one name that are its
// own, folders and links. Nothing that leads out of its folder is opened.
type copier struct {
	from  *os.Root
	owner int
}

// tree copies a folder, nothing if there is none. The copy is read-only.
func (c copier) tree(name, to string) error {
	info, err := c.from.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", name)
	}
	dir, err := c.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	_ = dir.Close()
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil { //nolint:gosec // engines read it
		return err
	}
	for _, entry := range entries {
		below, target := filepath.Join(name, entry.Name()), filepath.Join(to, entry.Name())
		switch {
		case entry.IsDir():
			err = c.tree(below, target)
		case entry.Type()&fs.ModeSymlink != 0:
			var link string
			if link, err = c.from.Readlink(below); err == nil {
				err = os.Symlink(link, target)
			}
		default:
			err = c.file(below, target)
		}
		if err != nil {
			return err
		}
	}
	return os.Chmod(to, 0o555) //nolint:gosec // engines read it
}

// open opens a file of the engine's own.
func (c copier) open(name string) (*os.File, fs.FileInfo, error) {
	if info, err := c.from.Lstat(name); err != nil {
		return nil, nil, err
	} else if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", name)
	}
	file, err := c.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil {
		stat, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case !info.Mode().IsRegular() || !ok:
			err = fmt.Errorf("%s is not a regular file", name)
		case int(stat.Uid) != c.owner:
			err = fmt.Errorf("%s belongs to user %d, not %d", name, stat.Uid, c.owner)
		}
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func (c copier) file(name, to string) error {
	from, info, err := c.open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	mode := fs.FileMode(0o444)
	if info.Mode().Perm()&0o100 != 0 {
		mode = 0o555
	}
	return errors.Join(err, file.Chmod(mode), file.Close())
}

// small returns a small file, nil if there is none.
func (c copier) small(name string) ([]byte, error) {
	file, _, err := c.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSmall+1))
	if err == nil && len(data) > maxSmall {
		err = fmt.Errorf("%s has more than %d bytes", name, maxSmall)
	}
	return data, err
}

// checkLinks refuses links among the providers that lead elsewhere than to a
// mirror: what they lead to is read, and executed, by runs to come.
func checkLinks(content string, mirrors []string) error {
	providers := filepath.Join(content, Providers)
	return filepath.WalkDir(providers, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == providers {
			return nil
		}
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		target, err := filepath.EvalSymlinks(name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(mirrors, func(dir string) bool { return leadsInto(dir, target) }) {
			return fmt.Errorf("init left a link to %s, which is in no mirror", target)
		}
		return nil
	})
}

func leadsInto(dir, target string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	rest, err := filepath.Rel(real, target)
	return err == nil && filepath.IsLocal(rest)
}

// digestFetched returns the digest of the modules that init fetched, empty if
// there are none. What version control leaves beside them is not content.
func digestFetched(dir string) (holdfast.Digest, error) {
	digest := holdfast.NewDigester("fetched modules")
	any := false
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == dir:
			return nil
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir() || name == filepath.Join(dir, modulesFile):
			return nil
		}
		path, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		any = true
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			digest.Add(filepath.ToSlash(path), "link", target)
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		digest.Add(filepath.ToSlash(path), "file", string(data))
		return nil
	})
	if err != nil || !any {
		return "", err
	}
	return digest.Digest(), nil
}
