package publish

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// However many pull requests there were since the server's start, few are remembered:
// those that were shown last.
func TestCommentsAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	p := New(Options{Settings: Settings{Now: func() time.Time { return now }}})
	ref := holdfast.PullRequestRef{Repo: "infra"}
	for ref.Number = range 3 * commentsKept {
		if p.lastComment(ref); ref.Number%2 == 0 {
			p.commented(ref)
		}
	}
	if n := len(p.lastCommentAt); n > commentsKept {
		t.Errorf("%d pull requests are remembered, want %d at most", n, commentsKept)
	}
	written := now
	now = now.Add(time.Minute)
	if got := p.lastComment(holdfast.PullRequestRef{Repo: "infra", Number: 3*commentsKept - 1}); !got.Equal(written) {
		t.Errorf("the last one was written at %s, want %s", got, written)
	}
}

// merges are a store that knows which pull requests were merged, and reads none.
type merges struct{ Store }

func (merges) MergesOf(_ context.Context, repo, cluster string, _ int) ([]int, error) {
	if repo != "infra" || cluster != "prod" {
		return nil, nil
	}
	return []int{7, 3}, nil
}

// What a cluster waited with is shown; to ask for that, no record of a pull request is read.
func TestWaited(t *testing.T) {
	t.Parallel()
	p := New(Options{Store: merges{}, Settings: Settings{Now: time.Now}})
	p.Waited(t.Context(), holdfast.ClusterRecord{Name: "prod", Owner: "infra"})
	p.Waited(t.Context(), holdfast.ClusterRecord{Name: "prod", Owner: "other"})
	var shown []int
	for p.shows.Depth() > 0 {
		_, err := p.shows.Step(t.Context(), func(_ context.Context, key showKey) error {
			shown = append(shown, key.pullRequest.Number)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if slices.Sort(shown); !slices.Equal(shown, []int{3, 7}) {
		t.Errorf("these are shown: %v", shown)
	}
}
