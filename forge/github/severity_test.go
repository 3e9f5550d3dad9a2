package github_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// TestPermissions makes each call with all permissions that the README asks for
// but one: it fails if it needs that one, and the error names it.
func TestPermissions(t *testing.T) {
	t.Parallel()
	all := map[string]string{
		"metadata": "read", "contents": "read", "pull_requests": "write", "issues": "write", "statuses": "write",
	}
	type call func(c *github.Client, n int) error
	calls := map[string]struct {
		call  call
		needs string // empty: any one of two
	}{
		"read": {func(c *github.Client, n int) error {
			_, err := c.PullRequest(t.Context(), ref(n))
			return err
		}, "pull_requests"},
		"permission": {func(c *github.Client, _ int) error {
			_, err := c.Permission(t.Context(), "app", "alice")
			return err
		}, "metadata"},
		"status": {func(c *github.Client, _ int) error {
			return c.SetStatus(t.Context(), "app", holdfast.CommitStatus{Revision: head, Context: holdfast.ContextPlan, State: holdfast.StatusPending})
		}, "statuses"},
		"comment": {func(c *github.Client, n int) error {
			_, err := c.PutComment(t.Context(), ref(n), "", "", "hello")
			return err
		}, ""},
		"issue": {func(c *github.Client, _ int) error {
			_, err := c.PutIssue(t.Context(), "app", "", "m", holdfast.Issue{Title: "drift", Body: "m"})
			return err
		}, "issues"},
	}
	for name, test := range calls {
		for _, missing := range append(slices.Sorted(maps.Keys(all)), "") {
			c, s, repo := withToken(t)
			n := repo.OpenPullRequest(githubserver.PullRequest{Author: "alice", Head: head})
			fewer := maps.Clone(all)
			delete(fewer, missing)
			s.SetPermissions(fewer)
			err := test.call(c, n)
			switch {
			case missing != "" && missing == test.needs:
				if !errors.Is(err, holdfast.ErrForbidden) || !strings.Contains(err.Error(), test.needs+"=") {
					t.Errorf("%s without %s: %v", name, missing, err)
				}
			case err != nil:
				t.Errorf("%s without %q: %v", name, missing, err)
			}
		}
	}
}

// TestRenamedRepository reads and writes under the name that a repository had.
func TestRenamedRepository(t *testing.T) {
	t.Parallel()
	c, _, repo := withToken(t)
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	repo.Rename("acme/renamed")
	if found, err := c.Repository(t.Context(), "app"); err != nil || found.ID != repo.ID() || found.FullName != "acme/renamed" || found.Archived {
		t.Errorf("repository: %+v, %v", found, err)
	}
	if pr, err := c.PullRequest(t.Context(), ref(n)); err != nil || pr.Head != head {
		t.Errorf("read: %+v, %v", pr, err)
	}
	if _, err := c.PutComment(t.Context(), ref(n), "", "m", "m: hello"); err != nil || len(repo.Comments(n)) != 1 {
		t.Errorf("comment: %v", err)
	}
	if err := c.SetStatus(t.Context(), "app", holdfast.CommitStatus{Revision: head, Context: holdfast.ContextPlan, State: holdfast.StatusPending}); err != nil {
		t.Errorf("status: %v", err)
	}
	if _, set := repo.LatestStatus(head, holdfast.ContextPlan); !set {
		t.Error("the status is not there")
	}
}

// TestAnotherTokenAsksAnew: what one token was answered is not "not modified" for
// the next one.
func TestAnotherTokenAsksAnew(t *testing.T) {
	t.Parallel()
	s := githubserver.New(t)
	n := s.Repo("acme/app").OpenPullRequest(githubserver.PullRequest{Head: head})
	c := newClient(t, s, github.Options{Identity: github.Identity{App: &github.App{ID: githubserver.AppID, PrivateKey: s.AppKey()}}})
	for range 2 {
		if _, err := c.PullRequest(t.Context(), ref(n)); err != nil {
			t.Fatal(err)
		}
	}
	if s.FreeCount() == 0 {
		t.Error("the same token was not answered 304")
	}
	s.RevokeTokens()
	s.ResetCalls()
	if pr, err := c.PullRequest(t.Context(), ref(n)); err != nil || pr.Number != n || s.FreeCount() != 0 {
		t.Errorf("with another token: %+v, %v, %d answered 304", pr, err, s.FreeCount())
	}
}

