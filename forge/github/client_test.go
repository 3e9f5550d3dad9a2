package github_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
)

const (
	head  = "1111111111111111111111111111111111111111"
	merge = "2222222222222222222222222222222222222222"
	base  = "3333333333333333333333333333333333333333"
)

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now().UTC().Truncate(time.Second)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func token(context.Context) (string, error) { return githubserver.Token, nil }

// withToken returns a fake with the repository acme/app and a client for it.
func withToken(t testing.TB) (*github.Client, *githubserver.Server, *githubserver.Repo) {
	t.Helper()
	s := githubserver.New(t)
	return newClient(t, s, github.Options{Identity: github.Identity{Token: token}}), s, s.Repo("acme/app")
}

func newClient(t testing.TB, s *githubserver.Server, opts github.Options) *github.Client {
	t.Helper()
	if opts.BaseURL == "" {
		opts.BaseURL = s.URL
	}
	opts.Repositories = map[string]string{"app": "acme/app"}
	c, err := github.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ref(number int) holdfast.PullRequestRef {
	return holdfast.PullRequestRef{Repo: "app", Number: number}
}

func TestPullRequest(t *testing.T) {
	t.Parallel()
	c, _, repo := withToken(t)
	n := repo.OpenPullRequest(githubserver.PullRequest{Title: "Grow prod", Author: "alice", Branch: "grow", Head: head, BaseSHA: base})
	got, err := c.PullRequest(t.Context(), ref(n))
	if err != nil {
		t.Fatal(err)
	}
	want := holdfast.PullRequest{
		PullRequestRef: ref(n), Title: "Grow prod", Author: "alice", URL: "https://github.com/acme/app/pull/1",
		State: holdfast.PullRequestOpen, Branch: "grow", Head: head, BaseBranch: "main", UpdatedAt: got.UpdatedAt, Mergeable: true,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.UpdatedAt.IsZero() {
		t.Errorf("open (-want +got):\n%s", diff)
	}

	repo.SetMergeable(n, "dirty")
	repo.SetDraft(n, true)
	if got, err = c.PullRequest(t.Context(), ref(n)); err != nil || got.Mergeable || got.Blocked != "dirty" || !got.Draft {
		t.Errorf("dirty draft: %+v, %v", got, err)
	}

	repo.SetMergeable(n, "unknown")
	if got, err = c.PullRequest(t.Context(), ref(n)); err != nil || got.Mergeable || got.Blocked != "" {
		t.Errorf("of which nothing is known yet: %+v, %v", got, err)
	}

	repo.Merge(n, merge)
	got, err = c.PullRequest(t.Context(), ref(n))
	if err != nil || got.State != holdfast.PullRequestMerged || got.MergeCommit != merge || got.Head != head || got.MergedAt.IsZero() || got.Mergeable {
		t.Errorf("merged: %+v, %v", got, err)
	}

	forked := repo.OpenPullRequest(githubserver.PullRequest{Author: "mallory", Head: head, Fork: true})
	repo.Close(forked)
	if got, err = c.PullRequest(t.Context(), ref(forked)); err != nil || !got.Fork || got.State != holdfast.PullRequestClosed || got.MergeCommit != "" {
		t.Errorf("closed fork: %+v, %v", got, err)
	}
	if _, err = c.PullRequest(t.Context(), ref(99)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("no such pull request: %v", err)
	}
	if _, err = c.PullRequest(t.Context(), holdfast.PullRequestRef{Repo: "nothing", Number: 1}); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("no such repository: %v", err)
	}
}

func TestApproved(t *testing.T) {
	t.Parallel()
	type review struct{ login, state string }
	tests := map[string]struct {
		reviews []review
		want    bool
	}{
		"none":                       {nil, false},
		"approved":                   {[]review{{"bob", "APPROVED"}}, true},
		"a mere comment":             {[]review{{"bob", "COMMENTED"}}, false},
		"approved, then commented":   {[]review{{"bob", "APPROVED"}, {"bob", "COMMENTED"}}, true},
		"changes requested":          {[]review{{"bob", "APPROVED"}, {"carol", "CHANGES_REQUESTED"}}, false},
		"changes, then approved":     {[]review{{"bob", "CHANGES_REQUESTED"}, {"bob", "APPROVED"}}, true},
		"dismissed":                  {[]review{{"bob", "DISMISSED"}}, false},
		"by oneself":                 {[]review{{"alice", "APPROVED"}}, false},
		"by a stranger":              {[]review{{"mallory", "APPROVED"}}, false},
		"by a reader":                {[]review{{"rita", "APPROVED"}}, false},
		"a stranger's blockade":      {[]review{{"bob", "APPROVED"}, {"mallory", "CHANGES_REQUESTED"}}, true},
		"name that is a path":        {[]review{{"../../user", "APPROVED"}}, false},
		"approved by one of several": {[]review{{"rita", "APPROVED"}, {"carol", "APPROVED"}}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, repo := withToken(t)
			for login, permission := range map[string]string{"alice": "admin", "bob": "maintain", "carol": "write", "rita": "triage"} {
				repo.SetPermission(login, permission)
			}
			n := repo.OpenPullRequest(githubserver.PullRequest{Author: "alice", Head: head})
			for _, review := range test.reviews {
				repo.Review(n, review.login, review.state)
			}
			got, err := c.PullRequest(t.Context(), ref(n))
			if err != nil || got.Approved != test.want {
				t.Errorf("approved %v, %v, want %v", got.Approved, err, test.want)
			}
			for _, v := range got.Verdicts {
				if v.By == "" || v.Head != head || v.At.IsZero() || v.By == "alice" || v.By == "rita" || v.By == "mallory" {
					t.Errorf("verdict %+v", v)
				}
			}
			repo.PushHead(n, strings.Repeat("e", 40))
			if got, err = c.PullRequest(t.Context(), ref(n)); err != nil || got.Approved {
				t.Errorf("another head is approved %v, %v", got.Approved, err)
			}
		})
	}
}

