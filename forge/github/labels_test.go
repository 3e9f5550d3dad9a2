package github_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// TestSetLabels: of ours a pull request has those that are wanted, and those of people stay.
func TestSetLabels(t *testing.T) {
	t.Parallel()
	s := githubserver.New(t)
	repo := s.Repo("acme/app")
	number := repo.OpenPullRequest(githubserver.PullRequest{Head: head, Labels: []string{"theirs", "Holdfast/Blocked"}})
	c := newClient(t, s, github.Options{Identity: github.Identity{Token: token}})
	ref := holdfast.PullRequestRef{Repo: "app", Number: number}
	ours := []string{"holdfast/destroys", "holdfast/blocked", "holdfast/failed"}
	const add, remove = "POST /repos/{owner}/{repo}/issues/{number}/labels", "DELETE /repos/{owner}/{repo}/issues/{number}/labels/{name}"
	for _, wanted := range [][]string{{"holdfast/destroys", "holdfast/blocked"}, {"holdfast/destroys", "holdfast/blocked"}, {"holdfast/failed"}, nil} {
		if err := c.SetLabels(t.Context(), ref, ours, wanted); err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(repo.Labels(number), func(l string) bool { return l == "theirs" })
		if len(got) != len(wanted) || !slices.Contains(repo.Labels(number), "theirs") {
			t.Errorf("the labels are %q, want %q", repo.Labels(number), wanted)
		}
	}
	if n, m := s.Calls()[add], s.Calls()[remove]; n != 2 || m != 3 {
		t.Errorf("%d and %d calls put labels on and took them off, want 2 and 3", n, m)
	}
	ref.Number++
	if err := c.SetLabels(t.Context(), ref, ours, ours); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("labels of nothing: %v", err)
	}
	s.Fail(1, add, githubserver.Fault{Status: http.StatusBadGateway})
	ref.Number--
	if err := c.SetLabels(t.Context(), ref, ours, ours); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("GitHub in trouble: %v", err)
	}
}
