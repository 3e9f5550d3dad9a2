package github_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

const (
	driftMarker = "<!-- holdfast:drift prod-eu -->"
	driftLabel  = "holdfast-drift"
)

func drift(text string) holdfast.Issue {
	return holdfast.Issue{Title: "Drift in prod-eu", Body: driftMarker + "\n" + text, Labels: []string{driftLabel}}
}

func none() holdfast.Issue {
	issue := drift("none any more")
	issue.Closed = true
	return issue
}

// issuesOf shows the issues of a repository with what happened to them.
func issuesOf(repo *githubserver.Repo) (out []string) {
	for _, i := range repo.Issues() {
		body := strings.TrimPrefix(i.Body, driftMarker+"\n")
		out = append(out, fmt.Sprintf("%d %s %v %s: %s", i.Number, i.Author, i.Labels, strings.Join(i.Actions(), " "), body))
	}
	return out
}

func wantIssues(t *testing.T, repo *githubserver.Repo, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, issuesOf(repo)); diff != "" {
		t.Errorf("issues (-want +got):\n%s", diff)
	}
}

func putIssue(t *testing.T, c *github.Client, id string, issue holdfast.Issue) holdfast.Issue {
	t.Helper()
	got, err := c.PutIssue(t.Context(), "app", id, driftMarker, issue)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// writes returns how many calls could have changed something.
func writes(s *githubserver.Server) (n int) {
	for route, calls := range s.Calls() {
		if !strings.HasPrefix(route, "GET ") {
			n += calls
		}
	}
	return n
}

const byRobot = githubserver.TokenLogin + " [" + driftLabel + "]"

func TestPutIssueThroughItsLife(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	repo.OpenPullRequest(githubserver.PullRequest{Head: head}) // has the number 1

	got := putIssue(t, c, "", none())
	if diff := cmp.Diff(holdfast.Issue{}, got); diff != "" || writes(s) != 0 {
		t.Errorf("closed before it was there: %s, %v", diff, s.Calls())
	}
	got = putIssue(t, c, "", drift("one"))
	want := drift("one")
	want.ID, want.URL = "2", "https://github.com/acme/app/issues/2"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	got = putIssue(t, c, "2", drift("two"))
	if got.ID != "2" || got.Body != drift("two").Body || got.Closed {
		t.Errorf("edited: %+v", got)
	}
	s.ResetCalls()
	if putIssue(t, c, "2", drift("two")); writes(s) != 0 {
		t.Errorf("wrote what is there: %v", s.Calls())
	}
	if got = putIssue(t, c, "2", none()); got.ID != "2" || !got.Closed {
		t.Errorf("closed: %+v", got)
	}
	if reason := repo.Issues()[0].StateReason; reason != "completed" {
		t.Errorf("closed as %s", reason)
	}
	if got = putIssue(t, c, "2", drift("three")); got.ID != "2" || got.Closed {
		t.Errorf("opened again: %+v", got)
	}
	wantIssues(t, repo, "2 "+byRobot+" opened edited edited closed edited reopened: three")

	// What people do with labels is theirs to do; what they closed is opened
	// again when there is something new.
	repo.LabelIssue(2, "important")
	repo.CloseIssue(2, "alice")
	putIssue(t, c, "2", drift("four"))
	wantIssues(t, repo, "2 "+githubserver.TokenLogin+" [important] opened edited edited closed edited reopened closed edited reopened: four")
}

// A call whose answer got lost is made again by whoever does not know better.
func TestPutIssueAfterALostAnswer(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*githubserver.Repo){
		"with its label":    func(*githubserver.Repo) {},
		"the label dropped": func(repo *githubserver.Repo) { repo.SetPermission(githubserver.TokenLogin, "read") },
		"among many": func(repo *githubserver.Repo) {
			for i := range 120 {
				repo.OpenIssue("alice", "Mine", "mine", driftLabel)
				if i%2 == 0 {
					repo.OpenPullRequest(githubserver.PullRequest{Head: head})
				}
			}
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, repo := withToken(t)
			prepare(repo)
			before := len(repo.Issues())
			s.Fail(1, "POST", githubserver.Fault{Status: 502, After: true})
			if got, err := c.PutIssue(t.Context(), "app", "", driftMarker, drift("one")); !errors.Is(err, holdfast.ErrUnavailable) {
				t.Fatalf("lost answer: %+v, %v", got, err)
			}
			s.ResetCalls()
			first := putIssue(t, c, "", drift("one"))
			if first.ID == "" || writes(s) != 0 {
				t.Errorf("the same again: %+v, %v", first, s.Calls())
			}
			if name == "among many" {
				for range 120 { // the next page
					repo.OpenIssue("alice", "Mine", "mine", driftLabel)
				}
				before += 120
			}
			if again := putIssue(t, c, "", drift("two")); again.ID != first.ID || again.Body != drift("two").Body {
				t.Errorf("something else: %+v, want issue %s", again, first.ID)
			}
			s.Fail(1, "PATCH", githubserver.Fault{Status: 502, After: true})
			if _, err := c.PutIssue(t.Context(), "app", first.ID, driftMarker, none()); !errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("lost answer: %v", err)
			}
			s.ResetCalls()
			if got := putIssue(t, c, first.ID, none()); !got.Closed || writes(s) != 0 {
				t.Errorf("closed again: %+v, %v", got, s.Calls())
			}
			if got := len(repo.Issues()); got != before+1 {
				t.Errorf("%d issues, want %d", got, before+1)
			}
		})
	}
}

