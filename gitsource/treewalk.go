package gitsource

import (
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast"
)

// treeWalk is one look through trees of a mirror by one goroutine. A folder that is in
// many places is read once, if that was not long ago, and the places are bounded.
type treeWalk struct {
	objects *objects
	limit   holdfast.PathLimit
	folders map[plumbing.Hash]map[string]entry
}

func newTreeWalk(objects *objects) treeWalk {
	return treeWalk{objects: objects, folders: make(map[plumbing.Hash]map[string]entry)}
}

// byName returns the entries of the tree of a folder by name; a zero hash has none.
func (w *treeWalk) byName(hash plumbing.Hash) (map[string]entry, error) {
	if folder, ok := w.folders[hash]; ok {
		return folder, nil
	}
	folder, err := w.objects.byName(hash)
	if err != nil {
		return nil, err
	}
	if len(w.folders) >= maxCachedFolders {
		clear(w.folders)
	}
	w.folders[hash] = folder
	return folder, nil
}
