package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// edited is a tree in which one file of another is different. It lists folders as the other
// does: what defines clusters is read by its path.
type edited struct {
	holdfast.Tree
	base string // the id of the other tree
	name string
	data []byte // nil: the file is gone
	id   string // of what differs
	kind string // of the change: added, modified or deleted
}

// Edited is the catalog of a tree in which one file of another is different; nil data: it is
// gone. It is for those who want to know what a change would mean, and is not kept.
func (r *Reader) Edited(ctx context.Context, base *Catalog, name string, data []byte) (*Catalog, error) {
	tree := &edited{Tree: base.Tree, base: base.ID, name: name, data: data, kind: "modified"}
	sum := sha256.Sum256(slices.Concat([]byte(base.ID+"\x00"+name+"\x00"), data))
	tree.id = "edited-" + hex.EncodeToString(sum[:])
	if _, err := base.Tree.Hash(name); err != nil {
		tree.kind = "added"
	}
	if data == nil {
		tree.kind = "deleted"
	}
	cat := &Catalog{
		Repo: base.Repo, Tree: tree, ID: tree.id, index: base.index, reads: base.reads,
		spoiled: make(map[string]bool), renaming: make(map[string]bool), running: make(map[string]bool),
		pending: make(map[string]bool), faulty: make(map[string]bool),
	}
	if err := r.derive(ctx, base, cat); err != nil {
		return nil, fmt.Errorf("read clusters of %s with another %s: %w", base.Repo, name, err)
	}
	cat.files.freeze()
	cat.names.freeze()
	cat.upgrading.freeze()
	return cat, nil
}

// diff returns the files that differ between a revision or a tree and a catalog's tree.
func (r *Reader) diff(ctx context.Context, since string, to *Catalog) ([]holdfast.TreeChange, error) {
	edit, is := to.Tree.(*edited)
	if !is {
		return r.git.Diff(ctx, to.Repo, since, to.ID)
	}
	var changes []holdfast.TreeChange
	if since != edit.base {
		var err error
		if changes, err = r.git.Diff(ctx, to.Repo, since, edit.base); err != nil {
			return nil, err
		}
	}
	changes = slices.DeleteFunc(changes, func(c holdfast.TreeChange) bool { return c.Path == edit.name })
	return append(changes, holdfast.TreeChange{Path: edit.name, Kind: edit.kind}), nil
}

func (t *edited) ReadFile(name string) ([]byte, error) {
	switch {
	case name != t.name:
		return t.Tree.ReadFile(name)
	case t.data == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(t.data), nil
}

// Hash tells apart what differs and the folders that it is in.
func (t *edited) Hash(name string) (string, error) {
	if name == t.name && t.data == nil {
		return "", &fs.PathError{Op: "hash", Path: name, Err: fs.ErrNotExist}
	}
	if name == t.name || name == "." || strings.HasPrefix(t.name, path.Clean(name)+"/") {
		return t.id, nil
	}
	return t.Tree.Hash(name)
}