func TestPutIssueThatIsGone(t *testing.T) {
	t.Parallel()
	tests := map[string]func(s *githubserver.Server, repo *githubserver.Repo, number int){
		"deleted": func(_ *githubserver.Server, repo *githubserver.Repo, n int) { repo.DeleteIssue(n) },
		"transferred": func(s *githubserver.Server, repo *githubserver.Repo, n int) {
			repo.TransferIssue(n, s.Repo("acme/other"))
		},
		"not found": func(s *githubserver.Server, repo *githubserver.Repo, n int) {
			repo.DeleteIssue(n)
			s.Fail(1, "GET /repos/{owner}/{repo}/issues/{number}", githubserver.NotFound)
		},
	}
	for name, lose := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, repo := withToken(t)
			first := putIssue(t, c, "", drift("one"))
			lose(s, repo, 1)
			if got := putIssue(t, c, first.ID, none()); got.ID != "" {
				t.Errorf("closed: %+v", got)
			}
			if got := putIssue(t, c, first.ID, drift("two")); got.ID != "2" {
				t.Errorf("put: %+v", got)
			}
			wantIssues(t, repo, "2 "+byRobot+" opened: two")
			if there := s.Repo("acme/other").Issues(); name == "transferred" && len(there[0].History) != 1 {
				t.Errorf("the one that was transferred: %+v", there)
			}
		})
	}
}

// The id may be of the forge that the repository was on before.
func TestPutIssueLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	c, _, repo := withToken(t)
	pull := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	repo.OpenIssue("alice", "Mine", "mine")
	repo.OpenIssue("mallory", "Drift in prod-eu", driftMarker+"\ncatch me", driftLabel)
	for _, id := range []string{"1", "2", "local:0123", "../2", "-1", ""} {
		if got := putIssue(t, c, id, drift("one")); got.ID != "4" {
			t.Errorf("id %q: %+v", id, got)
		}
	}
	wantIssues(t, repo,
		"2 alice [] opened: mine",
		"3 mallory ["+driftLabel+"] opened: catch me",
		"4 "+byRobot+" opened: one")
	if n := len(repo.Comments(pull)); n != 0 {
		t.Errorf("%d comments on the pull request", n)
	}
}

