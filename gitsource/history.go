package gitsource

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/holdfast-dev/holdfast"
)

// Parents returns a commit's parents, in the commit's order; a first commit has
// none. ErrNotFound if there is no such commit.
func (s *Source) Parents(ctx context.Context, repo string, rev holdfast.Revision) ([]holdfast.Revision, error) {
	m, err := s.mirror(repo)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("read parents of %s: %w", rev, err)
	}
	objs := m.open()
	hash, err := objs.resolveCommit(rev)
	var commit *object.Commit
	if err == nil {
		commit, err = objs.commit(hash)
	}
	if err != nil {
		return nil, fmt.Errorf("read parents of %s in repository %q: %w", rev, repo, err)
	}
	parents := make([]holdfast.Revision, len(commit.ParentHashes))
	for i, hash := range commit.ParentHashes {
		parents[i] = holdfast.Revision(hash.String())
	}
	return parents, nil
}

// IsAncestor reports whether a is b or an ancestor of it. ErrNotFound if one of
// them is not there.
func (s *Source) IsAncestor(ctx context.Context, repo string, a, b holdfast.Revision) (bool, error) {
	m, err := s.mirror(repo)
	if err != nil {
		return false, fmt.Errorf("compare %s with %s: %w", a, b, err)
	}
	objs := m.open()
	older, newer, err := objs.resolveBoth(a, b)
	if err != nil {
		return false, fmt.Errorf("compare %s with %s in repository %q: %w", a, b, repo, err)
	}
	is, err := m.lineage.of(older, newer, func() (bool, error) {
		bases, err := objs.mergeBases(ctx, older, newer)
		return slices.Contains(bases, older), err
	})
	if err != nil {
		return false, fmt.Errorf("compare %s with %s in repository %q: %w", a, b, repo, err)
	}
	return is, nil
}

// lineage remembers which commits are ancestors of which. What a commit is never changes,
// and each of the clusters of a branch asks for the same pair.
type lineage struct {
	mu    sync.Mutex
	known map[[2]plumbing.Hash]bool // whether the first one is an ancestor of the second
}

// maxLineage bounds the pairs of a repository that are remembered, at about 100 bytes each.
const maxLineage = 4096

// of returns whether older is an ancestor of newer, which walk finds out.
func (l *lineage) of(older, newer plumbing.Hash, walk func() (bool, error)) (bool, error) {
	pair := [2]plumbing.Hash{older, newer}
	l.mu.Lock()
	is, ok := l.known[pair]
	l.mu.Unlock()
	if ok {
		return is, nil
	}
	is, err := walk()
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= maxLineage {
		l.known = make(map[[2]plumbing.Hash]bool)
	}
	l.known[pair] = is
	return is, nil
}

func (o *objects) resolveCommit(rev holdfast.Revision) (plumbing.Hash, error) {
	_, commit, err := o.resolve(string(rev))
	if err == nil && commit.IsZero() {
		err = holdfast.ErrorOf(holdfast.ErrNotFound, "object %s is not a commit", rev)
	}
	return commit, err
}

func (o *objects) resolveBoth(a, b holdfast.Revision) (one, two plumbing.Hash, err error) {
	if one, err = o.resolveCommit(a); err == nil {
		two, err = o.resolveCommit(b)
	}
	return one, two, err
}

// Marks of a commit during a walk.
const (
	fromOne = 1 << iota // reached from the first commit
	fromTwo             // reached from the second one
	stale               // an ancestor of a common one: no better answer beyond
	common              // a common ancestor
)

// mergeBases returns the best common ancestors of two commits, in a fixed order:
// those that are not ancestors of another one. There are several after a
// criss-cross, none for unrelated histories.
//
// It walks back from both, the newest first, as Git does, and ends when only ancestors
// of common ones are left; wrong clocks cost time, but never change the result.
func (o *objects) mergeBases(ctx context.Context, one, two plumbing.Hash) ([]plumbing.Hash, error) {
	found, err := o.commonAncestors(ctx, one, two)
	if err != nil || len(found) < 2 {
		return found, err
	}
	// Wrong clocks can leave one that is an ancestor of another.
	best := found[:0:0]
	for i, candidate := range found {
		redundant := false
		for j, other := range found {
			if i == j {
				continue
			}
			bases, err := o.commonAncestors(ctx, candidate, other)
			if err != nil {
				return nil, err
			}
			if slices.Contains(bases, candidate) {
				redundant = true
				break
			}
		}
		if !redundant {
			best = append(best, candidate)
		}
	}
	return best, nil
}

func (o *objects) commonAncestors(ctx context.Context, one, two plumbing.Hash) ([]plumbing.Hash, error) {
	_, found, err := o.walkBack(ctx, one, two)
	return found, err
}

// walkBack marks the commits that two continue from, until only those are left that both
// do, and returns the first of these on each way.
func (o *objects) walkBack(ctx context.Context, one, two plumbing.Hash) (map[plumbing.Hash]int, []plumbing.Hash, error) {
	w := walk{objects: o, marks: map[plumbing.Hash]int{}}
	if err := w.push(one, fromOne); err != nil {
		return nil, nil, err
	}
	if err := w.push(two, fromTwo); err != nil {
		return nil, nil, err
	}
	var found []plumbing.Hash
	for w.open() {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		commit := heap.Pop(&w.queue).(*object.Commit)
		marks := w.marks[commit.Hash] & (fromOne | fromTwo | stale)
		if marks == fromOne|fromTwo {
			if w.marks[commit.Hash]&common == 0 {
				w.marks[commit.Hash] |= common
				found = append(found, commit.Hash)
			}
			marks |= stale
		}
		for _, parent := range commit.ParentHashes {
			if w.marks[parent]&marks == marks {
				continue
			}
			if err := w.push(parent, marks); err != nil {
				return nil, nil, err
			}
		}
	}
	found = slices.DeleteFunc(found, func(hash plumbing.Hash) bool { return w.marks[hash]&stale != 0 })
	plumbing.HashesSort(found)
	return w.marks, found, nil
}

// walk is the state of a walk back through history.
type walk struct {
	objects *objects
	marks   map[plumbing.Hash]int
	queue   byDate
}

func (w *walk) push(hash plumbing.Hash, marks int) error {
	commit, err := w.objects.commit(hash)
	if err != nil {
		return err
	}
	w.marks[hash] |= marks
	heap.Push(&w.queue, commit)
	return nil
}

// open reports whether something is left that is not stale.
func (w *walk) open() bool {
	return slices.ContainsFunc(w.queue, func(c *object.Commit) bool { return w.marks[c.Hash]&stale == 0 })
}

// byDate is a heap of commits, the newest on top.
type byDate []*object.Commit

func (q byDate) Len() int           { return len(q) }
func (q byDate) Less(i, j int) bool { return q[i].Committer.When.After(q[j].Committer.When) }
func (q byDate) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *byDate) Push(x any)        { *q = append(*q, x.(*object.Commit)) }
func (q *byDate) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