// A repository that cannot be found in the middle of reading reviews does not make
// a request for changes go away, nor do so many reviews that not all are read.
func TestObjectionsAreKept(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	repo.SetPermission("bob", "write")
	repo.SetPermission("carol", "write")
	n := repo.OpenPullRequest(githubserver.PullRequest{Author: "alice", Head: head})
	repo.Review(n, "carol", "APPROVED")
	repo.Review(n, "bob", "CHANGES_REQUESTED")
	s.Fail(1, "GET /repos/{owner}/{repo}/collaborators/", githubserver.NotFound)
	if got, err := c.PullRequest(t.Context(), ref(n)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("the reviewer was not found: approved %v, %v", got.Approved, err)
	}
	endless := newClient(t, s, github.Options{Identity: github.Identity{Token: token}, Transport: morePages{}})
	if got, err := endless.PullRequest(t.Context(), ref(n)); err == nil {
		t.Errorf("more reviews than are read: approved %v", got.Approved)
	}
}

// morePages says of each page of reviews that another one follows.
type morePages struct{}

func (morePages) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := ownclient.Client.Transport.RoundTrip(req)
	if err == nil && strings.HasSuffix(req.URL.Path, "/reviews") {
		query := req.URL.Query()
		page, _ := strconv.Atoi(query.Get("page"))
		query.Set("page", strconv.Itoa(max(page, 1)+1))
		resp.Header.Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, req.URL.Path, query.Encode()))
	}
	return resp, err
}

func numbers(prs []holdfast.PullRequest) []int {
	out := []int{}
	for _, pr := range prs {
		out = append(out, pr.Number)
	}
	return out
}

func TestPullRequests(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	now := newClock()
	s.SetNow(now.Now)
	old := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	closed := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	repo.Close(closed)
	now.Advance(time.Hour)
	merged := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	repo.Merge(merged, merge)

	got, err := c.PullRequests(t.Context(), "app", now.Now().Add(-time.Minute))
	if diff := cmp.Diff([]int{old, merged}, numbers(got)); err != nil || diff != "" {
		t.Errorf("since a minute: %v, %s", err, diff)
	}
	got, err = c.PullRequests(t.Context(), "app", time.Time{})
	if diff := cmp.Diff([]int{old}, numbers(got)); err != nil || diff != "" {
		t.Errorf("since ever: %v, %s", err, diff)
	}

	for range 150 {
		repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	}
	s.ResetCalls()
	got, err = c.PullRequests(t.Context(), "app", time.Time{})
	if err != nil || len(got) != 151 || s.CallCount() != 2 {
		t.Errorf("many: %d in %d calls, %v", len(got), s.CallCount(), err)
	}
}

