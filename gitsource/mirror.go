package gitsource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/durable"
	"github.com/holdfast-dev/holdfast/internal/flock"
)

// remakeAgain is how long a mirror that was made again is kept even if it seems
// broken: then the fault is the remote's.
const remakeAgain = time.Hour

// mirror is a bare repository that follows a remote. Nothing in it is ever
// collected as garbage: what a branch pointed at before a forced push stays.
type mirror struct {
	name   string
	path   string
	remote *remote
	logger *slog.Logger

	busy chan struct{} // has room for one: whoever changes refs and objects

	// These belong to whoever is busy.
	refs    refs                       // nil until read and checked
	ignored map[plumbing.Hash]struct{} // what refs point at that is not a commit
	// oversized is what refs point at that leads to something too large, and why.
	oversized map[plumbing.Hash]error
	offered   map[plumbing.Hash]struct{} // commits of refs that were found there for the last request
	asked     time.Time                  // when the last fetch that succeeded began
	remade    time.Time                  // when the mirror was last made again

	// swap is held for reading while objects are read, and for writing while
	// their files are moved or removed.
	swap sync.RWMutex
	// generation counts what makes an open store miss something: packs that came
	// or went.
	generation atomic.Int64

	lineage lineage       // of pairs of commits that were compared
	readers chan struct{} // has room for maxReaders
	idleMu  sync.Mutex
	idle    []idleStore

	damaged atomic.Bool // an object that must be there could not be read
	full    atomic.Bool // the disk had no room for the last fetch
}

func newMirror(dir, name string, r *remote, logger *slog.Logger) *mirror {
	return &mirror{
		name:    name,
		path:    filepath.Join(dir, url.PathEscape(name)+".git"),
		remote:  r,
		logger:  logger,
		busy:    make(chan struct{}, 1),
		readers: make(chan struct{}, maxReaders),
		ignored: map[plumbing.Hash]struct{}{},

		oversized: map[plumbing.Hash]error{},
	}
}

// begin makes the caller the only one that changes the mirror, in this process
// and in others, until it calls end.
func (m *mirror) begin(ctx context.Context) (end func(), err error) {
	select {
	case m.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	unlock, err := flock.Wait(ctx, m.path+".lock")
	if err != nil {
		<-m.busy
		m.noteDisk(err)
		return nil, fmt.Errorf("lock mirror: %w", err)
	}
	return func() {
		unlock()
		<-m.busy
	}, nil
}

// prepare makes the mirror if it is not there, and reads and checks its refs
// the first time. It reports an error that isDamage if there is a mirror which
// cannot be trusted.
func (m *mirror) prepare() error {
	if m.damaged.Load() && time.Since(m.remade) > remakeAgain {
		return errors.New("an object could not be read")
	}
	if m.refs != nil {
		if _, err := os.Stat(filepath.Join(m.path, "HEAD")); err == nil {
			return nil
		}
		m.refs = nil // somebody removed it while we ran
	}
	if err := recoverSwap(m.path); err != nil {
		return err
	}
	if err := initBare(m.path); err != nil {
		return err
	}
	if err := removeLeftovers(m.path); err != nil {
		return err
	}
	current, err := readRefs(m.path)
	if err != nil {
		return err
	}
	if err := verify(m.path, current); err != nil {
		return err
	}
	m.refs = current
	return nil
}

// initBare makes an empty bare repository of a folder, or what is missing of it.
func initBare(dir string) error {
	for _, sub := range []string{tempFolder, "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(sub)), 0o700); err != nil {
			return err
		}
	}
	// HEAD comes last: with it the folder is a repository.
	for _, file := range [][2]string{
		{"config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n"},
		{"HEAD", "ref: refs/heads/main\n"},
	} {
		if info, err := os.Stat(filepath.Join(dir, file[0])); err == nil && info.Size() > 0 {
			continue
		}
		if err := writeFile(dir, file[0], []byte(file[1])); err != nil {
			return err
		}
	}
	return nil
}

// replace puts a mirror that was made next to this one in its place.
func (m *mirror) replace(fresh string) error {
	m.swap.Lock()
	defer m.swap.Unlock()
	m.generation.Add(1)
	old := m.path + ".old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(m.path, old); err != nil {
		return err
	}
	if err := os.Rename(fresh, m.path); err != nil {
		return err
	}
	if err := durable.SyncDir(filepath.Dir(m.path)); err != nil {
		return err
	}
	m.damaged.Store(false)
	m.remade = time.Now()
	return os.RemoveAll(old)
}

// recoverSwap removes what a crash during a replacement left: the old mirror is
// put back if the new one did not get into its place.
func recoverSwap(path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(path+".old", path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, suffix := range []string{".new", ".old"} {
		if err := os.RemoveAll(path + suffix); err != nil {
			return err
		}
	}
	return nil
}

// broken notes that an object which must be there could not be read. Its error does not match
// fs.ErrNotExist, whatever file is missing: that would say that a path is not in the tree.
func (m *mirror) broken(err error) error {
	if err == nil || errors.Is(err, holdfast.ErrUnavailable) {
		return err
	}
	if isMalformed(err) { // a mirror that is made again would have the same
		return fmt.Errorf("an object of repository %q %w: %w", m.name, holdfast.ErrUnreadable, err)
	}
	if !isDamage(err) {
		return fmt.Errorf("read mirror of repository %q: %w: %v", m.name, holdfast.ErrUnavailable, err) //nolint:errorlint // see above
	}
	m.damaged.Store(true)
	const words = "mirror of repository %q is damaged, the next fetch makes it again: %w: %v"
	return fmt.Errorf(words, m.name, holdfast.ErrUnavailable, err)
}