func TestPutIssueTakesTheOpenOne(t *testing.T) {
	t.Parallel()
	c, _, repo := withToken(t)
	for range 3 {
		repo.OpenIssue(githubserver.TokenLogin, "Drift", driftMarker+"\nold", driftLabel)
	}
	repo.CloseIssue(1, "alice")
	repo.CloseIssue(3, "alice")
	if got := putIssue(t, c, "", drift("new")); got.ID != "2" {
		t.Errorf("put %+v", got)
	}
	repo.CloseIssue(2, "alice")
	if got := putIssue(t, c, "", drift("newer")); got.ID != "3" {
		t.Errorf("put %+v", got)
	}
}

func TestPutIssueErrors(t *testing.T) {
	t.Parallel()
	oldWords := githubserver.Fault{Status: 410, Body: `{"message":"Issues are disabled for this repo","documentation_url":"https://docs.github.com/v3/issues/"}`}
	gone := githubserver.Fault{Status: 410, Body: `{"message":"Gone"}`}
	tests := map[string]struct {
		route string
		fault githubserver.Fault
		want  error
	}{
		"forbidden":           {"POST", githubserver.Forbidden, holdfast.ErrForbidden},
		"forbidden to edit":   {"PATCH", githubserver.Forbidden, holdfast.ErrForbidden},
		"forbidden to read":   {"GET /repos", githubserver.Forbidden, holdfast.ErrForbidden},
		"turned off":          {"POST", oldWords, holdfast.ErrForbidden},
		"turned off, reading": {"GET", oldWords, holdfast.ErrForbidden},
		"turned off, editing": {"PATCH", oldWords, holdfast.ErrForbidden},
		"gone, creating":      {"POST", gone, holdfast.ErrForbidden},
		"deleted meanwhile":   {"PATCH", gone, holdfast.ErrNotFound},
		"no such repository":  {"POST", githubserver.NotFound, holdfast.ErrNotFound},
		"unauthorized":        {"", githubserver.Unauthorized, holdfast.ErrUnauthorized},
		"bad gateway":         {"", githubserver.BadGateway, holdfast.ErrUnavailable},
		"garbage":             {"GET", githubserver.Garbage, holdfast.ErrUnavailable},
		"rate limited":        {"PATCH", githubserver.SecondaryLimit(time.Minute), holdfast.ErrUnavailable},
		"too many requests":   {"POST", githubserver.TooManyRequests(time.Minute), holdfast.ErrUnavailable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, repo := withToken(t)
			id := ""
			if tc.route == "PATCH" || name == "turned off, reading" {
				id = putIssue(t, c, "", drift("one")).ID
			}
			before := issuesOf(repo)
			s.Fail(1, tc.route, tc.fault)
			got, err := c.PutIssue(t.Context(), "app", id, driftMarker, drift("two"))
			if !errors.Is(err, tc.want) {
				t.Fatalf("%+v, %v, want %v", got, err, tc.want)
			}
			var limited *holdfast.RateLimitError
			if errors.As(err, &limited) != (tc.fault.Header["Retry-After"] != "") {
				t.Errorf("%v: rate limited %v", err, limited)
			}
			if diff := cmp.Diff(before, issuesOf(repo)); diff != "" {
				t.Errorf("issues (-before +after):\n%s", diff)
			}
		})
	}
	c, s, repo := withToken(t)
	id := putIssue(t, c, "", drift("one")).ID
	repo.DisableIssues(true)
	for _, id := range []string{id, ""} {
		if _, err := c.PutIssue(t.Context(), "app", id, driftMarker, drift("two")); !errors.Is(err, holdfast.ErrForbidden) {
			t.Errorf("disabled: %v", err)
		}
	}
	repo.DisableIssues(false)
	putIssue(t, c, id, drift("two"))
	wantIssues(t, repo, "1 "+byRobot+" opened edited: two")

	s.ResetCalls()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.PutIssue(ctx, "app", id, driftMarker, drift("three")); !errors.Is(err, context.Canceled) || s.CallCount() > 0 {
		t.Errorf("canceled: %v, %v", err, s.Calls())
	}
	if _, err := c.PutIssue(t.Context(), "nothing", id, driftMarker, drift("three")); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("no such repository: %v", err)
	}
}

