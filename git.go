package holdfast

import (
	"fmt"
	"maps"
	"slices"
)

// Refs are the heads of a repository's branches and tags, by full name:
// refs/heads/main, refs/tags/v1.2.3 (annotated tags peeled to their commit).
type Refs map[string]Revision

// Digest identifies them; it is empty where nothing is known of them.
func (r Refs) Digest() Digest {
	if r == nil {
		return ""
	}
	d := NewDigester("refs")
	for _, name := range slices.Sorted(maps.Keys(r)) {
		d.Add(name, string(r[name]))
	}
	return d.Digest()
}

// PullRequestRefs are the commits that a forge publishes for a pull request.
type PullRequestRefs struct {
	Head  Revision
	Merge Revision // the forge's own merge of head into base; empty if there is none
	Refs  Refs     // the branches and tags that the repository had at the same moment
}

// TreeChange is one file that differs between two trees.
type TreeChange struct {
	Path string `json:"path"` // in the new tree; in the old one if it was deleted
	From string `json:"from,omitempty"`
	Kind string `json:"kind"` // added, modified, deleted or renamed
}

const (
	// maxPaths bounds one look through a tree: a pack of a kilobyte can hold a folder
	// of folders of folders with billions of paths. It is room for a million.
	maxPaths = 64 << 20
	// pathCost is about what is kept of a path besides its text.
	pathCost = 64
)

// PathLimit bounds the paths that one look through a tree keeps or follows. The
// zero value has followed none.
type PathLimit struct{ used int }

// Add counts a path, and returns an error if there are too many of them.
func (l *PathLimit) Add(path string) error {
	l.used += len(path) + pathCost
	if l.used > maxPaths {
		return fmt.Errorf("too many files and folders, which %w: their paths have more than %d MiB together", ErrUnreadable, maxPaths>>20)
	}
	return nil
}