func TestPullRequestsOf(t *testing.T) {
	t.Parallel()
	squashed, rebased1, rebased2, direct := strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40), strings.Repeat("d", 40)
	c, _, repo := withToken(t)
	byMerge := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	repo.Merge(byMerge, merge)
	bySquash := repo.OpenPullRequest(githubserver.PullRequest{Head: strings.Repeat("4", 40)})
	repo.Merge(bySquash, squashed)
	byRebase := repo.OpenPullRequest(githubserver.PullRequest{Head: strings.Repeat("5", 40)})
	repo.Merge(byRebase, rebased1, rebased2)
	repo.OpenPullRequest(githubserver.PullRequest{Head: direct}) // open: it brought nothing to main
	repo.Knows(base)
	for commit, want := range map[string][]int{
		merge: {byMerge}, head: {byMerge}, squashed: {bySquash}, rebased1: {byRebase}, rebased2: {byRebase}, direct: {}, base: {},
	} {
		got, err := c.PullRequestsOf(t.Context(), "app", holdfast.Revision(commit))
		if diff := cmp.Diff(want, numbers(got)); err != nil || diff != "" {
			t.Errorf("of %s: %v, %s", commit[:7], err, diff)
		}
	}
	if _, err := c.PullRequestsOf(t.Context(), "app", holdfast.Revision(strings.Repeat("e", 40))); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("of a commit that is not there: %v", err)
	}
}

func TestPermission(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	for role, want := range map[string]holdfast.Permission{
		"admin": holdfast.PermissionAdmin, "maintain": holdfast.PermissionWrite, "write": holdfast.PermissionWrite,
		"triage": holdfast.PermissionRead, "read": holdfast.PermissionRead, "none": holdfast.PermissionNone,
	} {
		repo.SetPermission("u-"+role, role)
		if got, err := c.Permission(t.Context(), "app", "u-"+role); err != nil || got != want {
			t.Errorf("%s: %s, %v", role, got, err)
		}
	}
	if got, err := c.Permission(t.Context(), "app", "ghost"); err != nil || got != holdfast.PermissionNone {
		t.Errorf("no such user: %s, %v", got, err)
	}
	s.Fail(1, "", githubserver.NotFound)
	if got, err := c.Permission(t.Context(), "app", "alice"); !errors.Is(err, holdfast.ErrNotFound) || got.CanWrite() {
		t.Errorf("no such repository: %s, %v", got, err)
	}
	s.ResetCalls()
	if got, err := c.Permission(t.Context(), "app", "../../../user"); err != nil || got != holdfast.PermissionNone || s.CallCount() != 0 {
		t.Errorf("a path for a name: %s, %v, %v", got, err, s.Calls())
	}
}

func TestComments(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	now := newClock()
	s.SetNow(now.Now)
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	first := repo.Comment(n, "alice", "first")
	now.Advance(time.Hour)
	repo.CommentOnIssue(77, "alice", "/holdfast apply")
	second := repo.Comment(n, "renovate[bot]", "second")
	now.Advance(time.Second)
	repo.EditComment(first, "alice", "first, edited")

	list, err := c.Comments(t.Context(), "app", now.Now().Add(-time.Second))
	got := list.Comments
	if err != nil || len(got) != 2 || got[0].Body != "second" || !got[0].Bot || got[1].Body != "first, edited" {
		t.Fatalf("comments: %+v, %v", got, err)
	}
	if got[1].PullRequest != ref(n) || got[1].Author != "alice" || got[1].Bot || !got[1].UpdatedAt.After(got[1].CreatedAt) {
		t.Errorf("comment: %+v", got[1])
	}
	_ = second
	for range 150 {
		repo.Comment(n, "alice", "more")
	}
	now.Advance(time.Second)
	repo.CommentOnIssue(77, "alice", "the newest")
	if list, err = c.Comments(t.Context(), "app", time.Time{}); err != nil || len(list.Comments) != 152 || list.More || !list.Until.Equal(now.Now()) {
		t.Errorf("all: %d until %s, more %v, %v", len(list.Comments), list.Until, list.More, err)
	}
}

