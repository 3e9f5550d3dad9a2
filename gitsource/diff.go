package gitsource

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast"
)

// Kinds of a holdfast.TreeChange.
const (
	added    = "added"
	modified = "modified"
	deleted  = "deleted"
	renamed  = "renamed"
)

// Diff returns the files that differ between two revisions or trees, by path; an empty
// from is the empty tree. A file counts as renamed if the old one is gone and a new one
// has the same content. A file that becomes a folder is one deletion and several
// additions. A folder that is nested too deep to be read is one change, as a file is.
func (s *Source) Diff(ctx context.Context, repo, from, to string) ([]holdfast.TreeChange, error) {
	m, err := s.mirror(repo)
	if err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	d := differ{treeWalk: newTreeWalk(m.open())}
	var old plumbing.Hash
	if from != "" {
		old, _, err = d.objects.resolve(from)
	}
	var now plumbing.Hash
	if err == nil {
		now, _, err = d.objects.resolve(to)
	}
	if err == nil {
		err = d.trees(ctx, "", old, now)
	}
	if err != nil {
		return nil, fmt.Errorf("diff repository %q from %q to %q: %w", repo, from, to, err)
	}
	d.findRenames()
	slices.SortFunc(d.changes, func(a, b treeChange) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Kind, b.Kind))
	})
	result := make([]holdfast.TreeChange, len(d.changes))
	for i, c := range d.changes {
		result[i] = c.TreeChange
	}
	return result, nil
}

type treeChange struct {
	holdfast.TreeChange
	entry entry // of an addition, or of what a deletion deleted
}

// differ collects what differs. Equal folders are never read.
type differ struct {
	treeWalk
	changes []treeChange
}

// trees compares two folders; a zero hash is an empty one.
func (d *differ) trees(ctx context.Context, dir string, old, now plumbing.Hash) error {
	if old == now {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	before, err := d.byName(old)
	if err != nil {
		return err
	}
	after, err := d.byName(now)
	if err != nil {
		return err
	}
	for name, a := range after {
		if !checkedOut(name) {
			continue
		}
		if err := d.entries(ctx, path.Join(dir, name), before[name], a); err != nil {
			return err
		}
	}
	for name, b := range before {
		if _, ok := after[name]; ok || !checkedOut(name) {
			continue
		}
		if err := d.entries(ctx, path.Join(dir, name), b, entry{}); err != nil {
			return err
		}
	}
	return nil
}

// entries compares what is at one path; the zero entry is nothing.
func (d *differ) entries(ctx context.Context, name string, old, now entry) error {
	if old.mode == now.mode && old.hash == now.hash {
		return nil
	}
	if err := d.limit.Add(name); err != nil {
		return err
	}
	var oldFolder, newFolder plumbing.Hash
	read := shallow(name) == nil
	if old.isDir() && read {
		oldFolder, old = old.hash, entry{}
	}
	if now.isDir() && read {
		newFolder, now = now.hash, entry{}
	}
	switch {
	case old.mode != 0 && now.mode != 0:
		d.add(name, modified, now)
	case old.mode != 0:
		d.add(name, deleted, old)
	case now.mode != 0:
		d.add(name, added, now)
	}
	return d.trees(ctx, name, oldFolder, newFolder)
}

func (d *differ) add(name, kind string, e entry) {
	d.changes = append(d.changes, treeChange{TreeChange: holdfast.TreeChange{Path: name, Kind: kind}, entry: e})
}

// maxCandidates bounds how many deletions of the same content an addition is
// compared with: of thousands of empty files, any may have become another.
const maxCandidates = 100

// findRenames makes one change of a deletion and an addition of the same
// content. Of several, the one whose name is most alike wins.
func (d *differ) findRenames() {
	gone := map[plumbing.Hash][]int{}
	for i, c := range d.changes {
		if c.Kind == deleted {
			gone[c.entry.hash] = append(gone[c.entry.hash], i)
		}
	}
	drop := map[int]bool{}
	order := make([]int, len(d.changes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(d.changes[a].Path, d.changes[b].Path) })
	for _, i := range order {
		c := &d.changes[i]
		candidates := gone[c.entry.hash]
		if c.Kind != added || len(candidates) == 0 {
			continue
		}
		best := slices.MinFunc(candidates[:min(len(candidates), maxCandidates)], func(a, b int) int {
			from, to := d.changes[a].Path, d.changes[b].Path
			return cmp.Or(
				cmp.Compare(unlike(from, c.Path), unlike(to, c.Path)),
				strings.Compare(from, to))
		})
		c.Kind, c.From = renamed, d.changes[best].Path
		drop[best] = true
		at := slices.Index(candidates, best)
		candidates[at] = candidates[0]
		gone[c.entry.hash] = candidates[1:]
	}
	kept := d.changes[:0]
	for i, c := range d.changes {
		if !drop[i] {
			kept = append(kept, c)
		}
	}
	d.changes = kept
}

// unlike is 0 for the same file name, 1 for the same folder, 2 otherwise.
func unlike(from, to string) int {
	switch {
	case path.Base(from) == path.Base(to):
		return 0
	case path.Dir(from) == path.Dir(to):
		return 1
	default:
		return 2
	}
}

// byName returns a tree's entries by name; a zero hash has none.
func (o *objects) byName(hash plumbing.Hash) (map[string]entry, error) {
	entries, err := o.tree(hash)
	if err != nil {
		return nil, err
	}
	result := make(map[string]entry, len(entries))
	for _, e := range entries {
		result[e.name] = e
	}
	return result, nil
}
