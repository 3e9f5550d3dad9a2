package github_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// A comment that goes between two pages moves ours to the page that was read: it is
// found all the same, and no second one is written.
func TestPutCommentWhileOthersGo(t *testing.T) {
	t.Parallel()
	const list = "GET /repos/{owner}/{repo}/issues/{number}/{part}"
	for name, lost := range map[string]string{"its id is not known": "", "its id is another's": "1"} {
		c, s, repo := withToken(t)
		n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
		for i := range 100 {
			repo.Comment(n, "alice", fmt.Sprint(i))
		}
		marker := "<!-- ours -->"
		ours, err := c.PutComment(t.Context(), ref(n), "", marker, marker+"one")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			repo.Comment(n, "alice", fmt.Sprint("more ", i))
		}
		oldest := repo.Comments(n)
		s.Before(list, func() {}) // the first page
		s.Before(list, func() { repo.DeleteComment(oldest[0].ID, "alice") })
		s.Before(list, func() {})
		s.Before(list, func() { repo.DeleteComment(oldest[1].ID, "alice") })
		s.ResetCalls()
		again, err := c.PutComment(t.Context(), ref(n), lost, marker, marker+"two")
		if err != nil || again.ID != ours.ID || again.Body != marker+"two" {
			t.Errorf("%s: %+v, %v; want %s written again", name, again, err, ours.ID)
		}
		written := 0
		for _, comment := range repo.Comments(n) {
			if comment.Author == githubserver.TokenLogin {
				written++
			}
		}
		if written != 1 {
			t.Errorf("%s: %d comments of ours, want one", name, written)
		}
		if calls := s.Calls()[list]; calls > 8 {
			t.Errorf("%s: %d pages were read, want at most 8", name, calls)
		}
	}
}

// With more than a page of comments none of which is ours, the second look is
// answered from what is known.
func TestPutCommentAmongMany(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	for i := range 150 {
		repo.Comment(n, "alice", fmt.Sprint(i))
	}
	if _, err := c.PutComment(t.Context(), ref(n), "", "<!-- ours -->", "<!-- ours -->"); err != nil {
		t.Fatal(err)
	}
	if calls, free := s.Calls()["GET /repos/{owner}/{repo}/issues/{number}/{part}"], s.FreeCount(); calls != 4 || free != 2 {
		t.Errorf("%d pages were read, %d of them unchanged; want 4 and 2", calls, free)
	}
}

// The same for issues.
func TestPutIssueWhileOthersGo(t *testing.T) {
	t.Parallel()
	s := githubserver.New(t)
	repo := s.Repo("acme/app")
	c := newClient(t, s, github.Options{Identity: github.Identity{Token: token}})
	s.Fail(1, "POST /repos/{owner}/{repo}/issues", githubserver.Fault{Status: 502, After: true})
	if _, err := c.PutIssue(t.Context(), "app", "", driftMarker, drift("one")); err == nil {
		t.Fatal("the answer was not lost")
	}
	var others []int
	for i := range 100 {
		others = append(others, repo.OpenIssue("alice", fmt.Sprint(i), "", driftLabel))
	}
	for i := range 60 { // among the newest issues ours is not found
		repo.OpenIssue("alice", fmt.Sprint("no drift ", i), "")
	}
	const list = "GET /repos/{owner}/{repo}/issues"
	s.Before(list, func() {})
	s.Before(list, func() { repo.DeleteIssue(others[50]) })
	if got := putIssue(t, c, "", drift("two")); got.ID != "1" {
		t.Errorf("issue %s, want the first one written again", got.ID)
	}
}