// A comment that is edited while the list is read goes to its end, and all that
// come after it move forward: none is passed over.
func TestCommentsThatMove(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	now := newClock()
	s.SetNow(now.Now)
	start := now.Now()
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	ids := make(map[string]bool)
	var first int64
	for i := range 350 {
		id := repo.Comment(n, "bob", "a comment")
		if i == 0 {
			first = id
		}
		ids[strconv.FormatInt(id, 10)] = true
		if i < 10 || i > 260 { // the others are of one second
			now.Advance(time.Second)
		}
	}
	const route = "GET /repos/{owner}/{repo}/issues/comments"
	s.Before(route, func() {})
	s.Before(route, func() { repo.EditComment(first, "bob", "edited") })
	s.Before(route, func() { repo.EditComment(first+1, "bob", "edited") })
	got, err := c.Comments(t.Context(), "app", start)
	if err != nil || got.More || !got.Until.Equal(now.Now()) {
		t.Fatalf("until %s, more %v, %v", got.Until, got.More, err)
	}
	for _, comment := range got.Comments {
		delete(ids, comment.ID)
	}
	if len(ids) != 0 || len(got.Comments) != 350 {
		t.Errorf("%d comments, without %v", len(got.Comments), ids)
	}
}

func TestPutComment(t *testing.T) {
	t.Parallel()
	const marker = "<!-- holdfast:pull-request app#1 -->"
	c, s, repo := withToken(t)
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	repo.Comment(n, "mallory", marker+" mine")
	put := func(id, marker, body string) holdfast.Comment {
		t.Helper()
		got, err := c.PutComment(t.Context(), ref(n), id, marker, body)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	bodies := func() (out []string) {
		for _, comment := range repo.Comments(n) {
			out = append(out, comment.Author+": "+strings.TrimPrefix(comment.Body, marker))
		}
		return out
	}
	created := put("", marker, marker+" one")
	if created.ID == "" || created.CreatedAt.IsZero() || created.Author != githubserver.TokenLogin || created.PullRequest != ref(n) {
		t.Errorf("created %+v", created)
	}
	if got := put("", marker, marker+" two"); got.ID != created.ID { // the answer got lost
		t.Errorf("without an id: %s, want %s", got.ID, created.ID)
	}
	if got := put(created.ID, marker, marker+" three"); got.ID != created.ID {
		t.Errorf("with an id: %s, want %s", got.ID, created.ID)
	}
	if diff := cmp.Diff([]string{"mallory:  mine", githubserver.TokenLogin + ":  three"}, bodies()); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
	repo.DeleteComment(repo.Comments(n)[1].ID, "alice")
	if got := put(created.ID, marker, marker+" four"); got.ID == created.ID {
		t.Errorf("with an id that is gone: %s", got.ID)
	}
	put("", "", "reply")
	put("", "", "reply")
	want := []string{"mallory:  mine", githubserver.TokenLogin + ":  four", githubserver.TokenLogin + ": reply", githubserver.TokenLogin + ": reply"}
	if diff := cmp.Diff(want, bodies()); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
	s.Fail(1, "POST", githubserver.Fault{Status: 502, After: true}) // it is made, the answer is lost
	if _, err := c.PutComment(t.Context(), ref(n), "", "<!-- holdfast:x -->", "<!-- holdfast:x --> a"); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("lost answer: %v", err)
	}
	put("", "<!-- holdfast:x -->", "<!-- holdfast:x --> b")
	if got := bodies(); len(got) != 5 || !strings.HasSuffix(got[4], " b") {
		t.Errorf("after a lost answer: %v", got)
	}
	if _, err := c.PutComment(t.Context(), ref(n), "../1", marker, "x"); err == nil {
		t.Error("an id that is a path was taken")
	}
}

