package local

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// maxHistory bounds how many commits of the tracked branch are compared with a
// branch to find where it was merged.
const maxHistory = 100

// past is what is known of where a commit was merged.
type past struct {
	base   holdfast.Revision // the tracked branch's head that was looked at last
	merged holdfast.Revision // empty: nowhere up to base
}

// pastKept bounds what is known of the commits of a repository.
const pastKept = 4096

// mergedAt returns the commit of the tracked branch that brought head to it: by a
// merge, a squash or a rebase. Empty: none did. base is what the tracked branch is
// at; it may have moved on since, and say something else by now. The commit is the same
// however much has come with it or after it: several merges may be pushed at once, and
// what is decided at an older one has to find there what was merged by then.
func (r *repository) mergedAt(ctx context.Context, head, base holdfast.Revision) (holdfast.Revision, error) {
	known := r.past[head]
	if known.base == base {
		return known.merged, nil
	}
	if known.merged != "" {
		// The tracked branch may have been rewritten.
		if still, err := r.opts.Git.IsAncestor(ctx, r.name, known.merged, base); err != nil || still {
			return known.merged, err
		}
		known = past{}
	}
	found, err := r.findMerge(ctx, head, base, known.base)
	if errors.Is(err, holdfast.ErrNotFound) {
		return "", nil // the head was never fetched: its branch came and went
	} else if err != nil {
		return "", fmt.Errorf("look for the merge of %s: %w", head.Short(), err)
	}
	if len(r.past) >= pastKept {
		clear(r.past) // at worst there is another look
	}
	r.past[head] = past{base: base, merged: found}
	return found, nil
}

// findMerge looks for the merge of head in what the tracked branch went through,
// from base back to before, to what head itself continues from, or to maxHistory.
func (r *repository) findMerge(ctx context.Context, head, base, before holdfast.Revision) (holdfast.Revision, error) {
	var found holdfast.Revision
	rev := base
	for range maxHistory {
		done, err := r.merged(ctx, head, rev)
		switch {
		case err != nil:
			return "", err
		case rev == head:
			return head, nil // it was fast-forwarded, whatever came after
		case done:
			found = rev // or one before it, which has it, too
		case found != "":
			return found, nil
		}
		parents, err := r.opts.Git.Parents(ctx, r.name, rev)
		if err != nil || len(parents) == 0 {
			return found, err
		}
		if rev = parents[0]; rev == before {
			return found, nil
		}
		older, err := r.opts.Git.IsAncestor(ctx, r.name, rev, head)
		if err != nil || older && rev != head {
			return found, err
		}
	}
	return found, nil
}

// isTracked reports whether a branch is tracked, by this repository or by another
// one at the same place.
func (r *repository) isTracked(branch string) bool {
	return branch == r.tracked || slices.Contains(r.opts.Others[r.name], branch)
}

// ofOther reports whether a head continues from a branch that another repository at
// the same place tracks, and not from the one that this repository tracks: it is a
// pull request into the other one.
func (r *repository) ofOther(ctx context.Context, refs holdfast.Refs, head holdfast.Revision) (bool, error) {
	if len(r.opts.Others[r.name]) == 0 {
		return false, nil
	}
	for range maxHistory {
		for i, branch := range append([]string{r.tracked}, r.opts.Others[r.name]...) {
			if in, err := r.isIn(ctx, head, refs["refs/heads/"+branch]); err != nil || in {
				return in && i > 0, err
			}
		}
		parents, err := r.opts.Git.Parents(ctx, r.name, head)
		if errors.Is(err, holdfast.ErrNotFound) || err == nil && len(parents) == 0 {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("look where %s continues from: %w", head.Short(), err)
		}
		head = parents[0]
	}
	return false, nil
}

// isIn reports whether a branch at head contains rev. One that was never fetched, as
// its branch came and went, is in none.
func (r *repository) isIn(ctx context.Context, rev, head holdfast.Revision) (bool, error) {
	if rev == head || head == "" {
		return rev == head, nil
	}
	in, err := r.opts.Git.IsAncestor(ctx, r.name, rev, head)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("look for %s in %s: %w", rev.Short(), head.Short(), err)
	}
	return in, nil
}
