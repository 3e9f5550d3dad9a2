package gitsource

import (
	"errors"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// A pair of commits is compared once, unless that failed.
func TestLineage(t *testing.T) {
	t.Parallel()
	var l lineage
	walks := 0
	ask := func(older, newer byte, is bool, fails error) (bool, error) {
		return l.of(plumbing.Hash{older}, plumbing.Hash{newer}, func() (bool, error) {
			walks++
			return is, fails
		})
	}
	broken := errors.New("no such object")
	if _, err := ask(1, 2, true, broken); !errors.Is(err, broken) {
		t.Errorf("a walk that fails gives %v", err)
	}
	for range 3 {
		if is, err := ask(1, 2, true, nil); !is || err != nil {
			t.Errorf("the ancestor = %v, %v", is, err)
		}
		if is, err := ask(2, 1, false, nil); is || err != nil {
			t.Errorf("the other way round = %v, %v", is, err)
		}
	}
	if walks != 3 {
		t.Errorf("%d walks, want the one that failed and one for each pair", walks)
	}
	for i := range maxLineage {
		_, _ = l.of(plumbing.Hash{9, byte(i), byte(i >> 8)}, plumbing.Hash{}, func() (bool, error) { return true, nil })
	}
	if len(l.known) > maxLineage {
		t.Errorf("%d pairs are kept", len(l.known))
	}
}
