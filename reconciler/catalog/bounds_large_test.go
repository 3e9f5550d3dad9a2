//go:build !race

package catalog_test

import (
	"strings"
	"testing"
)

// TestLargeContentUnderManyNames reads more than a hundred million bytes: the race
// detector takes ten times as long, and sees in them what it sees in few.
func TestLargeContentUnderManyNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		files int
		want  string
	}{
		"large": {claimOfA + strings.Repeat(" ", 1<<20-100) + "\n", 150, "files that define clusters have more than 134217728 bytes, with this file"},
		"many":  {claimOfA, 20_000, "more than 100 documents have the name a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantBound(t, c.text, c.files, c.want)
		})
	}
}