// While GitHub refuses, nothing is asked; afterwards the same call makes one
// issue.
func TestPutIssueWaitsForTheLimit(t *testing.T) {
	t.Parallel()
	now := newClock()
	s := githubserver.New(t)
	s.SetNow(now.Now)
	repo := s.Repo("acme/app")
	c := newClient(t, s, github.Options{Identity: github.Identity{Token: token}, Now: now.Now})
	s.Fail(1, "POST", githubserver.SecondaryLimit(2*time.Minute))
	for range 3 {
		_, err := c.PutIssue(t.Context(), "app", "", driftMarker, drift("one"))
		var limited *holdfast.RateLimitError
		if !errors.As(err, &limited) || limited.RetryAt.Sub(now.Now()) != 2*time.Minute {
			t.Fatalf("got %v, want a RateLimitError", err)
		}
	}
	if n := writes(s); n != 1 {
		t.Errorf("%d writes while refused", n)
	}
	now.Advance(2 * time.Minute)
	putIssue(t, c, "", drift("one"))
	wantIssues(t, repo, "1 "+byRobot+" opened: one")
}

func TestPutIssueAsApp(t *testing.T) {
	t.Parallel()
	s := githubserver.New(t)
	repo := s.Repo("acme/app")
	byApp := newClient(t, s, github.Options{Identity: github.Identity{App: &github.App{ID: githubserver.AppID, PrivateKey: s.AppKey()}}})
	s.Fail(1, "POST /repos/{owner}/{repo}/issues", githubserver.Fault{Status: 502, After: true})
	if _, err := byApp.PutIssue(t.Context(), "app", "", driftMarker, drift("one")); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Fatalf("lost answer: %v", err)
	}
	first := putIssue(t, byApp, "", drift("two"))
	// Whoever we are now, the issue is the one that we know.
	byToken := newClient(t, s, github.Options{Identity: github.Identity{Token: token}})
	putIssue(t, byToken, first.ID, drift("three"))
	wantIssues(t, repo, "1 "+githubserver.AppLogin+" ["+driftLabel+"] opened edited edited: three")
}

func TestPutIssueOfLongTexts(t *testing.T) {
	t.Parallel()
	c, s, _ := withToken(t)
	issue := drift(strings.Repeat("ä", 70_000))
	issue.Title = strings.Repeat("ö", 300)
	got := putIssue(t, c, "", issue)
	if len([]rune(got.Title)) != 256 || len([]rune(got.Body)) != 65536 || !strings.Contains(got.Body, "Truncated") {
		t.Errorf("a title of %d characters, a body of %d", len([]rune(got.Title)), len([]rune(got.Body)))
	}
	s.ResetCalls()
	if putIssue(t, c, got.ID, issue); writes(s) != 0 {
		t.Errorf("wrote what is there: %v", s.Calls())
	}
}

// People edit, close and open our issues: what is wanted next is brought about
// from wherever they left it.
func TestPutIssueAfterPeople(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	first := putIssue(t, c, "", drift("one"))
	repo.EditIssue(1, "alice", "Our drift", driftMarker+"\none, and we know why")
	putIssue(t, c, first.ID, none())
	repo.ReopenIssue(1, "alice")
	repo.CommentOnIssue(1, "alice", "still there?")
	putIssue(t, c, first.ID, none())
	repo.EditIssue(1, "alice", "Something else", "mine now")
	if got := putIssue(t, c, first.ID, drift("two")); got.ID != "2" {
		t.Errorf("with an issue that says nothing of ours any more: %+v", got)
	}
	wantIssues(t, repo,
		"1 "+byRobot+" opened edited edited closed reopened closed edited: mine now",
		"2 "+byRobot+" opened: two")
	for _, i := range repo.Issues()[0].History[1:2] {
		if i.By != "alice" || i.Title != "Our drift" {
			t.Errorf("event %+v", i)
		}
	}
	if n := s.Calls()["GET /repos/{owner}/{repo}/issues"]; n != 4 {
		t.Errorf("%d lists were read, want two for each new issue", n)
	}
}
