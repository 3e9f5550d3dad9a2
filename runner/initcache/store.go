package initcache

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/folders"
)

// Names in a folder of the store.
const (
	// Providers and Modules are in Folder.Dir what .terraform/providers and
	// .terraform/modules are in a root module. Either may be missing.
	Providers = "providers"
	Modules   = "modules"

	manifestFile = "manifest.json"
	contentDir   = "content"
	temporary    = "tmp-" // prefix of folders that are not complete
)

// Options are what a Store needs. Dir is required.
type Options struct {
	Dir    string        // made if it does not exist; nobody else works in it
	Keep   int           // prepared folders that are kept; zero means 64
	MaxAge time.Duration // of modules that are not pinned to a version; zero means 5 min
	Size   int64         // bytes of what init left, at most; zero means 8 GiB

	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now
}

// Store is prepared folders on disk. A folder is complete when it has its name:
//
//	<key>/content/providers/    as .terraform/providers; engines see content only
//	<key>/content/modules/      as .terraform/modules
//	<key>/manifest.json         what is in it, with hashes, and the small files
//	<other key> → <key>         the same, before init wrote the lock file
//	<key>-<digest>/             one of those with fetched modules
//
// It is safe for concurrent use inside one process.
type Store struct {
	opts Options

	mu    sync.Mutex
	locks map[string]chan struct{}
	inUse map[string]int              // by the folder's name
	seen  map[string]map[string]stamp // by the folder's name and the file's path: hashed by this process
}

// New returns a Store.
func New(opts Options) (*Store, error) {
	if opts.Dir == "" {
		return nil, errors.New("initcache: no folder")
	}
	opts.Keep = cmp.Or(opts.Keep, 64)
	opts.MaxAge = cmp.Or(opts.MaxAge, 5*time.Minute)
	opts.Size = cmp.Or(opts.Size, 8<<30)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("initcache: make folder: %w", err)
	}
	return &Store{
		opts: opts, locks: map[string]chan struct{}{}, inUse: map[string]int{}, seen: map[string]map[string]stamp{},
	}, nil
}

// manifest is what a prepared folder must be.
type manifest struct {
	PreparedAt time.Time       `json:"preparedAt"`
	Fetched    holdfast.Digest `json:"fetched,omitempty"`
	Pinned     bool            `json:"pinned,omitempty"` // another fetch brings the same modules
	Each       []Module        `json:"each,omitempty"`
	Lock       []byte          `json:"lock,omitempty"`
	Backend    []byte          `json:"backend,omitempty"`
	Files      []entry         `json:"files"`
}

// moves reports whether another fetch may bring other modules. Earlier versions have
// not looked at what fetched modules call, and said nothing of those that are pinned.
func (m manifest) moves() bool { return m.Fetched != "" && !m.Pinned }

// Folder is a prepared folder in use, until Release.
type Folder struct {
	Dir      string          // with Providers and Modules in it; read-only
	Fetched  holdfast.Digest // of the content of the fetched modules; empty if there are none
	Unpinned bool            // another fetch may bring other modules
	Each     []Module        // of the fetched modules, by name
	Lock     []byte          // the lock file that init ended with; nil if there is none
	Backend  []byte          // .terraform/terraform.tfstate; nil if it was not kept

	release func()
}

// Release lets the folder be removed one day. It may be called more than once,
// and on the zero Folder.
func (f Folder) Release() {
	if f.release != nil {
		f.release()
	}
}

