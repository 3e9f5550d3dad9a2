package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource/linemerge"
)

const (
	// maxMergedFile is the size in bytes of the largest file that is merged line
	// by line.
	maxMergedFile = 1 << 20
	// maxBaseDepth bounds how far criss-crossed merge bases are merged themselves, and
	// maxBaseMerges how many of them: each level can have several.
	maxBaseDepth  = 8
	maxBaseMerges = 100
)

// Merge returns the id of the tree that merging head into base gives, for Tree
// and Diff. It moves no ref and makes no commit. The same two revisions always
// give the same tree.
//
// Files are merged one by one, those that both sides changed line by line. What
// Git would do beyond that, following renames, is a conflict here. An
// ErrMergeConflict names the files. Mirrors that had to be made again have
// forgotten merged trees: Merge again.
func (s *Source) Merge(ctx context.Context, repo string, base, head holdfast.Revision) (string, error) {
	m, err := s.mirror(repo)
	if err != nil {
		return "", fmt.Errorf("merge: %w", err)
	}
	g := merger{treeWalk: newTreeWalk(m.open()), baseMerges: new(int)}
	tree, err := g.merge(ctx, base, head)
	if err != nil {
		return "", fmt.Errorf("merge %s into %s in repository %q: %w", head, base, repo, err)
	}
	return tree.String(), nil
}

// merger merges trees, and remembers where they conflict.
type merger struct {
	treeWalk
	conflicts []string
	// virtual is true while merge bases are merged: a conflict there leaves an
	// entry that differs from every other.
	virtual    bool
	baseMerges *int // so far
}

// poison replaces what two merge bases could not agree on.
var poison = plumbing.NewHash(strings.Repeat("f", 40))

func (g *merger) merge(ctx context.Context, base, head holdfast.Revision) (plumbing.Hash, error) {
	var zero plumbing.Hash
	ours, theirs, err := g.objects.resolveBoth(base, head)
	if err != nil {
		return zero, err
	}
	common, err := g.baseTree(ctx, ours, theirs, 0)
	if err != nil {
		return zero, err
	}
	tree, err := g.commits(ctx, common, ours, theirs)
	if err != nil {
		return zero, err
	}
	if len(g.conflicts) > 0 {
		slices.Sort(g.conflicts)
		return zero, conflictError(g.conflicts)
	}
	return tree, nil
}

// conflictError names the files in conflict, but not thousands.
func conflictError(files []string) error {
	const most = 20
	text := strings.Join(files[:min(len(files), most)], ", ")
	if len(files) > most {
		text += fmt.Sprintf(" and %d more", len(files)-most)
	}
	return fmt.Errorf("%w in %s", holdfast.ErrMergeConflict, text)
}

// baseTree returns the tree that both commits started from. After a criss-cross
// it is the merge of several.
func (g *merger) baseTree(ctx context.Context, one, two plumbing.Hash, depth int) (plumbing.Hash, error) {
	var zero plumbing.Hash
	bases, err := g.objects.mergeBases(ctx, one, two)
	if err != nil {
		return zero, err
	}
	if len(bases) == 0 {
		return zero, fmt.Errorf("%w: the histories have no commit in common", holdfast.ErrMergeConflict)
	}
	first, err := g.objects.commit(bases[0])
	if err != nil {
		return zero, err
	}
	result := first.TreeHash
	if depth >= maxBaseDepth {
		return result, nil
	}
	v := merger{treeWalk: newTreeWalk(g.objects), virtual: true, baseMerges: g.baseMerges}
	for _, other := range bases[1:] {
		if *v.baseMerges++; *v.baseMerges > maxBaseMerges {
			break
		}
		below, err := v.baseTree(ctx, bases[0], other, depth+1)
		if errors.Is(err, holdfast.ErrMergeConflict) {
			below, err = plumbing.ZeroHash, nil
		}
		if err != nil {
			return zero, err
		}
		commit, err := v.objects.commit(other)
		if err != nil {
			return zero, err
		}
		if result, err = v.root(ctx, below, result, commit.TreeHash); err != nil {
			return zero, err
		}
	}
	return result, nil
}

func (g *merger) commits(ctx context.Context, common, one, two plumbing.Hash) (plumbing.Hash, error) {
	ours, err := g.objects.commit(one)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	theirs, err := g.objects.commit(two)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return g.root(ctx, common, ours.TreeHash, theirs.TreeHash)
}

// root is trees, whose result may be empty and is stored even so.
func (g *merger) root(ctx context.Context, base, ours, theirs plumbing.Hash) (plumbing.Hash, error) {
	tree, err := g.trees(ctx, "", base, ours, theirs)
	if err == nil && tree.IsZero() {
		return g.objects.put(plumbing.TreeObject, nil)
	}
	return tree, err
}

