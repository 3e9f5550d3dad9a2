//go:build !race

package gitsource_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// Folders that are nested without end are an error for who goes down, and not the end of
// the server: two trees are compared all the same.
func TestFoldersNestedTooDeep(t *testing.T) {
	t.Parallel()
	const words = "nested deeper than 200"
	repo, source := local(t)
	base := repo.Commit("main", "base", map[string]string{"a": "a\n", repeat("d/", 199) + "f": "f\n"})
	deep := repo.CommitOn("deep", base, "deep", map[string]string{"a": "A\n", repeat("d/", 2000) + "g": "g\n", repeat("d/", 199) + "f": gitserver.Delete})
	other := repo.CommitOn("other", base, "other", map[string]string{"b": "b\n", repeat("d/", 2000) + "h": "h\n"})
	fetch(t, source)
	walk := func(revision string) error {
		return fs.WalkDir(tree(t, source, revision), ".", func(_ string, _ fs.DirEntry, err error) error { return err })
	}
	if err := walk(base); err != nil {
		t.Errorf("walk through 199 levels = %v", err)
	}
	told := map[string]error{"walk": walk(deep)}
	_, told["merge"] = source.Merge(t.Context(), repoName, rev(deep), rev(other))
	for what, err := range told {
		if err == nil || !strings.Contains(err.Error(), words) || len(err.Error()) > 400 {
			t.Errorf("%s = %.500v, want an error of few words with %q", what, err, words)
		}
	}
	changes, err := source.Diff(t.Context(), repoName, base, deep)
	var changed []string
	for _, c := range changes {
		changed = append(changed, fmt.Sprintf("%s %d %s", c.Kind, strings.Count(c.Path, "/"), c.Path[len(c.Path)-1:]))
	}
	if want := []string{"modified 0 a", "added 200 d", "deleted 199 f"}; err != nil || !slices.Equal(changed, want) {
		t.Errorf("Diff = %q, %v, want %q", changed, err, want)
	}
}

// A few small objects that come to billions of paths are an error, in whatever they
// stand, and not the end of the server; what such a tree does not touch works.
func TestFoldersOfFolders(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes many folders")
	}
	const words = "too many files and folders"
	repo, source := local(t)
	bomb := func(content string) string {
		tree := repo.WriteTree("100644 blob " + repo.WriteBlob(content) + "\tf\n")
		for range 10 {
			var lines strings.Builder
			for i := range 10 {
				fmt.Fprintf(&lines, "040000 tree %s\td%d\n", tree, i)
			}
			tree = repo.WriteTree(lines.String())
		}
		return repo.Git("commit-tree", "-m", "bomb", "-p", "main", repo.WriteTree("040000 tree "+tree+"\tbomb\n"))
	}
	base := repo.Commit("main", "base", map[string]string{"a": "a\n"})
	one, two := bomb("1\n"), bomb("2\n")
	repo.Branch("one", one)
	repo.Branch("two", two)
	fetch(t, source)

	told := map[string]error{}
	_, told["diff"] = source.Diff(t.Context(), repoName, base, one)
	_, told["diff of two"] = source.Diff(t.Context(), repoName, one, two)
	_, told["merge"] = source.Merge(t.Context(), repoName, rev(one), rev(two))
	for what, err := range told {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s = %.500v, want an error with %q", what, err, words)
		}
	}
	if changes, err := source.Diff(t.Context(), repoName, one, one); err != nil || len(changes) != 0 {
		t.Errorf("Diff of a tree with itself = %d changes, %v", len(changes), err)
	}
}

// Thousands of files of the same content that move are paired in bounded time.
func TestManyEqualFilesMove(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes many files")
	}
	const files = 30_000
	repo, source := local(t)
	blob := repo.WriteBlob("")
	folder := func(prefix string) string {
		var lines strings.Builder
		for i := range files {
			fmt.Fprintf(&lines, "100644 blob %s\t%s%05d\n", blob, prefix, i)
		}
		return repo.WriteTree(lines.String())
	}
	from, to := folder("a"), folder("b")
	repo.Branch("main", repo.Git("commit-tree", "-m", "from", from))
	repo.Branch("to", repo.Git("commit-tree", "-m", "to", to))
	fetch(t, source)
	changes, err := source.Diff(t.Context(), repoName, from, to)
	if err != nil || len(changes) != files {
		t.Fatalf("Diff = %d changes, %v, want %d", len(changes), err, files)
	}
	seen := map[string]bool{}
	for _, change := range changes {
		if change.Kind != "renamed" || seen[change.From] {
			t.Fatalf("%+v, want renamed, from a file that nothing else comes from", change)
		}
		seen[change.From] = true
	}
}
