package gitsource

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/holdfast-dev/holdfast"
)

const (
	// maxReaders bounds how many read a mirror's objects at once, and maxIdle how many
	// stores wait for the next: each has a copy of the indexes and its own cache.
	maxReaders = 4
	maxIdle    = 2
)

// objects reads and writes a mirror's objects. It is safe for concurrent use.
type objects struct{ mirror *mirror }

func (m *mirror) open() *objects { return &objects{mirror: m} }

// use calls f with a store that no one else uses meanwhile, as go-git's cannot be
// shared, and whose files stay where they are. It sees what was fetched before.
func (o *objects) use(f func(*filesystem.Storage) error) error {
	m := o.mirror
	m.readers <- struct{}{}
	defer func() { <-m.readers }()
	m.swap.RLock()
	defer m.swap.RUnlock()

	generation := m.generation.Load()
	store := m.takeIdle(generation)
	if store == nil {
		store = openStore(m.path)
	}
	err := f(store)
	if err == nil { // otherwise it may be in the middle of something
		m.putIdle(store, generation)
	}
	return err
}

// idleStore is a store that waits for its next use, and what it has seen.
type idleStore struct {
	store      *filesystem.Storage
	generation int64
}

func (m *mirror) takeIdle(generation int64) *filesystem.Storage {
	m.idleMu.Lock()
	defer m.idleMu.Unlock()
	for n := len(m.idle); n > 0; n = len(m.idle) {
		last := m.idle[n-1]
		m.idle = m.idle[:n-1]
		if last.generation == generation {
			return last.store
		}
	}
	return nil
}

func (m *mirror) putIdle(store *filesystem.Storage, generation int64) {
	m.idleMu.Lock()
	defer m.idleMu.Unlock()
	if len(m.idle) < maxIdle {
		m.idle = append(m.idle, idleStore{store, generation})
	}
}

// resolve returns the tree of a revision, or of a tree's own id, and the commit
// if it was one.
func (o *objects) resolve(id string) (tree, commit plumbing.Hash, err error) {
	hash, err := parseHash(id)
	if err != nil {
		return tree, commit, err
	}
	err = o.use(func(store *filesystem.Storage) error {
		obj, err := store.EncodedObject(plumbing.AnyObject, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return fmt.Errorf("revision %s: %w", hash, holdfast.ErrNotFound)
		}
		if err != nil {
			return o.mirror.broken(err)
		}
		if obj.Type() == plumbing.TreeObject {
			tree = hash
			return nil
		}
		c, err := peel(store, hash)
		if err != nil {
			return o.mirror.broken(err)
		}
		if c == nil {
			return holdfast.ErrorOf(holdfast.ErrNotFound, "object %s is neither a commit nor a tree", hash)
		}
		tree, commit = c.TreeHash, c.Hash
		return nil
	})
	return tree, commit, err
}

func parseHash(id string) (plumbing.Hash, error) {
	if len(id) != 40 || strings.ToLower(id) != id || !plumbing.IsHash(id) {
		return plumbing.ZeroHash, holdfast.ErrorOf(holdfast.ErrNotFound, "revision %q is not 40 hexadecimal digits", id)
	}
	return plumbing.NewHash(id), nil
}

// peel returns the commit that an object is or, through tags, points at; nil if
// it is of another kind.
func peel(store *filesystem.Storage, hash plumbing.Hash) (*object.Commit, error) {
	for range 10 { // tags of tags of tags …
		obj, err := store.EncodedObject(plumbing.AnyObject, hash)
		if err != nil {
			return nil, err
		}
		switch obj.Type() {
		case plumbing.CommitObject:
			return object.DecodeCommit(store, obj)
		case plumbing.TagObject:
			tag, err := object.DecodeTag(store, obj)
			if err != nil {
				return nil, err
			}
			hash = tag.Target
		default:
			return nil, nil
		}
	}
	return nil, nil
}

// commit reads a commit that must be there.
func (o *objects) commit(hash plumbing.Hash) (c *object.Commit, err error) {
	err = o.use(func(store *filesystem.Storage) error {
		c, err = object.GetCommit(store, hash)
		return o.mirror.broken(err)
	})
	return c, err
}

// entry is a name in a tree.
type entry struct {
	name string
	mode filemode.FileMode
	hash plumbing.Hash
}

func (e entry) isDir() bool { return e.mode == filemode.Dir }

func (e entry) isFile() bool { return e.mode == filemode.Regular || e.mode == filemode.Executable }

// tree reads a tree that must be there, with all entries; the zero hash is the empty tree.
func (o *objects) tree(hash plumbing.Hash) (entries []entry, err error) {
	if hash.IsZero() {
		return nil, nil
	}
	var t *object.Tree
	if err := o.use(func(store *filesystem.Storage) error {
		t, err = object.GetTree(store, hash)
		return o.mirror.broken(err)
	}); err != nil {
		return nil, err
	}
	entries = make([]entry, len(t.Entries))
	for i, e := range t.Entries {
		mode := e.Mode
		if mode == filemode.Deprecated {
			mode = filemode.Regular
		}
		entries[i] = entry{name: e.Name, mode: mode, hash: e.Hash}
	}
	return entries, nil
}

// checkedOut reports whether Git checks out an entry of that name. Others would be
// something else on disk: nobody can use them, but a remote can be made to hold them.
func checkedOut(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/") && !strings.EqualFold(name, ".git")
}

// size returns the size in bytes of a blob that must be there.
func (o *objects) size(hash plumbing.Hash) (n int64, err error) {
	err = o.use(func(store *filesystem.Storage) error {
		n, err = store.EncodedObjectSize(hash)
		return o.mirror.broken(err)
	})
	return n, err
}

// errTooLarge says that a file is larger than MaxFileSize.
type errTooLarge int64

func (e errTooLarge) Error() string {
	return fmt.Sprintf("file of %d bytes is larger than the limit of %d", int64(e), MaxFileSize)
}

// blob reads a blob that must be there, of at most MaxFileSize.
func (o *objects) blob(hash plumbing.Hash) (data []byte, err error) {
	err = o.use(func(store *filesystem.Storage) error {
		size, err := store.EncodedObjectSize(hash)
		if err != nil {
			return o.mirror.broken(err)
		}
		if size > MaxFileSize {
			return errTooLarge(size)
		}
		obj, err := store.EncodedObject(plumbing.BlobObject, hash)
		if err != nil {
			return o.mirror.broken(err)
		}
		r, err := obj.Reader()
		if err != nil {
			return o.mirror.broken(err)
		}
		defer r.Close()
		data = make([]byte, size)
		_, err = io.ReadFull(r, data)
		return o.mirror.broken(err)
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// put writes an object unless it is there. It may be called by several at once,
// and while others fetch.
func (o *objects) put(kind plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	hash := plumbing.ComputeHash(kind, data)
	err := o.use(func(store *filesystem.Storage) error {
		if store.HasEncodedObject(hash) == nil {
			return nil
		}
		return storeLoose(o.mirror.path, hash, kind, data)
	})
	if err != nil {
		return hash, fmt.Errorf("write object: %w: %w", holdfast.ErrUnavailable, err)
	}
	return hash, nil
}

// storeLoose writes an object into its own file.
func storeLoose(dir string, hash plumbing.Hash, kind plumbing.ObjectType, data []byte) error {
	f, err := createTemp(dir, tempObjectPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	w := objfile.NewWriter(f)
	if err := w.WriteHeader(kind, int64(len(data))); err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	folder := filepath.Join(dir, "objects", hash.String()[:2])
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(folder, hash.String()[2:]))
}
