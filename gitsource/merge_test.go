package gitsource_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

func local(t testing.TB) (*gitserver.Repo, *gitsource.Source) {
	t.Helper()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "repo.git"))
	return repo, open(t, t.TempDir(), gitsource.Repository{URL: repo.Path})
}

func TestMerge(t *testing.T) {
	t.Parallel()
	const twenty = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	base := map[string]string{"a": twenty, "dir/b": "b\n", "dir/c": "c\n", "x.sh": "x\n", "bin": "\x00\x01"}
	tests := map[string]struct {
		ours, theirs map[string]string
		conflict     []string // empty: as Git merges it
	}{
		"different files":          {ours: map[string]string{"dir/b": "B\n"}, theirs: map[string]string{"dir/c": "C\n"}},
		"the same change":          {ours: map[string]string{"a": "new\n"}, theirs: map[string]string{"a": "new\n"}},
		"the same file, far apart": {ours: map[string]string{"a": "0\n" + twenty}, theirs: map[string]string{"a": twenty + "11\n"}},
		"the same file and one change in common": {
			ours:   map[string]string{"a": strings.Replace(strings.Replace(twenty, "2\n", "two\n", 1), "8\n", "eight\n", 1)},
			theirs: map[string]string{"a": strings.Replace(strings.Replace(twenty, "2\n", "two\n", 1), "5\n", "", 1)},
		},
		"without a line feed at the end": {
			ours:   map[string]string{"a": "one\n" + strings.TrimPrefix(twenty, "1\n")},
			theirs: map[string]string{"a": strings.TrimSuffix(twenty, "\n")},
		},
		"the same line":         {ours: map[string]string{"a": strings.Replace(twenty, "5", "V", 1)}, theirs: map[string]string{"a": strings.Replace(twenty, "5", "five", 1)}, conflict: []string{"a"}},
		"lines side by side":    {ours: map[string]string{"a": strings.Replace(twenty, "5", "V", 1)}, theirs: map[string]string{"a": strings.Replace(twenty, "6", "VI", 1)}, conflict: []string{"a"}},
		"two conflicts":         {ours: map[string]string{"dir/b": "1\n", "dir/c": "1\n"}, theirs: map[string]string{"dir/b": "2\n", "dir/c": "2\n"}, conflict: []string{"dir/b", "dir/c"}},
		"both add the same":     {ours: map[string]string{"new": "n\n"}, theirs: map[string]string{"new": "n\n"}},
		"both add":              {ours: map[string]string{"new": "1\n"}, theirs: map[string]string{"new": "2\n"}, conflict: []string{"new"}},
		"deleted and untouched": {ours: map[string]string{"dir/b": gitserver.Delete}, theirs: map[string]string{"a": "a\n"}},
		"deleted and changed":   {ours: map[string]string{"dir/b": gitserver.Delete}, theirs: map[string]string{"dir/b": "B\n"}, conflict: []string{"dir/b"}},
		"both delete":           {ours: map[string]string{"dir/b": gitserver.Delete}, theirs: map[string]string{"dir/b": gitserver.Delete}},
		"a folder emptied":      {ours: map[string]string{"dir/b": gitserver.Delete}, theirs: map[string]string{"dir/c": gitserver.Delete}},
		"mode and content":      {ours: map[string]string{"x.sh": gitserver.Executable + "x\n"}, theirs: map[string]string{"x.sh": "y\n"}},
		"binary on both sides":  {ours: map[string]string{"bin": "\x00\x02"}, theirs: map[string]string{"bin": "\x00\x03"}, conflict: []string{"bin"}},
		"a file becomes a folder": {
			ours: map[string]string{"x.sh": gitserver.Delete, "x.sh/y": "y\n"}, theirs: map[string]string{"a": "a\n"},
		},
		"a file becomes a folder and changes": {
			ours: map[string]string{"x.sh": gitserver.Delete, "x.sh/y": "y\n"}, theirs: map[string]string{"x.sh": "changed\n"},
			conflict: []string{"x.sh"},
		},
		"links that differ": {
			ours: map[string]string{"l": gitserver.Symlink + "a"}, theirs: map[string]string{"l": gitserver.Symlink + "b"},
			conflict: []string{"l"},
		},
		"a file in the way of a folder": {
			ours: map[string]string{"new": "n\n"}, theirs: map[string]string{"new/x": "n\n"}, conflict: []string{"new"},
		},
	}
	repo, s := local(t)
	root := repo.Commit("base", "base", base)
	for name, tt := range tests {
		branch := strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
		repo.CommitOn(branch+"-ours", root, "ours", tt.ours)
		repo.CommitOn(branch+"-theirs", root, "theirs", tt.theirs)
	}
	refs := fetch(t, s)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			branch := "refs/heads/" + strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
			got, err := s.Merge(t.Context(), repoName, refs[branch+"-ours"], refs[branch+"-theirs"])
			if len(tt.conflict) > 0 {
				if !errors.Is(err, holdfast.ErrMergeConflict) || !strings.HasSuffix(err.Error(), " in "+strings.Join(tt.conflict, ", ")) {
					t.Errorf("Merge = %s, %v, want a conflict in %v", got, err, tt.conflict)
				}
				return
			}
			want, gitErr := repo.MergeTree(branch+"-ours", branch+"-theirs")
			if gitErr != nil {
				t.Fatalf("git merge-tree: %v", gitErr)
			}
			if err != nil || got != want {
				t.Fatalf("Merge = %s, %v, want %s", got, err, want)
			}
			again, err := s.Merge(t.Context(), repoName, refs[branch+"-ours"], refs[branch+"-theirs"])
			if err != nil || again != got {
				t.Errorf("Merge again = %s, %v, want %s", again, err, got)
			}
			content(t, tree(t, s, got)) // every object is there
		})
	}
}