// A comment of ours that cannot be edited for once gets no second one next to it, and
// one that says what it shall already is left alone.
func TestPutCommentWritesNoneTwice(t *testing.T) {
	t.Parallel()
	const marker = "<!-- holdfast:pull-request app#1 -->"
	for name, fault := range map[string]githubserver.Fault{"forbidden": githubserver.Forbidden, "not found": githubserver.NotFound} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, repo := withToken(t)
			n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
			first, err := c.PutComment(t.Context(), ref(n), "", marker, marker+" one")
			if err != nil {
				t.Fatal(err)
			}
			s.Fail(1, "PATCH", fault)
			if got, err := c.PutComment(t.Context(), ref(n), first.ID, marker, marker+" two"); err == nil {
				t.Errorf("refused once: got %+v, want an error", got)
			}
			if got, err := c.PutComment(t.Context(), ref(n), first.ID, marker, marker+" two"); err != nil || got.ID != first.ID {
				t.Errorf("the next try: %+v, %v", got, err)
			}
			s.ResetCalls()
			got, err := c.PutComment(t.Context(), ref(n), "", marker, marker+" two") // as if the answer had got lost
			if err != nil || got.ID != first.ID || got.UpdatedAt.IsZero() {
				t.Errorf("the same again: %+v, %v", got, err)
			}
			for route, calls := range s.Calls() {
				if strings.HasPrefix(route, "PATCH") || strings.HasPrefix(route, "POST") {
					t.Errorf("%d calls of %s for what is there already", calls, route)
				}
			}
			if comments := repo.Comments(n); len(comments) != 1 {
				t.Errorf("%d comments, want one", len(comments))
			}
		})
	}
}

func TestLongTexts(t *testing.T) {
	t.Parallel()
	c, _, repo := withToken(t)
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	got, err := c.PutComment(t.Context(), ref(n), "", "", strings.Repeat("ä", 70_000))
	if err != nil || len([]rune(got.Body)) != 65536 || !strings.Contains(got.Body, "Truncated") {
		t.Errorf("a comment of %d characters, %v", len([]rune(got.Body)), err)
	}
	err = c.SetStatus(t.Context(), "app", holdfast.CommitStatus{Revision: head, Context: holdfast.ContextPlan, State: holdfast.StatusSuccess, Description: strings.Repeat("ä", 200)})
	status, _ := repo.LatestStatus(head, holdfast.ContextPlan)
	if err != nil || len([]rune(status.Description)) != 140 {
		t.Errorf("a description of %d characters, %v", len([]rune(status.Description)), err)
	}
}

func TestReact(t *testing.T) {
	t.Parallel()
	c, _, repo := withToken(t)
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	id := repo.Comment(n, "alice", "/holdfast plan")
	list, err := c.Comments(t.Context(), "app", time.Time{})
	comments := list.Comments
	if err != nil {
		t.Fatal(err)
	}
	for _, reaction := range []holdfast.Reaction{holdfast.ReactionSeen, holdfast.ReactionSeen, holdfast.ReactionDone, holdfast.ReactionRefused} {
		if err := c.React(t.Context(), ref(n), comments[0].ID, reaction); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"eyes", "rocket", "-1"}, repo.Reactions(id)); diff != "" {
		t.Errorf("reactions (-want +got):\n%s", diff)
	}
	repo.DeleteComment(id, "alice")
	if err := c.React(t.Context(), ref(n), comments[0].ID, holdfast.ReactionDone); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("under a comment that is gone: %v", err)
	}
}

