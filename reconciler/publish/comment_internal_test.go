package publish

import (
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
