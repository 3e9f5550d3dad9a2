package gitserver

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// objects are what a repository has on disk, read and written without a process of Git:
// most tests make a few commits, and starting Git for each costs more than the rest of them.
type objects struct{ *filesystem.Storage }

func (r *Repo) objects() objects {
	return objects{filesystem.NewStorage(osfs.New(r.Path), cache.NewObjectLRUDefault())}
}

// put stores what encodes itself, and returns its id.
func (o objects) put(encode func(plumbing.EncodedObject) error) (plumbing.Hash, error) {
	obj := o.NewEncodedObject()
	if err := encode(obj); err != nil {
		return plumbing.ZeroHash, err
	}
	return o.SetEncodedObject(obj)
}

func (o objects) blob(content string) (plumbing.Hash, error) {
	return o.put(func(obj plumbing.EncodedObject) error {
		obj.SetType(plumbing.BlobObject)
		w, err := obj.Writer()
		if err != nil {
			return err
		}
		if _, err := w.Write([]byte(content)); err != nil {
			return err
		}
		return w.Close()
	})
}

// commit stores a commit of a tree.
func (o objects) commit(tree plumbing.Hash, message string, parents ...plumbing.Hash) (plumbing.Hash, error) {
	by := object.Signature{Name: "Ada", Email: "ada@example.com", When: time.Now().UTC()}
	c := &object.Commit{Author: by, Committer: by, Message: message, TreeHash: tree, ParentHashes: parents}
	return o.put(c.Encode)
}

// edit returns the tree (zero: an empty one) with files written into it.
func (o objects) edit(tree plumbing.Hash, files map[string]string) (plumbing.Hash, error) {
	entries := map[string]object.TreeEntry{}
	if !tree.IsZero() {
		t, err := object.GetTree(o, tree)
		if err != nil {
			return tree, fmt.Errorf("read tree %s: %w", tree, err)
		}
		for _, e := range t.Entries {
			entries[e.Name] = e
		}
	}
	below := map[string]map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		name, rest, inFolder := strings.Cut(path, "/")
		if inFolder {
			if below[name] == nil {
				below[name] = map[string]string{}
			}
			below[name][rest] = files[path]
			continue
		}
		if files[path] == Delete {
			delete(entries, name)
			continue
		}
		entry, err := o.entry(name, files[path])
		if err != nil {
			return tree, err
		}
		entries[name] = entry
	}
	for name, files := range below {
		old := entries[name]
		if old.Mode != filemode.Dir {
			old.Hash = plumbing.ZeroHash
		}
		hash, err := o.edit(old.Hash, files)
		if err != nil {
			return tree, err
		}
		entries[name] = object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: hash}
		if hash == emptyTree {
			delete(entries, name)
		}
	}
	t := &object.Tree{Entries: slices.Collect(maps.Values(entries))}
	sort.Sort(object.TreeEntrySorter(t.Entries))
	return o.put(t.Encode)
}

var emptyTree = plumbing.ComputeHash(plumbing.TreeObject, nil)

// entry stores a file's content, and returns how it stands in a tree.
func (o objects) entry(name, content string) (object.TreeEntry, error) {
	if sha, ok := strings.CutPrefix(content, Submodule); ok {
		return object.TreeEntry{Name: name, Mode: filemode.Submodule, Hash: plumbing.NewHash(sha)}, nil
	}
	mode := filemode.Regular
	for prefix, m := range map[string]filemode.FileMode{Executable: filemode.Executable, Symlink: filemode.Symlink} {
		if rest, ok := strings.CutPrefix(content, prefix); ok {
			mode, content = m, rest
		}
	}
	hash, err := o.blob(content)
	return object.TreeEntry{Name: name, Mode: mode, Hash: hash}, err
}

// find returns what a full SHA or the name of a ref stands for; ok is false for what only
// Git knows, such as HEAD~1.
func (o objects) find(revision string) (hash plumbing.Hash, ok bool) {
	if plumbing.IsHash(revision) {
		return plumbing.NewHash(revision), true
	}
	for _, name := range []string{revision, "refs/" + revision, "refs/tags/" + revision, "refs/heads/" + revision} {
		if !strings.HasPrefix(name, "refs/") {
			continue
		}
		if ref, err := o.Reference(plumbing.ReferenceName(name)); err == nil && ref.Type() == plumbing.HashReference {
			return ref.Hash(), true
		}
	}
	return plumbing.ZeroHash, false
}

// findCommit is find for a commit, which a tag may lead to.
func (o objects) findCommit(revision string) (*object.Commit, bool) {
	hash, ok := o.find(strings.TrimSuffix(revision, "^{commit}"))
	for ok {
		if c, err := object.GetCommit(o, hash); err == nil {
			return c, true
		}
		tag, err := object.GetTag(o, hash)
		if err != nil {
			break
		}
		hash = tag.Target
	}
	return nil, false
}
