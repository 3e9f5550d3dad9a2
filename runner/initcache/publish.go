package initcache

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/folders"
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
	Seen  string // the same as the engine sees it
	Owner int    // uid that the engine ran as; its files must be that user's
	// Mirrors are folders that links among the providers may lead to.
	Mirrors []string
	Backend bool // keep the backend's settings, too: those of an http backend without arguments
	// Unpinned reports whether another fetch may bring other modules than those in a
	// folder, which is the copy of .terraform/modules; nil: none does.
	Unpinned func(modules string) bool
}

// Names are what a prepared folder is found by. Final is the name of the folder, and Key
// leads to it. A folder with fetched modules has a name that their digest is a part of:
// there can be several, as branches and tags move, and Key and Final lead to the one that
// was prepared last.
type Names struct {
	Key, Final string // what Open finds it by: before and after init wrote the lock file
	// KeyOf and FinalOf are the same for OpenOf, which asks for a digest as well.
	KeyOf, FinalOf string
	// Former: the modules are of a former fetch. Open does not find the folder.
	Former bool
}

var sum = regexp.MustCompile(`^sha256:([0-9a-f]{40})[0-9a-f]{24}$`)

// of is the name of a folder with fetched modules, empty if there is no such digest.
func of(name string, fetched holdfast.Digest) string {
	found := sum.FindStringSubmatch(string(fetched))
	if found == nil {
		return ""
	}
	return name + "-" + found[1]
}

// Publish makes a prepared folder of what init left. It returns the digest of the
// modules in it, empty if there are none. What is beyond folders.Workspace is
// refused with folders.ErrBounds, as is what is larger than Options.Size.
func (s *Store) Publish(ctx context.Context, from Source, names Names) (holdfast.Digest, error) {
	made, temp, err := s.copy(ctx, from)
	if temp != "" {
		defer func() { _ = removeAll(temp) }()
	}
	if err != nil {
		return "", err
	}
	if made.Fetched == "" {
		return "", s.name(temp, names.Final, names.Key)
	}
	final, also := of(names.FinalOf, made.Fetched), []string{of(names.KeyOf, made.Fetched)}
	if !names.Former {
		also = append(also, names.Key, names.Final)
	}
	return made.Fetched, s.name(temp, final, also...)
}

// copy makes a folder without a name.
func (s *Store) copy(ctx context.Context, from Source) (made manifest, temp string, err error) {
	made = manifest{PreparedAt: s.opts.Now()}
	if temp, err = os.MkdirTemp(s.opts.Dir, temporary); err != nil {
		return made, "", err
	}
	root, err := os.OpenRoot(from.Root)
	if err != nil {
		return made, temp, err
	}
	defer root.Close()
	content := filepath.Join(temp, contentDir)
	if err := os.Mkdir(content, 0o755); err != nil { //nolint:gosec // engines read it
		return made, temp, err
	}
	c := copier{ctx: ctx, from: root, names: []string{from.Seen, from.Root}, owner: from.Owner, left: folders.MaxEntries, size: s.opts.Size, bytes: s.opts.Size}
	for _, name := range []string{Providers, Modules} {
		if err := c.tree(filepath.Join(dataDir, name), filepath.Join(content, name), 0); err != nil {
			return made, temp, fmt.Errorf("copy %s: %w", name, err)
		}
	}
	if err := checkLinks(content, from.Mirrors); err != nil {
		return made, temp, err
	}
	if made.Lock, err = c.small(lockFile); err != nil {
		return made, temp, err
	}
	if from.Backend {
		if made.Backend, err = c.small(filepath.Join(dataDir, "terraform.tfstate")); err != nil {
			return made, temp, err
		}
		if err := checkSettings(made.Backend); err != nil {
			return made, temp, err
		}
	}
	if made.Fetched, err = digestFetched(filepath.Join(content, Modules)); err != nil {
		return made, temp, err
	}
	if made.Each, err = eachModule(filepath.Join(content, Modules)); err != nil {
		return made, temp, err
	}
	made.Pinned = made.Fetched != "" && (from.Unpinned == nil || !from.Unpinned(filepath.Join(content, Modules)))
	return made, temp, made.write(temp, content)
}

// write completes a folder.
func (m manifest) write(temp, content string) error {
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
		m.Files = append(m.Files, e)
	}
	if err := m.save(temp); err != nil {
		return err
	}
	return os.Chmod(temp, 0o711) //nolint:gosec // engines may pass through
}

// save writes the manifest of a folder, in place of a former one.
func (m manifest) save(dir string) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, temporary+manifestFile)
	_ = os.Remove(temp)
	if err := os.WriteFile(temp, data, 0o400); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(dir, manifestFile))
}