// Lock takes the key's lock until unlock is called: of several runs that need
// the same folder, one prepares it and the others wait.
func (s *Store) Lock(ctx context.Context, key string) (unlock func(), err error) {
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

// Open returns the prepared folder of the key, or false if there is none that
// can be used: what is not what was published is removed, and modules that are not
// pinned are too old after MaxAge.
func (s *Store) Open(key string) (Folder, bool) { return s.open(key, s.opts.MaxAge) }

// OpenOf returns the prepared folder of Names.KeyOf or FinalOf that has modules of
// that digest, however old they are.
func (s *Store) OpenOf(name string, fetched holdfast.Digest) (Folder, bool) {
	if name = of(name, fetched); name == "" {
		return Folder{}, false
	}
	return s.open(name, 0)
}

// OpenWith is Open for modules of that digest, which are not too old ever.
func (s *Store) OpenWith(key string, fetched holdfast.Digest) (Folder, bool) {
	f, ok := s.open(key, 0)
	if ok && f.Fetched != fetched {
		f.Release()
		return Folder{}, false
	}
	return f, ok
}

func (s *Store) open(key string, maxAge time.Duration) (Folder, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := filepath.EvalSymlinks(filepath.Join(s.opts.Dir, key))
	if err != nil {
		_ = os.Remove(filepath.Join(s.opts.Dir, key)) // a dangling link
		return Folder{}, false
	}
	name := filepath.Base(dir)
	m, err := s.check(name)
	if err != nil {
		s.opts.Logger.Warn("prepared folder is rebuilt", "reason", "Stale", "err", err)
		s.remove(name)
		return Folder{}, false
	}
	now := s.opts.Now()
	// One from the future was prepared by a clock that was ahead, and may be of any age.
	if age := now.Sub(m.PreparedAt); m.moves() && maxAge > 0 && (age > maxAge || age < 0) {
		return Folder{}, false
	}
	_ = os.Chtimes(dir, now, now) // for Prune
	s.inUse[name]++
	var once sync.Once
	return Folder{
		Dir: filepath.Join(dir, contentDir), Fetched: m.Fetched, Unpinned: m.moves(), Each: m.Each, Lock: m.Lock, Backend: m.Backend,
		release: func() {
			once.Do(func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.inUse[name]--; s.inUse[name] <= 0 {
					delete(s.inUse, name)
				}
			})
		},
	}, true
}

// check returns the manifest of a folder if the folder is as it says. Callers
// hold mu.
func (s *Store) check(name string) (manifest, error) {
	var m manifest
	data, err := os.ReadFile(filepath.Join(s.opts.Dir, name, manifestFile))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, err
	}
	seen := s.seen[name]
	if seen == nil {
		seen = map[string]stamp{}
	}
	if err := compare(filepath.Join(s.opts.Dir, name, contentDir), m.Files, seen); err != nil {
		return m, err
	}
	s.seen[name] = seen
	return m, nil
}

// remove removes a folder. Callers hold mu.
func (s *Store) remove(name string) {
	delete(s.seen, name)
	_ = removeAll(filepath.Join(s.opts.Dir, name))
}

// Tidy removes what a dead process left half done, and prunes.
func (s *Store) Tidy() {
	entries, _ := os.ReadDir(s.opts.Dir)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), temporary) {
			_ = removeAll(filepath.Join(s.opts.Dir, entry.Name()))
		}
	}
	s.Prune()
}

// Prune removes the folders that were not used for longest, and names that point
// nowhere.
func (s *Store) Prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	type folder struct {
		name string
		used time.Time
	}
	entries, _ := os.ReadDir(s.opts.Dir)
	var folders []folder
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && entry.IsDir() && !strings.HasPrefix(entry.Name(), temporary) {
			folders = append(folders, folder{entry.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(folders, func(a, b folder) int { return b.used.Compare(a.used) })
	for _, old := range folders[min(len(folders), s.opts.Keep):] {
		if s.inUse[old.name] == 0 {
			s.remove(old.name)
		}
	}
	for _, entry := range entries {
		name := filepath.Join(s.opts.Dir, entry.Name())
		if _, err := os.Stat(name); entry.Type()&fs.ModeSymlink != 0 && err != nil {
			_ = os.Remove(name)
		}
	}
}

// removeAll removes dir, whatever an engine has made of it.
func removeAll(dir string) error { return folders.Remove(context.Background(), dir) }