// TestArchivedRepository can be read. What is written waits, without calls, until it is
// no longer archived; other repositories do not wait.
func TestArchivedRepository(t *testing.T) {
	t.Parallel()
	now, s := newClock(), githubserver.New(t)
	repo, other := s.Repo("acme/app"), s.Repo("acme/other")
	s.SetNow(now.Now)
	c, err := github.New(github.Options{
		BaseURL: s.URL, Identity: github.Identity{Token: token}, Now: now.Now, Repositories: map[string]string{"app": "acme/app", "other": "acme/other"},
	})
	if err != nil {
		t.Fatal(err)
	}
	n, m := repo.OpenPullRequest(githubserver.PullRequest{Head: head}), other.OpenPullRequest(githubserver.PullRequest{Head: head})
	ours, err := c.PutComment(t.Context(), ref(n), "", "m", "m: one")
	if err != nil {
		t.Fatal(err)
	}
	repo.Archive(true)
	if found, err := c.Repository(t.Context(), "app"); err != nil || !found.Archived {
		t.Errorf("archived: %+v, %v", found, err)
	}
	s.ResetCalls()
	for i, put := range []func() error{
		func() error { _, err := c.PutComment(t.Context(), ref(n), ours.ID, "m", "m: two"); return err },
		func() error { _, err := c.PutComment(t.Context(), ref(n), "", "", "new"); return err },
		func() error {
			return c.SetStatus(t.Context(), "app", holdfast.CommitStatus{Revision: head, Context: holdfast.ContextPlan, State: holdfast.StatusPending})
		},
	} {
		var later *holdfast.RateLimitError
		if err := put(); !errors.As(err, &later) || !later.RetryAt.Equal(now.Now().Add(5*time.Minute)) || !errors.Is(err, holdfast.ErrUnavailable) ||
			!strings.Contains(err.Error(), "the repository is archived; tried again at ") || strings.Contains(err.Error(), "rate limit") {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if s.CallCount() != 1 {
		t.Errorf("calls while it is archived: %v", s.Calls())
	}
	if _, err := c.PullRequest(t.Context(), ref(n)); err != nil {
		t.Errorf("read: %v", err)
	}
	if _, err := c.PutComment(t.Context(), holdfast.PullRequestRef{Repo: "other", Number: m}, "", "m", "m"); err != nil {
		t.Errorf("another repository: %v", err)
	}
	repo.Archive(false)
	now.Advance(5 * time.Minute)
	if again, err := c.PutComment(t.Context(), ref(n), ours.ID, "m", "m: two"); err != nil || again.Body != "m: two" || again.ID != ours.ID {
		t.Errorf("afterwards: %+v, %v", again, err)
	}
}

// TestHiddenRepository is not found, as long as it is hidden.
func TestHiddenRepository(t *testing.T) {
	t.Parallel()
	c, _, repo := withToken(t)
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	repo.Hide(true)
	if _, err := c.Repository(t.Context(), "app"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("hidden: %v", err)
	}
	if _, err := c.PutComment(t.Context(), ref(n), "", "m", "m"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("hidden, written: %v", err)
	}
	repo.Hide(false)
	if found, err := c.Repository(t.Context(), "app"); err != nil || found.ID != repo.ID() || found.Archived {
		t.Errorf("back: %+v, %v", found, err)
	}
}

// TestUnknownCommit: no other try makes it better.
func TestUnknownCommit(t *testing.T) {
	t.Parallel()
	c, _, _ := withToken(t)
	err := c.SetStatus(t.Context(), "app", holdfast.CommitStatus{Revision: merge, Context: holdfast.ContextPlan, State: holdfast.StatusPending})
	if err == nil || errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "No commit found") {
		t.Errorf("a status of a commit that GitHub does not have: %v", err)
	}
	if got, err := c.Permission(t.Context(), "app", "dependabot[bot]"); err != nil || got != holdfast.PermissionNone {
		t.Errorf("permission of an App: %s, %v", got, err)
	}
}
