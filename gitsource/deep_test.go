package gitsource_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// Folders that are nested without end are an error, and not the end of the server.
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
	_, told["diff"] = source.Diff(t.Context(), repoName, base, deep)
	_, told["merge"] = source.Merge(t.Context(), repoName, rev(deep), rev(other))
	for what, err := range told {
		if err == nil || !strings.Contains(err.Error(), words) || len(err.Error()) > 400 {
			t.Errorf("%s = %.500v, want an error of few words with %q", what, err, words)
		}
	}
}