func TestSetStatus(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	repo.Knows(head)
	other := newClient(t, s, github.Options{Identity: github.Identity{Token: token}}) // another replica
	pending := holdfast.CommitStatus{Revision: head, Context: holdfast.ContextPlan, State: holdfast.StatusPending, Description: "planning"}
	success := pending
	success.State, success.Description, success.URL = holdfast.StatusSuccess, "planned", "https://holdfast.example.com/1"
	set := func(c *github.Client, status holdfast.CommitStatus, want int) {
		t.Helper()
		if err := c.SetStatus(t.Context(), "app", status); err != nil {
			t.Fatal(err)
		}
		statuses := repo.Statuses(head)
		if last := statuses[len(statuses)-1]; len(statuses) != want || last.State != string(status.State) || last.TargetURL != status.URL {
			t.Fatalf("%d statuses, the last %+v, want %d", len(statuses), last, want)
		}
	}
	set(c, pending, 1)
	set(c, pending, 1)
	set(c, success, 2)
	set(c, success, 2)
	set(other, pending, 3) // the first client does not know
	set(c, success, 4)
	set(c, pending, 5)

	s.Fail(1, "POST", githubserver.Fault{Status: 502, After: true}) // it is set, the answer is lost
	if err := c.SetStatus(t.Context(), "app", success); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Fatalf("lost answer: %v", err)
	}
	set(c, success, 6)
	s.Fail(1, "POST", githubserver.BadGateway) // it is not set
	if err := c.SetStatus(t.Context(), "app", pending); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Fatalf("refused: %v", err)
	}
	set(c, pending, 7)
	apply := pending
	apply.Context = holdfast.ContextApply
	set(c, apply, 8)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]github.Options{
		"nobody":         {},
		"both":           {Identity: github.Identity{Token: token, App: &github.App{}}},
		"no key":         {Identity: github.Identity{App: &github.App{ID: 1}}},
		"garbage key":    {Identity: github.Identity{App: &github.App{ID: 1, PrivateKey: []byte("s3cr3t-garbage")}}},
		"no URL":         {Identity: github.Identity{Token: token}, BaseURL: "github.example.com"},
		"a password":     {Identity: github.Identity{Token: token}, BaseURL: "https://u:s3cr3t@github.example.com/"},
		"another scheme": {Identity: github.Identity{Token: token}, BaseURL: "ssh://github.example.com/"},
		"a bare name":    {Identity: github.Identity{Token: token}, Repositories: map[string]string{"app": "app"}},
		"a path":         {Identity: github.Identity{Token: token}, Repositories: map[string]string{"app": "acme/app/../../x"}},
	} {
		_, err := github.New(opts)
		if err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEnterpriseURL(t *testing.T) {
	t.Parallel()
	s := githubserver.New(t)
	n := s.Repo("acme/app").OpenPullRequest(githubserver.PullRequest{Head: head})
	c := newClient(t, s, github.Options{Identity: github.Identity{Token: token}, BaseURL: s.URL + "api/v3"})
	if _, err := c.PullRequest(t.Context(), ref(n)); err != nil {
		t.Error(err)
	}
}

// TestTokenStaysAtHome follows a redirect to another host, and must not.
func TestTokenStaysAtHome(t *testing.T) {
	t.Parallel()
	stolen := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") }))
	defer thief.Close()
	s := githubserver.New(t)
	c := newClient(t, s, github.Options{Identity: github.Identity{Token: token}})
	s.Fail(1, "", githubserver.Fault{Status: 301, Header: map[string]string{"Location": thief.URL}})
	if _, err := c.PullRequest(t.Context(), ref(1)); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("redirected to another host: %v", err)
	}
	select {
	case header := <-stolen:
		t.Errorf("another host was asked, with %q", header)
	default:
	}
	repo := s.Repo("acme/app")
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	s.Fail(1, "GET", githubserver.Fault{Status: 301, Header: map[string]string{"Location": "/repos/acme/app/pulls/1"}})
	if got, err := c.PullRequest(t.Context(), ref(n)); err != nil || got.Number != n {
		t.Errorf("redirected within the host: %+v, %v", got, err)
	}
	s.Fail(1, "POST", githubserver.Fault{Status: 302, Header: map[string]string{"Location": "/repos/acme/app/pulls/1"}})
	if err := c.SetStatus(t.Context(), "app", holdfast.CommitStatus{Revision: head, Context: "c", State: holdfast.StatusPending}); err == nil {
		t.Error("a write that became a read looked like a success")
	}
}
