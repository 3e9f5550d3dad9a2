package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// sharedStore keeps what init prepared, so that no provider or module is
// fetched, copied or hashed for a run if it was for one before. A prepared
// folder is complete when it has its name, and read-only from then on:
//
//	shared/<key>/manifest.json     what is in it
//	shared/<key>/lock.hcl          the lock file that init ended with
//	shared/<key>/backend.json      .terraform/terraform.tfstate of an empty http backend
//	shared/<key>/providers/        .terraform/providers
//	shared/<key>/modules/          .terraform/modules
//	shared/<other key> → <key>     the same, before init wrote the lock file
//
// It is safe for concurrent use inside one process.
type sharedStore struct {
	dir  string
	keep int
	opts ExecutorOptions

	mu    sync.Mutex
	locks map[string]chan struct{}
	inUse map[string]int // by the folder's name
}

// Names in a prepared folder.
const (
	manifestFile    = "manifest.json"
	preparedLock    = "lock.hcl"
	preparedBackend = "backend.json"
	providersDir    = "providers"
	modulesDir      = "modules"
	modulesFile     = "modules.json"
	engineLockFile  = ".terraform.lock.hcl"
	dataDir         = ".terraform"
)

// unpinnedFor is how long a fetched module that is not pinned to a version
// stays as it is.
const unpinnedFor = time.Hour

// manifest is what a prepared folder must look like.
type manifest struct {
	PreparedAt time.Time       `json:"preparedAt"`
	Unpinned   bool            `json:"unpinned,omitempty"`
	Fetched    holdfast.Digest `json:"fetched,omitempty"` // content of the fetched modules
	Files      []fileStamp     `json:"files"`
}

// fileStamp tells a file without reading it.
type fileStamp struct {
	Path  string `json:"path"`
	Size  int64  `json:"size"`
	MTime int64  `json:"mtime"` // ns
	Link  string `json:"link,omitempty"`
}

// prepared is a prepared folder in use. release must be called.
type prepared struct {
	dir      string
	manifest manifest
	release  func()
}

func newSharedStore(opts ExecutorOptions) (*sharedStore, error) {
	s := &sharedStore{
		dir: filepath.Join(opts.WorkDir, sharedDir), keep: opts.KeepShared, opts: opts,
		locks: map[string]chan struct{}{}, inUse: map[string]int{},
	}
	if _, err := os.ReadDir(s.dir); err != nil {
		return nil, fmt.Errorf("open shared folder: %w", err)
	}
	return s, nil
}

// sharedKey returns what init's result depends on, as a name.
func sharedKey(e engine, m rootModule, a holdfast.Assignment, lock, cliConfig []byte) string {
	d := holdfast.NewDigester("shared init")
	d.Add(e.name, e.version, runtime.GOOS+"_"+runtime.GOARCH, m.backend, strconv.FormatBool(m.bareBackend))
	d.Add(string(lock), string(cliConfig))
	d.Add(m.needs...)
	if m.opaque {
		d.Add("bundle", string(a.Bundle), a.Dir)
	}
	if m.fetched { // with credentials that others may not have
		d.Add("env")
		for _, name := range slices.Sorted(maps.Keys(a.Env)) {
			d.Add(name, a.Env[name])
		}
	}
	return strings.TrimPrefix(string(d.Digest()), "sha256:")[:40]
}