func TestMergeFastForward(t *testing.T) {
	t.Parallel()
	repo, s := local(t)
	base := repo.Commit("main", "base", map[string]string{"a": "1"})
	head := repo.CommitOn("work", base, "work", map[string]string{"a": "2"})
	other := repo.CommitOn("other", "", "unrelated", map[string]string{"b": "2"})
	fetch(t, s)
	got, err := s.Merge(t.Context(), repoName, rev(base), rev(head))
	if want := repo.Git("rev-parse", head+"^{tree}"); err != nil || got != want {
		t.Errorf("fast-forward = %s, %v, want the head's tree %s", got, err, want)
	}
	got, err = s.Merge(t.Context(), repoName, rev(head), rev(base))
	if want := repo.Git("rev-parse", head+"^{tree}"); err != nil || got != want {
		t.Errorf("merge of an ancestor = %s, %v, want %s", got, err, want)
	}
	if _, err := s.Merge(t.Context(), repoName, rev(base), rev(other)); !errors.Is(err, holdfast.ErrMergeConflict) {
		t.Errorf("merge of an unrelated history = %v, want ErrMergeConflict", err)
	}
	if _, err := s.Merge(t.Context(), repoName, rev(base), rev(repeat("a", 40))); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("merge of nothing = %v, want ErrNotFound", err)
	}
	// Everything deleted on both sides is an empty tree, not an error.
	one := repo.CommitOn("one", head, "gone", map[string]string{"a": gitserver.Delete})
	two := repo.CommitOn("two", head, "gone too", map[string]string{"a": gitserver.Delete, "b": "x"})
	three := repo.CommitOn("two", two, "really", map[string]string{"b": gitserver.Delete})
	fetch(t, s)
	got, err = s.Merge(t.Context(), repoName, rev(one), rev(three))
	if err != nil || len(content(t, tree(t, s, got))) != 0 {
		t.Errorf("merge to nothing = %s, %v", got, err)
	}
}

