package authoring

import (
	"io/fs"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// frozen is a tree that nobody changes as long as it is looked at: it remembers
// what it was asked for. A folder on disk would hash all that is in it, again and
// again, and all that is in it may be a lot.
type frozen struct {
	holdfast.Tree
	mu     sync.Mutex
	hashes map[string]string
}

var _ fs.ReadLinkFS = (*frozen)(nil)

func freeze(tree holdfast.Tree) *frozen {
	return &frozen{Tree: tree, hashes: map[string]string{".": "the only one"}} // the whole is known by being looked at
}

func (f *frozen) Hash(name string) (string, error) {
	f.mu.Lock()
	hash, ok := f.hashes[name]
	f.mu.Unlock()
	if ok {
		return hash, nil
	}
	hash, err := f.Tree.Hash(name)
	if err == nil {
		f.mu.Lock()
		f.hashes[name] = hash
		f.mu.Unlock()
	}
	return hash, err
}

// ReadLink returns what a link points to: where trees do not tell, it is the
// link's content, as Git keeps it.
func (f *frozen) ReadLink(name string) (string, error) {
	if links, ok := f.Tree.(fs.ReadLinkFS); ok {
		return links.ReadLink(name)
	}
	data, err := f.ReadFile(name)
	return string(data), err
}

func (f *frozen) Lstat(name string) (fs.FileInfo, error) {
	if links, ok := f.Tree.(fs.ReadLinkFS); ok {
		return links.Lstat(name)
	}
	return fs.Stat(f.Tree, name)
}