// lock takes the key's lock until unlock is called.
func (s *sharedStore) lock(ctx context.Context, key string) (unlock func(), err error) {
	s.mu.Lock()
	ch := s.locks[key]
	if ch == nil {
		ch = make(chan struct{}, 1)
		s.locks[key] = ch
	}
	s.mu.Unlock()
	select {
	case ch <- struct{}{}:
		return func() { <-ch }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// open returns the prepared folder of the key, or false if there is none that
// can be used.
func (s *sharedStore) open(key string) (prepared, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := filepath.EvalSymlinks(filepath.Join(s.dir, key))
	if err != nil {
		_ = os.Remove(filepath.Join(s.dir, key)) // a dangling link
		return prepared{}, false
	}
	m, err := readManifest(dir)
	if err == nil {
		err = m.check(dir)
	}
	name := filepath.Base(dir)
	if err == nil && m.Unpinned && s.opts.Now().Sub(m.PreparedAt) > unpinnedFor && s.inUse[name] == 0 {
		err = errors.New("its modules are not pinned and old")
	}
	if err != nil {
		s.opts.Logger.Warn("prepared folder is rebuilt", "reason", "Stale", "err", err)
		_ = removeAll(dir)
		return prepared{}, false
	}
	now := s.opts.Now()
	_ = os.Chtimes(dir, now, now) // for prune
	s.inUse[name]++
	var once sync.Once
	return prepared{dir: dir, manifest: m, release: func() {
		once.Do(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.inUse[name]--; s.inUse[name] <= 0 {
				delete(s.inUse, name)
			}
		})
	}}, true
}

// publish makes a prepared folder of what init left in root's data folder, under
// final, with key as another name of it.
func (s *sharedStore) publish(root, key, final string, m rootModule) error {
	temp, err := os.MkdirTemp(s.dir, temporary)
	if err != nil {
		return err
	}
	defer func() { _ = removeAll(temp) }()
	made := manifest{PreparedAt: s.opts.Now(), Unpinned: m.unpinned}
	if made.Fetched, err = digestFetched(filepath.Join(root, dataDir, modulesDir)); err != nil {
		return err
	}
	for from, to := range map[string]string{
		filepath.Join(dataDir, providersDir): providersDir,
		filepath.Join(dataDir, modulesDir):   modulesDir,
	} {
		if err := os.Rename(filepath.Join(root, from), filepath.Join(temp, to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := copyFile(filepath.Join(root, engineLockFile), filepath.Join(temp, preparedLock)); err != nil {
		return err
	}
	if m.backend == "http" && m.bareBackend {
		if err := copyFile(filepath.Join(root, dataDir, "terraform.tfstate"), filepath.Join(temp, preparedBackend)); err != nil {
			return err
		}
	}
	if err := makeReadOnly(temp); err != nil {
		return err
	}
	if made.Files, err = inventory(temp); err != nil {
		return err
	}
	data, err := json.Marshal(made)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(temp, manifestFile), data, 0o400); err != nil {
		return err
	}
	return s.name(temp, key, final)
}

// name gives a complete folder its name.
func (s *sharedStore) name(temp, key, final string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	target := filepath.Join(s.dir, final)
	if m, err := readManifest(target); err != nil || m.check(target) != nil || s.inUse[final] == 0 {
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
	alias := filepath.Join(s.dir, key)
	if err := removeAll(alias); err != nil {
		return err
	}
	return os.Symlink(final, alias)
}

// prune removes the folders that were not used for longest, and names that
// point nowhere.
func (s *sharedStore) prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	type folder struct {
		name string
		used time.Time
	}
	entries, _ := os.ReadDir(s.dir)
	var folders []folder
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && entry.IsDir() && !strings.HasPrefix(entry.Name(), temporary) {
			folders = append(folders, folder{entry.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(folders, func(a, b folder) int { return b.used.Compare(a.used) })
	for _, old := range folders[min(len(folders), s.keep):] {
		if s.inUse[old.name] == 0 {
			_ = removeAll(filepath.Join(s.dir, old.name))
		}
	}
	for _, entry := range entries {
		name := filepath.Join(s.dir, entry.Name())
		if _, err := os.Stat(name); entry.Type()&fs.ModeSymlink != 0 && err != nil {
			_ = os.Remove(name)
		}
	}
}

// link gives the root module in root the prepared folder's content: providers
// and fetched modules as links, the small files as copies.
func (p prepared) link(root string) error {
	data := filepath.Join(root, dataDir)
	if err := removeAll(data); err != nil {
		return err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(p.dir, providersDir)); err == nil {
		if err := os.Symlink(filepath.Join(p.dir, providersDir), filepath.Join(data, providersDir)); err != nil {
			return err
		}
	}
	if err := p.linkModules(filepath.Join(data, modulesDir)); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(p.dir, preparedBackend), filepath.Join(data, "terraform.tfstate")); err != nil {
		return err
	}
	return copyFile(filepath.Join(p.dir, preparedLock), filepath.Join(root, engineLockFile))
}

func (p prepared) linkModules(dir string) error {
	entries, err := os.ReadDir(filepath.Join(p.dir, modulesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, entry := range entries {
		from, to := filepath.Join(p.dir, modulesDir, entry.Name()), filepath.Join(dir, entry.Name())
		if entry.Name() == modulesFile {
			err = copyFile(from, to)
		} else {
			err = os.Symlink(from, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readManifest(dir string) (manifest, error) {
	var m manifest
	data, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(data, &m)
}

// check tells whether dir still is what it was when it was prepared.
func (m manifest) check(dir string) error {
	files, err := inventory(dir)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f fileStamp) bool { return f.Path == manifestFile })
	if !slices.Equal(files, m.Files) {
		return errors.New("it is not what was prepared")
	}
	return nil
}

// inventory lists the files below dir, and those of folders that links in it
// point to: a mirror's providers.
func inventory(dir string) ([]fileStamp, error) {
	var list []fileStamp
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		stamp, err := stampOf(dir, name)
		if err != nil {
			return err
		}
		list = append(list, stamp)
		if stamp.Link == "" {
			return nil
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil //nolint:nilerr // a link to a file
		}
		for _, entry := range entries {
			stamp, err := stampOf(dir, filepath.Join(name, entry.Name()))
			if err != nil {
				return err
			}
			list = append(list, stamp)
		}
		return nil
	})
	return list, err
}

func stampOf(dir, name string) (fileStamp, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return fileStamp{}, err
	}
	path, err := filepath.Rel(dir, name)
	if err != nil {
		return fileStamp{}, err
	}
	stamp := fileStamp{Path: path, Size: info.Size(), MTime: info.ModTime().UnixNano()}
	if info.Mode()&fs.ModeSymlink != 0 {
		stamp.Link, err = os.Readlink(name)
	}
	return stamp, err
}

// makeReadOnly takes the right to write away from files and folders in dir, but
// not from dir itself, which gets its name and goes one day.
func makeReadOnly(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(name, info.Mode().Perm()&^0o222)
	})
}

// digestFetched returns the digest of the modules that init fetched, empty if
// there are none. What version control leaves beside them is not content.
func digestFetched(dir string) (holdfast.Digest, error) {
	digest := holdfast.NewDigester("fetched modules")
	found := false
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
		found = true
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
	if err != nil || !found {
		return "", err
	}
	return digest.Digest(), nil
}

// copyFile copies a small file; one that does not exist is left out.
func copyFile(from, to string) error {
	data, err := readIfExists(from)
	if err != nil || data == nil {
		return err
	}
	if old, err := readIfExists(to); err == nil && old != nil {
		if err := os.Remove(to); err != nil {
			return err
		}
	}
	return os.WriteFile(to, data, 0o600)
}
