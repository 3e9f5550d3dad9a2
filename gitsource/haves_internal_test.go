package gitsource

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// TestTips: of many branches that a remote has, too, few are offered: the main one and those of
// the last time among them. Those that it has no longer are offered all.
func TestTips(t *testing.T) {
	t.Parallel()
	hash := func(n int) plumbing.Hash { return plumbing.NewHash(fmt.Sprintf("%040x", n)) }
	current, known := refs{}, map[plumbing.Hash]struct{}{}
	for n := 1; n <= 1000; n++ {
		current[fmt.Sprintf("refs/heads/%d", n)] = ref{hash: hash(n), commit: hash(n)}
		if n > 100 {
			known[hash(n)] = struct{}{}
		}
	}
	main := hash(500)
	m := &mirror{offered: map[plumbing.Hash]struct{}{hash(600): {}, hash(2000): {}}}
	gone, shared := m.tips(current, known, &main)
	if len(gone) != 100 {
		t.Errorf("%d are gone, want 100", len(gone))
	}
	if len(shared) != maxShared || !slices.Contains(shared, main) || !slices.Contains(shared, hash(600)) {
		t.Errorf("%d of 900 are offered, want %d; main: %v, as before: %v",
			len(shared), maxShared, slices.Contains(shared, main), slices.Contains(shared, hash(600)))
	}
}