// trees merges three folders, of which a zero hash is an empty one, and returns
// the result's.
func (g *merger) trees(ctx context.Context, dir string, base, ours, theirs plumbing.Hash) (plumbing.Hash, error) {
	switch {
	case ours == theirs, base == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	var zero plumbing.Hash
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	if err := shallow(dir); err != nil {
		return zero, err
	}
	var sides [3]map[string]entry
	names := map[string]struct{}{}
	for i, hash := range []plumbing.Hash{base, ours, theirs} {
		var err error
		if sides[i], err = g.byName(hash); err != nil {
			return zero, err
		}
		for name := range sides[i] {
			names[name] = struct{}{}
		}
	}
	var merged []entry
	for _, name := range slices.Sorted(maps.Keys(names)) {
		e, err := g.entries(ctx, path.Join(dir, name), sides[0][name], sides[1][name], sides[2][name])
		if err != nil {
			return zero, err
		}
		if e.mode != filemode.Empty {
			e.name = name
			merged = append(merged, e)
		}
	}
	if len(merged) == 0 {
		return zero, nil
	}
	return g.objects.put(plumbing.TreeObject, encodeTree(merged))
}

// entries merges what is at one path on three sides; the zero entry is nothing.
func (g *merger) entries(ctx context.Context, name string, base, ours, theirs entry) (entry, error) {
	switch {
	case same(ours, theirs), same(base, theirs):
		return ours, nil
	case same(base, ours):
		return theirs, nil
	}
	if err := g.limit.Add(name); err != nil {
		return entry{}, err
	}
	folderOrNothing := func(e entry) bool { return e.isDir() || e.mode == filemode.Empty }
	if folderOrNothing(ours) && folderOrNothing(theirs) {
		// A file of the base that gave way to folders has no part in them. One
		// that gave way on one side and was deleted on the other: nothing, too.
		var below plumbing.Hash
		if base.isDir() {
			below = base.hash
		}
		tree, err := g.trees(ctx, name, below, ours.hash, theirs.hash)
		if err != nil || tree.IsZero() {
			return entry{}, err
		}
		return entry{mode: filemode.Dir, hash: tree}, nil
	}
	if base.isFile() && ours.isFile() && theirs.isFile() {
		merged, ok, err := g.files(base, ours, theirs)
		if err != nil || ok {
			return merged, err
		}
	}
	g.conflicts = append(g.conflicts, name)
	if g.virtual {
		return entry{mode: filemode.Regular, hash: poison}, nil
	}
	return ours, nil
}

func same(a, b entry) bool { return a.mode == b.mode && a.hash == b.hash }

// files merges a file that both sides changed, its mode and its lines, and
// reports whether that could be done.
func (g *merger) files(base, ours, theirs entry) (entry, bool, error) {
	merged := entry{mode: ours.mode, hash: ours.hash}
	if ours.mode == base.mode {
		merged.mode = theirs.mode
	}
	switch {
	case ours.hash == theirs.hash, theirs.hash == base.hash:
		return merged, true, nil
	case ours.hash == base.hash:
		merged.hash = theirs.hash
		return merged, true, nil
	case base.hash == poison || ours.hash == poison || theirs.hash == poison:
		return entry{}, false, nil
	}
	var contents [3][]byte
	for i, e := range []entry{base, ours, theirs} {
		size, err := g.objects.size(e.hash)
		if err != nil {
			return entry{}, false, err
		}
		if size > maxMergedFile {
			return entry{}, false, nil
		}
		if contents[i], err = g.objects.blob(e.hash); err != nil {
			return entry{}, false, err
		}
		if bytes.IndexByte(contents[i], 0) >= 0 || isLFSPointer(contents[i]) { // no lines to merge
			return entry{}, false, nil
		}
	}
	data, ok := linemerge.Merge(contents[0], contents[1], contents[2])
	if !ok {
		return entry{}, false, nil
	}
	hash, err := g.objects.put(plumbing.BlobObject, data)
	merged.hash = hash
	return merged, err == nil, err
}

// encodeTree is a tree object's content. Folders sort as if their names ended in
// a slash.
func encodeTree(entries []entry) []byte {
	key := func(e entry) string {
		if e.isDir() {
			return e.name + "/"
		}
		return e.name
	}
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(key(a), key(b)) })
	var b bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&b, "%o %s\x00", uint32(e.mode), e.name)
		b.Write(e.hash[:])
	}
	return b.Bytes()
}
