package gitsource

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast"
)

// Ahead returns the commits that head has and base does not, and the one that both
// continue from; empty if there is none, or several. Clocks that were wrong can make it
// return more commits, never fewer.
func (s *Source) Ahead(
	ctx context.Context, repo string, base, head holdfast.Revision,
) (commits []holdfast.Revision, from holdfast.Revision, err error) {
	m, err := s.mirror(repo)
	if err != nil {
		return nil, "", fmt.Errorf("compare %s with %s: %w", base, head, err)
	}
	objs := m.open()
	one, two, err := objs.resolveBoth(base, head)
	var marks map[plumbing.Hash]int
	var found []plumbing.Hash
	if err == nil {
		marks, found, err = objs.walkBack(ctx, one, two)
	}
	if err != nil {
		return nil, "", fmt.Errorf("compare %s with %s in repository %q: %w", base, head, repo, err)
	}
	for hash, marked := range marks {
		if marked&fromOne == 0 {
			commits = append(commits, holdfast.Revision(hash.String()))
		}
	}
	if len(found) == 1 {
		from = holdfast.Revision(found[0].String())
	}
	return commits, from, nil
}
