//go:build !race

package gitsource_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Whatever is merged without a conflict is what Git makes of it.
func TestMergeAgreesWithGit(t *testing.T) {
	t.Parallel()
	repo, s := local(t)
	random := rand.New(rand.NewPCG(1, 2))
	edit := func(lines []string) []string {
		lines = slices.Clone(lines)
		for range 1 + random.IntN(3) {
			i := random.IntN(len(lines))
			switch random.IntN(3) {
			case 0:
				lines[i] = fmt.Sprint("changed ", random.IntN(1000))
			case 1:
				lines = slices.Delete(lines, i, i+1)
			default:
				lines = slices.Insert(lines, i, fmt.Sprint("added ", random.IntN(1000)))
			}
		}
		return lines
	}
	var base []string
	for i := range 40 {
		base = append(base, fmt.Sprint("line ", i))
	}
	text := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	root := repo.Commit("main", "root", map[string]string{"f": text(base)})
	const n = 40
	for i := range n {
		repo.CommitOn(fmt.Sprint("ours", i), root, "ours", map[string]string{"f": text(edit(base))})
		repo.CommitOn(fmt.Sprint("theirs", i), root, "theirs", map[string]string{"f": text(edit(base))})
	}
	refs := fetch(t, s)
	clean := 0
	for i := range n {
		ours, theirs := fmt.Sprint("refs/heads/ours", i), fmt.Sprint("refs/heads/theirs", i)
		got, err := s.Merge(t.Context(), repoName, refs[ours], refs[theirs])
		want, gitErr := repo.MergeTree(ours, theirs)
		switch {
		case err == nil && (gitErr != nil || got != want):
			t.Errorf("%d: merged to\n%v\nGit: %v\n%s", i, content(t, tree(t, s, got)), gitErr, repo.Git("cat-file", "-p", want+":f"))
		case err == nil:
			clean++
		case gitErr == nil:
			t.Errorf("%d: %v, but Git merges it", i, err)
		}
	}
	if clean < n/3 {
		t.Errorf("only %d of %d merged", clean, n)
	}
}