// name gives a complete folder its name, and others that lead to it.
func (s *Store) name(temp, final string, also ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	target := filepath.Join(s.opts.Dir, final)
	if known, err := s.check(final); err != nil || s.inUse[final] == 0 {
		delete(s.seen, final)
		if err := removeAll(target); err != nil {
			return err
		}
		if err := os.Rename(temp, target); err != nil {
			return err
		}
	} else if known.moves() { // another init came to the same, and now it is new again
		known.PreparedAt = s.opts.Now()
		if err := known.save(target); err != nil {
			return err
		}
	}
	for _, name := range also {
		if name == final || s.inUse[name] > 0 { // an earlier version has named a folder so
			continue
		}
		alias := filepath.Join(s.opts.Dir, name)
		if err := removeAll(alias); err != nil {
			return err
		}
		if err := os.Symlink(final, alias); err != nil {
			return err
		}
	}
	return nil
}

// copier copies what an engine left: regular files with one name that are its
// own, folders and links. Nothing that leads out of its folder is opened.
type copier struct {
	ctx   context.Context //nolint:containedctx // of one call
	from  *os.Root
	owner int
	names []string // by which links lead to the root module
	left  int      // entries that may still come
	bytes int64    // that may still come
	size  int64    // bytes of all at most
}

// tree copies a folder, nothing if there is none. The copy is read-only.
func (c *copier) tree(name, to string, depth int) error {
	info, err := c.from.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", name)
	}
	if depth > folders.MaxDepth {
		return fmt.Errorf("folders are nested deeper than %d: %w", folders.MaxDepth, folders.ErrBounds)
	}
	dir, err := c.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := os.Mkdir(to, 0o755); err != nil { //nolint:gosec // engines read it
		return err
	}
	for {
		entries, err := dir.ReadDir(1024)
		for _, entry := range entries {
			if err := c.entry(entry, name, to, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return os.Chmod(to, 0o555) //nolint:gosec // engines read it
		} else if err != nil {
			return err
		}
	}
}

// entry copies one entry of a folder.
func (c *copier) entry(entry fs.DirEntry, name, to string, depth int) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if c.left--; c.left < 0 {
		return fmt.Errorf("more than %d files and folders: %w", folders.MaxEntries, folders.ErrBounds)
	}
	below, target := filepath.Join(name, entry.Name()), filepath.Join(to, entry.Name())
	switch {
	case entry.IsDir():
		return c.tree(below, target, depth+1)
	case below == filepath.Join(dataDir, Modules, modulesFile): // agents read it
		return c.file(below, target)
	case entry.Type()&fs.ModeSymlink != 0:
		link, err := c.from.Readlink(below)
		if err != nil {
			return err
		}
		if own := c.ownPlugin(name, link); own != "" {
			return c.tree(own, target, depth+1) // the root module is gone when others use the copy
		}
		return os.Symlink(link, target)
	default:
		return c.file(below, target)
	}
}

// ownPlugins is the folder of a root module that engines link unpacked providers to.
var ownPlugins = filepath.Join("terraform.d", "plugins") //nolint:gochecknoglobals // a constant

// ownPlugin returns where a link among the providers leads to below the root module, if
// that is where a repository has its own providers.
func (c *copier) ownPlugin(dir, link string) string {
	below := filepath.Join(dir, link)
	if filepath.IsAbs(link) {
		below = ""
		for _, name := range c.names {
			below = cmp.Or(below, folders.Below(name, link))
		}
	}
	if filepath.IsLocal(below) && strings.HasPrefix(dir, filepath.Join(dataDir, Providers)) &&
		strings.HasPrefix(below, ownPlugins+string(filepath.Separator)) {
		return below
	}
	return ""
}

// open opens a file of the engine's own.
func (c *copier) open(name string) (*os.File, fs.FileInfo, error) {
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

func (c *copier) file(name, to string) error {
	from, info, err := c.open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(file, io.LimitReader(folders.Reading(c.ctx, from), c.bytes+1)) // holes are filled
	if c.bytes -= n; c.bytes < 0 && err == nil {
		err = fmt.Errorf("more than %d bytes: %w", c.size, folders.ErrBounds)
	}
	mode := fs.FileMode(0o444)
	if info.Mode().Perm()&0o100 != 0 {
		mode = 0o555
	}
	return errors.Join(err, file.Chmod(mode), file.Close())
}

// small returns a small file, nil if there is none.
func (c *copier) small(name string) ([]byte, error) {
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

// checkSettings refuses settings of a backend that has arguments: whoever gets the
// folder would send the credential of its state where they say.
func checkSettings(settings []byte) error {
	if settings == nil {
		return nil
	}
	var kept struct {
		Backend *struct {
			Type   string                     `json:"type"`
			Config map[string]json.RawMessage `json:"config"`
		} `json:"backend"`
	}
	if err := json.Unmarshal(settings, &kept); err != nil {
		return errors.New("the backend's settings cannot be read") // they are not quoted
	}
	if kept.Backend == nil {
		return nil // an engine does not begin with it
	}
	if kept.Backend.Type != "http" {
		return fmt.Errorf("init left settings of a backend of type %q, not http", kept.Backend.Type)
	}
	for name, value := range kept.Backend.Config {
		if string(value) != "null" {
			return fmt.Errorf("init left a value for the argument %q of the backend, which has none in the code", name)
		}
	}
	return nil
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
