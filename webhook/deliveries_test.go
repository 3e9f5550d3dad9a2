package webhook_test

import (
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
	"github.com/holdfast-dev/holdfast/webhook"
)

// TestLifeOfAPullRequest takes in what GitHub delivers from the first push of
// a pull request to the push of its merge.
func TestLifeOfAPullRequest(t *testing.T) {
	t.Parallel()
	h, w := newHandler(t)
	server := httptest.NewServer(h)
	defer server.Close()
	repo := githubserver.New(t).Repo("acme/app")
	repo.SetWebhook(server.URL+webhook.Path, secret)
	a, b, c := "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222", "3333333333333333333333333333333333333333"

	repo.Ping()
	repo.Push("refs/heads/grow", "", a)
	n := repo.OpenPullRequest(githubserver.PullRequest{Author: "alice", Branch: "grow", Head: a})
	repo.PushHead(n, b)
	repo.SetDraft(n, true)
	repo.SetDraft(n, false)
	repo.SetBase(n, "release", c)
	repo.Close(n)
	repo.Reopen(n)
	id := repo.Comment(n, "alice", "/holdfast plan -c prod-eu")
	repo.EditComment(id, "alice", "/holdfast plan -c prod-eu, please")
	repo.Comment(n, "renovate[bot]", "/holdfast apply")
	repo.CommentOnIssue(70, "alice", "/holdfast apply")
	repo.Redeliver("issue_comment")
	repo.Review(n, "bob", "APPROVED")
	repo.Merge(n, c)
	repo.Drop(1)
	repo.Push("refs/heads/main", a, c)
	repo.Redeliver("push")
	repo.Push("refs/heads/grow", b, "")

	for _, d := range repo.Deliveries() {
		if d.Err != nil || d.Status >= 300 || (d.Status == 0) != d.Dropped {
			t.Errorf("%s %s was answered %d, %v", d.Event, d.Action, d.Status, d.Err)
		}
	}
	pr, push := holdfast.SourceRequest{Repo: "app", PullRequest: n}, holdfast.SourceRequest{Repo: "app"}
	want := []holdfast.SourceRequest{
		push,
		pr, pr, pr, pr, pr, pr, pr, // opened, synchronize, draft, ready, edited, closed, reopened
		pr, pr, // the command, and its edit
		pr,       // the review
		pr, push, // merged
		push, push, // delivered again, deleted
	}
	if diff := cmp.Diff(want, w.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got, ok := w.commands[holdfast.CommandID("app", strconv.FormatInt(id, 10), 0)]; !ok || len(w.commands) != 1 || got.Author != "alice" {
		t.Errorf("commands %v", w.commands)
	}
}