func TestMergeCrissCross(t *testing.T) {
	t.Parallel()
	repo, s := local(t)
	lines := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	root := repo.Commit("main", "root", map[string]string{"a": lines})
	one := repo.CommitOn("one", root, "one", map[string]string{"a": strings.Replace(lines, "2", "two", 1)})
	two := repo.CommitOn("two", root, "two", map[string]string{"a": strings.Replace(lines, "8", "eight", 1)})
	ours := repo.MergeCommit(one, two)
	theirs := repo.MergeCommit(two, one)
	repo.SetRef("refs/heads/ours", ours)
	repo.SetRef("refs/heads/theirs", theirs)
	// Both change a line that one of the merge bases changed, too.
	both := strings.NewReplacer("2", "two", "8", "eight")
	repo.Commit("ours", "ours", map[string]string{"a": strings.Replace(both.Replace(lines), "two", "zwei", 1)})
	repo.Commit("theirs", "theirs", map[string]string{"a": strings.Replace(both.Replace(lines), "eight", "acht", 1)})
	refs := fetch(t, s)
	got, err := s.Merge(t.Context(), repoName, refs["refs/heads/ours"], refs["refs/heads/theirs"])
	want, gitErr := repo.MergeTree("ours", "theirs")
	if gitErr != nil {
		t.Fatal(gitErr)
	}
	if err != nil || got != want {
		t.Errorf("Merge = %s, %v, want %s", got, err, want)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	repo, s := local(t)
	one := repo.Commit("main", "one", map[string]string{
		"clusters/a.yaml": "a", "clusters/b.yaml": "b", "clusters/c.yaml": "c", "same/d.yaml": "d",
		"file": "f", "mode.sh": "m", "twin1": "t", "twin2": "t",
	})
	two := repo.Commit("main", "two", map[string]string{
		"clusters/a.yaml":  "A",
		"clusters/b.yaml":  gitserver.Delete,
		"moved/c.yaml":     "c",
		"clusters/c.yaml":  gitserver.Delete,
		"new.yaml":         "n",
		"file":             gitserver.Delete,
		"file/inside.yaml": "i",
		"mode.sh":          gitserver.Executable + "m",
		"link":             gitserver.Symlink + "new.yaml",
		"twin1":            gitserver.Delete, "twin2": gitserver.Delete, "other/twin2": "t", "third": "t",
	})
	fetch(t, s)
	got, err := s.Diff(t.Context(), repoName, one, two)
	want := []holdfast.TreeChange{
		{Path: "clusters/a.yaml", Kind: "modified"},
		{Path: "clusters/b.yaml", Kind: "deleted"},
		{Path: "file", Kind: "deleted"},
		{Path: "file/inside.yaml", Kind: "added"},
		{Path: "link", Kind: "added"},
		{Path: "mode.sh", Kind: "modified"},
		{Path: "moved/c.yaml", From: "clusters/c.yaml", Kind: "renamed"},
		{Path: "new.yaml", Kind: "added"},
		{Path: "other/twin2", From: "twin2", Kind: "renamed"},
		{Path: "third", From: "twin1", Kind: "renamed"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Diff: %v (-want +got):\n%s", err, diff)
	}
	all, err := s.Diff(t.Context(), repoName, "", one)
	if err != nil || len(all) != 8 || all[0] != (holdfast.TreeChange{Path: "clusters/a.yaml", Kind: "added"}) {
		t.Errorf("Diff from nothing = %v, %v", all, err)
	}
	merged, err := s.Merge(t.Context(), repoName, rev(one), rev(two))
	if err != nil {
		t.Fatal(err)
	}
	if none, err := s.Diff(t.Context(), repoName, two, merged); err != nil || len(none) != 0 {
		t.Errorf("Diff with the merged tree = %v, %v", none, err)
	}
	if _, err := s.Diff(t.Context(), repoName, one, repeat("a", 40)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Diff with nothing = %v, want ErrNotFound", err)
	}
}

func TestIsAncestor(t *testing.T) {
	t.Parallel()
	repo, s := local(t)
	root := repo.Commit("main", "root", map[string]string{"a": "1"})
	left := repo.CommitOn("left", root, "left", map[string]string{"l": "1"})
	right := repo.CommitOn("right", root, "right", map[string]string{"r": "1"})
	merge := repo.MergeCommit(left, right)
	repo.SetRef("refs/heads/main", merge)
	other := repo.CommitOn("other", "", "unrelated", map[string]string{"o": "1"})
	fetch(t, s)
	tests := map[string]struct {
		a, b string
		want bool
	}{
		"itself":                  {root, root, true},
		"a parent":                {root, left, true},
		"a child":                 {left, root, false},
		"siblings":                {left, right, false},
		"the first parent's":      {left, merge, true},
		"the second parent's":     {right, merge, true},
		"through two parents":     {root, merge, true},
		"an unrelated history":    {other, merge, false},
		"of an unrelated history": {root, other, false},
	}
	for name, tt := range tests {
		if got, err := s.IsAncestor(t.Context(), repoName, rev(tt.a), rev(tt.b)); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tt.want)
		}
	}
	if _, err := s.IsAncestor(t.Context(), repoName, rev(repeat("a", 40)), rev(root)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("of nothing: %v, want ErrNotFound", err)
	}
	if parents, err := s.Parents(t.Context(), repoName, rev(root)); err != nil || len(parents) != 0 {
		t.Errorf("parents of the first commit: %v, %v", parents, err)
	}
	if _, err := s.Parents(t.Context(), repoName, rev(repeat("a", 40))); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("parents of nothing: %v, want ErrNotFound", err)
	}
}
