package gitsource_test

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func TestAhead(t *testing.T) {
	t.Parallel()
	repo, s := local(t)
	first := repo.Commit("main", "first", map[string]string{"f": "1"})
	second := repo.Commit("main", "second", map[string]string{"f": "2"})
	topic := repo.CommitOn("topic", first, "topic", map[string]string{"g": "1"})
	onTopic := repo.Commit("topic", "again", map[string]string{"g": "2"})
	merge := repo.MergeCommit("main", "topic")
	repo.Branch("merged", merge)
	crossed := repo.MergeCommit("topic", "main")
	repo.Branch("crossed", crossed)
	stranger := repo.CommitOn("stranger", "", "stranger", map[string]string{"h": "1"})
	fetch(t, s)
	for name, test := range map[string]struct {
		base, head string
		commits    []string
		from       string
	}{
		"the same":            {second, second, nil, second},
		"a commit":            {first, second, []string{second}, first},
		"the other way":       {second, first, nil, first},
		"a branch":            {second, onTopic, []string{topic, onTopic}, first},
		"its merge":           {second, merge, []string{topic, onTopic, merge}, second},
		"after its merge":     {merge, onTopic, nil, onTopic},
		"merged both ways":    {merge, crossed, []string{crossed}, ""},
		"nothing in common":   {second, stranger, []string{stranger}, ""},
		"in common with none": {stranger, second, []string{first, second}, ""},
	} {
		commits, from, err := s.Ahead(t.Context(), repoName, rev(test.base), rev(test.head))
		var want []holdfast.Revision
		for _, commit := range test.commits {
			want = append(want, rev(commit))
		}
		slices.Sort(want)
		slices.Sort(commits)
		if err != nil || !slices.Equal(commits, want) || from != rev(test.from) {
			t.Errorf("%s: %v from %q, %v; want %v from %q", name, commits, from, err, want, test.from)
		}
	}
	if _, _, err := s.Ahead(t.Context(), repoName, rev(second), rev(repeat("1", 40))); err == nil {
		t.Error("a commit that is not there has something")
	}
}
