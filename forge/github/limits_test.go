package github_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault githubserver.Fault
		want  error // nil: final for that call
		words string
	}{
		"401":           {githubserver.Unauthorized, holdfast.ErrUnauthorized, "Bad credentials"},
		"403":           {githubserver.Forbidden, holdfast.ErrForbidden, "Resource not accessible"},
		"404":           {githubserver.NotFound, holdfast.ErrNotFound, "Not Found"},
		"410":           {githubserver.Fault{Status: 410, Body: `{"message":"Gone"}`}, holdfast.ErrNotFound, "410"},
		"422":           {githubserver.Unprocessable, nil, "Body is too long"},
		"451":           {githubserver.Fault{Status: 451, Body: `{"message":"DMCA"}`}, holdfast.ErrForbidden, "DMCA"},
		"500":           {githubserver.Fault{Status: 500, Body: `{"message":"Server Error"}`}, holdfast.ErrUnavailable, "Server Error"},
		"502, HTML":     {githubserver.BadGateway, holdfast.ErrUnavailable, "502"},
		"503, nothing":  {githubserver.Fault{Status: 503}, holdfast.ErrUnavailable, "503"},
		"200, HTML":     {githubserver.HTML, holdfast.ErrUnavailable, "text/html"},
		"404, HTML":     {githubserver.Fault{Status: 404, Header: map[string]string{"Content-Type": "text/html"}, Body: "<html>"}, holdfast.ErrUnavailable, "text/html"},
		"200, garbage":  {githubserver.Garbage, holdfast.ErrUnavailable, "documents"},
		"200, an array": {githubserver.Fault{Status: 200, Body: `[1]`}, holdfast.ErrUnavailable, "documents"},
		"202":           {githubserver.Fault{Status: 202, Body: `{}`}, holdfast.ErrUnavailable, ""},
		"200, nothing":  {githubserver.Fault{Status: 200}, holdfast.ErrUnavailable, "without what was asked for"},
		"200, null":     {githubserver.Fault{Status: 200, Body: "null\n"}, holdfast.ErrUnavailable, "without what was asked for"},
		"200, a text":   {githubserver.Fault{Status: 200, Body: `"ok"`}, holdfast.ErrUnavailable, "without what was asked for"},
		"200, other":    {githubserver.Fault{Status: 200, Body: `{"status":"ok"}`}, holdfast.ErrUnavailable, "without what was asked for"},
		"204":           {githubserver.Fault{Status: 204}, holdfast.ErrUnavailable, "204"},
		"206":           {githubserver.Fault{Status: 206, Body: `{"id":1}`}, holdfast.ErrUnavailable, "206"},
		"304, unasked":  {githubserver.Fault{Status: 304}, holdfast.ErrUnavailable, "304"},
		"301, nowhere":  {githubserver.Fault{Status: 301, Body: `{}`}, holdfast.ErrUnavailable, "301"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, _ := withToken(t)
			s.Fail(2, "", test.fault)
			_, err := c.PullRequest(t.Context(), ref(1))
			if err == nil || (test.want != nil && !errors.Is(err, test.want)) || !strings.Contains(err.Error(), test.words) {
				t.Fatalf("got %v, want %v with %q", err, test.want, test.words)
			}
			for _, sentinel := range []error{holdfast.ErrUnauthorized, holdfast.ErrForbidden, holdfast.ErrNotFound, holdfast.ErrUnavailable} {
				if !errors.Is(test.want, sentinel) && errors.Is(err, sentinel) {
					t.Errorf("%v is also %v", err, sentinel)
				}
			}
			if text := err.Error(); strings.Contains(text, githubserver.Token) || strings.Contains(text, "http://") {
				t.Errorf("the error tells too much: %v", err)
			}
		})
	}
}

// hugeAnswers say that they are longer than what is read of one: to read that takes
// longer than a call may, on a busy machine.
type hugeAnswers struct{}

func (hugeAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		ContentLength: 33 << 20, Body: io.NopCloser(strings.NewReader(`"`)),
	}, nil
}

func TestHugeAnswer(t *testing.T) {
	t.Parallel()
	c := newClient(t, githubserver.New(t), github.Options{Identity: github.Identity{Token: token}, Transport: hugeAnswers{}})
	if _, err := c.PullRequest(t.Context(), ref(1)); !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "32 MB") {
		t.Fatalf("got %v, want %v with 32 MB", err, holdfast.ErrUnavailable)
	}
}

// An answer without what was asked for does not count: it is neither an empty list of reviews,
// nor a user without a permission, nor a comment or status that was written.
func TestAnswersWithoutContent(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]githubserver.Fault{
		"nothing": {Status: 200}, "null": {Status: 200, Body: "null"}, "no content": {Status: 204}, "another object": {Status: 200, Body: `{"ok":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, repo := withToken(t)
			n := repo.OpenPullRequest(githubserver.PullRequest{Author: "alice", Head: head})
			repo.SetPermission("bob", "write")
			repo.Review(n, "bob", "CHANGES_REQUESTED")
			const in = "/repos/{owner}/{repo}/"
			for _, call := range []struct {
				route string
				make  func() error
			}{
				{"GET " + in + "pulls/{number}/reviews", func() error { _, err := c.PullRequest(t.Context(), ref(n)); return err }},
				{"GET " + in + "collaborators/", func() error { _, err := c.PullRequest(t.Context(), ref(n)); return err }},
				{"GET " + in + "collaborators/", func() error { _, err := c.Permission(t.Context(), "app", "bob"); return err }},
				{"GET " + in + "pulls", func() error { _, err := c.PullRequests(t.Context(), "app", time.Time{}); return err }},
				{"GET " + in + "issues/comments", func() error { _, err := c.Comments(t.Context(), "app", time.Time{}); return err }},
				{"POST " + in + "issues/{number}/comments", func() error { _, err := c.PutComment(t.Context(), ref(n), "", "", "body"); return err }},
				{"POST " + in + "statuses/{sha}", func() error {
					return c.SetStatus(t.Context(), "app", holdfast.CommitStatus{Revision: head, Context: "c", State: holdfast.StatusSuccess})
				}},
			} {
				s.Fail(1, call.route, fault)
				if err := call.make(); !errors.Is(err, holdfast.ErrUnavailable) {
					t.Errorf("%s: got %v, want %v", call.route, err, holdfast.ErrUnavailable)
				}
				s.Recover()
			}
		})
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	c, s, _ := withToken(t)
	s.Fail(1, "", githubserver.Hang)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := c.PullRequest(ctx, ref(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	gone := newClient(t, s, github.Options{Identity: github.Identity{Token: token}, BaseURL: "http://127.0.0.1:1/"})
	if _, err := gone.PullRequest(t.Context(), ref(1)); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	now := newClock()
	tests := map[string]struct {
		fault githubserver.Fault
		want  time.Duration
	}{
		"primary":                {githubserver.PrimaryLimit(now.Now().Add(20 * time.Minute)), 20 * time.Minute},
		"secondary":              {githubserver.SecondaryLimit(90 * time.Second), 90 * time.Second},
		"secondary, untold":      {githubserver.SecondaryLimit(0), time.Minute},
		"429":                    {githubserver.TooManyRequests(30 * time.Second), 30 * time.Second},
		"429, untold":            {githubserver.TooManyRequests(0), time.Minute},
		"429, HTML":              {githubserver.Fault{Status: 429, Header: map[string]string{"Content-Type": "text/html"}, Body: "<html>"}, time.Minute},
		"a day":                  {githubserver.SecondaryLimit(24 * time.Hour), 65 * time.Minute},
		"at once":                {githubserver.Fault{Status: 429, Header: map[string]string{"Retry-After": "0"}}, time.Second},
		"garbage in Retry-After": {githubserver.Fault{Status: 429, Header: map[string]string{"Retry-After": "soon"}}, time.Minute},
		"a date in Retry-After":  {githubserver.Fault{Status: 429, Header: map[string]string{"Retry-After": now.Now().Add(time.Minute).Format(http.TimeFormat)}}, time.Minute},
		"a clock ahead of ours": {githubserver.Fault{Status: 403, Header: map[string]string{
			"Date": now.Now().Add(3 * time.Hour).Format(http.TimeFormat), "X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0",
			"X-RateLimit-Reset": strconv.FormatInt(now.Now().Add(3*time.Hour+10*time.Minute).Unix(), 10),
		}}, 10 * time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := &clock{now: now.Now()}
			s := githubserver.New(t)
			c := newClient(t, s, github.Options{Identity: github.Identity{Token: token}, Now: now.Now})
			s.Repo("acme/app").OpenPullRequest(githubserver.PullRequest{Head: head})
			if test.fault.Header == nil {
				test.fault.Header = map[string]string{}
			}
			if test.fault.Header["Date"] == "" {
				test.fault.Header["Date"] = now.Now().Format(http.TimeFormat)
			}
			s.Fail(1, "", test.fault)
			for range 3 { // the first is refused by GitHub, the others by memory
				_, err := c.PullRequest(t.Context(), ref(1))
				var limited *holdfast.RateLimitError
				if !errors.As(err, &limited) || !errors.Is(err, holdfast.ErrUnavailable) {
					t.Fatalf("got %v, want a RateLimitError", err)
				}
				if got := limited.RetryAt.Sub(now.Now()); got != test.want {
					t.Fatalf("retry in %s, want %s", got, test.want)
				}
			}
			if got := s.CallCount(); got != 1 {
				t.Errorf("%d calls while refused, want 1", got)
			}
			if at := c.Quota("app").RetryAt; at.Sub(now.Now()) != test.want {
				t.Errorf("quota says %s", at)
			}
			now.Advance(test.want)
			if _, err := c.PullRequest(t.Context(), ref(1)); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestWriteLimitLeavesReadsAlone: what is refused as too much written does not
// make us blind, and is not asked for again before it may be.
func TestWriteLimitLeavesReadsAlone(t *testing.T) {
	t.Parallel()
	now := newClock()
	s := githubserver.New(t)
	s.SetNow(now.Now)
	s.SetWriteLimit(2, time.Minute, 0)
	c := newClient(t, s, github.Options{Identity: github.Identity{Token: token}, Now: now.Now})
	n := s.Repo("acme/app").OpenPullRequest(githubserver.PullRequest{Head: head})
	say := func() error {
		_, err := c.PutComment(t.Context(), ref(n), "", "", "hello")
		return err
	}
	for range 2 {
		if err := say(); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []time.Duration{time.Minute, 2 * time.Minute} { // blind, and twice as long
		var limited *holdfast.RateLimitError
		for range 2 {
			if err := say(); !errors.As(err, &limited) || limited.RetryAt.Sub(now.Now()) != want {
				t.Fatalf("one write too many: %v, want a pause of %s", err, want)
			}
		}
		if _, err := c.PullRequest(t.Context(), ref(n)); err != nil {
			t.Errorf("a read while writes are refused: %v", err)
		}
		if q := c.Quota("app"); !q.RetryAt.IsZero() || q.WriteAt.Sub(now.Now()) != want {
			t.Errorf("quota %+v", q)
		}
		s.SetWriteLimit(0, time.Minute, 0)
		if want == time.Minute {
			s.Fail(1, "POST", githubserver.SecondaryLimit(0))
		}
		now.Advance(want)
	}
	if refused, atOnce := s.SlowWrites(); refused != 1 || atOnce != 1 {
		t.Errorf("%d refused, %d at once", refused, atOnce)
	}
	if err := say(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestWritesAreSerial has many write at once, as GitHub asks not to.
func TestWritesAreSerial(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	s.SetLatency(5 * time.Millisecond)
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := c.PutComment(t.Context(), ref(n), "", "", "hello"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, atOnce := s.SlowWrites(); atOnce != 1 {
		t.Errorf("%d writes at once, want 1", atOnce)
	}
}

func TestBlindPausesGrow(t *testing.T) {
	t.Parallel()
	now := newClock()
	s := githubserver.New(t)
	c := newClient(t, s, github.Options{Identity: github.Identity{Token: token}, Now: now.Now})
	s.Repo("acme/app").OpenPullRequest(githubserver.PullRequest{Head: head})
	s.Fail(7, "", githubserver.TooManyRequests(0))
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 16, 16} {
		_, err := c.PullRequest(t.Context(), ref(1))
		var limited *holdfast.RateLimitError
		if !errors.As(err, &limited) || limited.RetryAt.Sub(now.Now()) != want*time.Minute {
			t.Fatalf("got %v, want a pause of %d minutes", err, want)
		}
		now.Advance(want * time.Minute)
	}
	if _, err := c.PullRequest(t.Context(), ref(1)); err != nil {
		t.Fatal(err)
	}
	s.Fail(1, "", githubserver.TooManyRequests(0))
	_, err := c.PullRequest(t.Context(), ref(1))
	var limited *holdfast.RateLimitError
	if !errors.As(err, &limited) || limited.RetryAt.Sub(now.Now()) != time.Minute {
		t.Errorf("after a success: %v", err)
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	now := newClock()
	s := githubserver.New(t)
	s.SetQuota(5000, 3, now.Now().Add(30*time.Minute))
	c := newClient(t, s, github.Options{Identity: github.Identity{Token: token}, Now: now.Now})
	if got := c.Quota("app"); got != (github.Quota{}) {
		t.Errorf("before the first call: %+v", got)
	}
	s.Repo("acme/app").OpenPullRequest(githubserver.PullRequest{Head: head})
	if _, err := c.PullRequest(t.Context(), ref(1)); err != nil { // two calls
		t.Fatal(err)
	}
	if got := c.Quota("app"); got.Limit != 5000 || got.Remaining != 1 || !got.RetryAt.IsZero() {
		t.Errorf("after two calls: %+v", got)
	}
	if _, err := c.Permission(t.Context(), "app", "alice"); err != nil {
		t.Errorf("the last call: %v", err)
	}
	s.ResetCalls()
	if _, err := c.Permission(t.Context(), "app", "alice"); !errors.Is(err, holdfast.ErrUnavailable) || s.CallCount() != 0 {
		t.Errorf("with nothing left: %v, %d calls", err, s.CallCount())
	}
}

func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	var n int
	for range 101 {
		n = repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	}
	for range 3 {
		if prs, err := c.PullRequests(t.Context(), "app", time.Time{}); err != nil || len(prs) != 101 {
			t.Fatalf("%d, %v", len(prs), err)
		}
	}
	if s.CallCount() != 6 || s.FreeCount() != 4 {
		t.Errorf("%d calls, %d free, want 6 and 4", s.CallCount(), s.FreeCount())
	}
	before := c.Quota("app").Remaining
	if _, err := c.PullRequests(t.Context(), "app", time.Time{}); err != nil || c.Quota("app").Remaining != before {
		t.Errorf("nothing new cost %d calls, %v", before-c.Quota("app").Remaining, err)
	}
	repo.PushHead(n, merge)
	prs, err := c.PullRequests(t.Context(), "app", time.Time{})
	if err != nil || prs[0].Head != merge && prs[100].Head != merge {
		t.Errorf("the new head does not show: %v", err)
	}
}

// A page that was full when it was read says "not modified" when there is a page
// after it.
func TestWhatFollowsAFullPage(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	now := newClock()
	s.SetNow(now.Now)
	repo.SetPermission("lead", "write")
	n := repo.OpenPullRequest(githubserver.PullRequest{Author: "alice", Head: head})
	repo.Review(n, "lead", "APPROVED")
	for range 99 {
		repo.Review(n, "robot[bot]", "COMMENTED")
	}
	for range 100 {
		repo.Comment(n, "chatty[bot]", "noise")
	}
	since := now.Now().Add(-time.Minute)
	for range 2 {
		pr, err := c.PullRequest(t.Context(), ref(n))
		if err != nil || !pr.Approved {
			t.Fatalf("approved %v, %v", pr.Approved, err)
		}
		list, err := c.Comments(t.Context(), "app", since)
		if err != nil || len(list.Comments) != 100 {
			t.Fatalf("%d comments, %v", len(list.Comments), err)
		}
	}
	repo.Review(n, "lead", "CHANGES_REQUESTED")
	if pr, err := c.PullRequest(t.Context(), ref(n)); err != nil || pr.Approved {
		t.Errorf("approved %v after the 101st review, %v", pr.Approved, err)
	}
	repo.Comment(n, "alice", "/holdfast plan")
	if list, err := c.Comments(t.Context(), "app", since); err != nil || len(list.Comments) != 101 {
		t.Errorf("%d comments after the 101st, %v", len(list.Comments), err)
	}
}

// TestCallsOfAPullRequest counts the calls of a plan. Nothing that is asked for
// a pull request knows of clusters, so their number does not grow with them.
func TestCallsOfAPullRequest(t *testing.T) {
	t.Parallel()
	c, s, repo := withToken(t)
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	ctx, body := t.Context(), "<!-- holdfast:pull-request app#1 -->"
	s.ResetCalls()
	if _, err := c.PullRequest(ctx, ref(n)); err != nil {
		t.Fatal(err)
	}
	comment, err := c.PutComment(ctx, ref(n), "", body, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []holdfast.StatusState{holdfast.StatusPending, holdfast.StatusSuccess} {
		if err := c.SetStatus(ctx, "app", holdfast.CommitStatus{Revision: head, Context: holdfast.ContextPlan, State: state}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.PutComment(ctx, ref(n), comment.ID, body, body+string(state)); err != nil {
			t.Fatal(err)
		}
	}
	// Pull request, reviews; who we are, look for ours, comment; twice status and comment.
	if got := s.CallCount(); got != 9 {
		t.Errorf("%d calls, want 9: %v", got, s.Calls())
	}
}

func withApp(t *testing.T, s *githubserver.Server, app github.App, now *clock) *github.Client {
	t.Helper()
	app.ID, app.PrivateKey = githubserver.AppID, s.AppKey()
	s.SetNow(now.Now)
	return newClient(t, s, github.Options{Identity: github.Identity{App: &app}, Now: now.Now})
}

func TestApp(t *testing.T) {
	t.Parallel()
	now, s := newClock(), githubserver.New(t)
	c := withApp(t, s, github.App{}, now)
	repo := s.Repo("acme/app")
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	ctx := t.Context()

	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if _, err := c.PullRequest(ctx, ref(n)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := s.TokensIssued(); got != 1 {
		t.Errorf("%d tokens for 20 calls at once", got)
	}
	comment, err := c.PutComment(ctx, ref(n), "", "<!-- m -->", "<!-- m -->")
	if err != nil || comment.Author != githubserver.AppLogin || !comment.Bot {
		t.Errorf("comment %+v, %v", comment, err)
	}
	if again, err := c.PutComment(ctx, ref(n), "", "<!-- m -->", "<!-- m --> 2"); err != nil || again.ID != comment.ID {
		t.Errorf("found %+v, %v", again, err)
	}
	if login, err := c.Login(ctx); err != nil || login != githubserver.AppLogin {
		t.Errorf("login %q, %v", login, err)
	}
	user, password, err := c.Credential(ctx, "app")
	if err != nil || user != "x-access-token" || !strings.HasPrefix(password, "ghs_") {
		t.Errorf("credential of %q: %v", user, err)
	}
	now.Advance(54 * time.Minute)
	if _, again, _ := c.Credential(ctx, "app"); again != password {
		t.Error("a token was changed before its time")
	}
	now.Advance(2 * time.Minute) // less than the margin is left
	if _, again, err := c.Credential(ctx, "app"); err != nil || again == password {
		t.Errorf("a token that ends was kept: %v", err)
	}
	if c.Quota("app").Limit != 5000 {
		t.Errorf("quota %+v", c.Quota("app"))
	}
}

func TestTokenThatEndsOnTheWay(t *testing.T) {
	t.Parallel()
	now, s := newClock(), githubserver.New(t)
	c := withApp(t, s, github.App{InstallationID: githubserver.InstallationID}, now)
	repo := s.Repo("acme/app")
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	ctx := t.Context()
	if _, err := c.PullRequest(ctx, ref(n)); err != nil {
		t.Fatal(err)
	}
	s.RevokeTokens()
	if _, err := c.PutComment(ctx, ref(n), "", "", "still here"); err != nil { // a body is sent twice
		t.Errorf("with a token that ended: %v", err)
	}
	if got := repo.Comments(n); len(got) != 1 || got[0].Body != "still here" {
		t.Errorf("comments %v", got)
	}
	if got := s.TokensIssued(); got != 2 {
		t.Errorf("%d tokens issued, want 2", got)
	}
	// GitHub refuses the new one, too: once is enough.
	s.ResetCalls()
	s.Fail(2, "GET", githubserver.Unauthorized)
	if _, err := c.PullRequest(ctx, ref(n)); !errors.Is(err, holdfast.ErrUnauthorized) {
		t.Errorf("refused twice: %v", err)
	}
	if got := s.Calls()["GET /repos/{owner}/{repo}/pulls/{number}"]; got != 2 {
		t.Errorf("asked %d times, want 2", got)
	}
}

func TestAppThatIsNotInstalled(t *testing.T) {
	t.Parallel()
	now, s := newClock(), githubserver.New(t)
	c := withApp(t, s, github.App{}, now)
	if _, err := c.PullRequest(t.Context(), ref(1)); !errors.Is(err, holdfast.ErrNotFound) || !strings.Contains(err.Error(), "installation") {
		t.Errorf("not installed: %v", err)
	}
	repo := s.Repo("acme/app")
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	if _, err := c.PullRequest(t.Context(), ref(n)); err != nil {
		t.Fatalf("installed: %v", err)
	}
	// Removed and installed again, under another id.
	s.RevokeTokens()
	s.Fail(1, "POST /app/installations", githubserver.NotFound)
	if _, err := c.PullRequest(t.Context(), ref(n)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("removed: %v", err)
	}
	s.ResetCalls()
	if _, err := c.PullRequest(t.Context(), ref(n)); err != nil || s.Calls()["GET /repos/{owner}/{repo}/installation"] != 1 {
		t.Errorf("installed again: %v, %v", err, s.Calls())
	}
	other := newClient(t, githubserver.New(t), github.Options{Identity: github.Identity{App: &github.App{ID: 1, PrivateKey: s.AppKey()}}})
	if _, err := other.PullRequest(t.Context(), ref(1)); !errors.Is(err, holdfast.ErrUnauthorized) {
		t.Errorf("a key that GitHub does not know: %v", err)
	}
}

func TestTokenThatIsRotated(t *testing.T) {
	t.Parallel()
	s := githubserver.New(t)
	s.Repo("acme/app").OpenPullRequest(githubserver.PullRequest{Head: head})
	var asked atomic.Int64
	c := newClient(t, s, github.Options{Identity: github.Identity{Token: func(context.Context) (string, error) {
		if asked.Add(1) == 1 {
			return "ghp_old", nil
		}
		return githubserver.Token, nil
	}}})
	if _, err := c.PullRequest(t.Context(), ref(1)); err != nil {
		t.Errorf("rotated: %v", err)
	}
	for name, read := range map[string]func(context.Context) (string, error){
		"empty":      func(context.Context) (string, error) { return "", nil },
		"unreadable": func(context.Context) (string, error) { return "", errors.New("no such file") },
	} {
		c := newClient(t, s, github.Options{Identity: github.Identity{Token: read}})
		if _, err := c.PullRequest(t.Context(), ref(1)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	s := githubserver.New(t)
	s.Repo("acme/app").OpenPullRequest(githubserver.PullRequest{Head: head})
	var mu sync.Mutex
	var seen []string
	c := newClient(t, s, github.Options{Identity: github.Identity{Token: token}, Observe: func(call github.Call) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprint(call.Method, call.Status))
	}})
	if _, err := c.PullRequest(t.Context(), ref(1)); err != nil {
		t.Fatal(err)
	}
	s.Fail(1, "", githubserver.TooManyRequests(0))
	_, _ = c.PullRequest(t.Context(), ref(1))
	_, _ = c.PullRequest(t.Context(), ref(1)) // not asked
	if got := strings.Join(seen, " "); got != "GET200 GET200 GET429" {
		t.Errorf("observed %q", got)
	}
}

// TestTokenOfAnInstallation is given a token that does not say whose it is.
func TestTokenOfAnInstallation(t *testing.T) {
	t.Parallel()
	now, s := newClock(), githubserver.New(t)
	app := withApp(t, s, github.App{}, now)
	repo := s.Repo("acme/app")
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	c := newClient(t, s, github.Options{Identity: github.Identity{Token: func(ctx context.Context) (string, error) {
		_, token, err := app.Credential(ctx, "app")
		return token, err
	}}})
	repo.Comment(n, "mallory", "<!-- m --> mine")
	first, err := c.PutComment(t.Context(), ref(n), "", "<!-- m -->", "<!-- m --> 1")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.PutComment(t.Context(), ref(n), "", "<!-- m -->", "<!-- m --> 2"); err != nil || again.ID != first.ID {
		t.Errorf("found %+v, %v, want %s", again, err, first.ID)
	}
	if _, err := c.Login(t.Context()); !errors.Is(err, holdfast.ErrForbidden) {
		t.Errorf("login: %v", err)
	}
}

// TestAnotherIdentity edits a comment that somebody else of us wrote.
func TestAnotherIdentity(t *testing.T) {
	t.Parallel()
	now, s := newClock(), githubserver.New(t)
	byApp, byToken := withApp(t, s, github.App{}, now), newClient(t, s, github.Options{Identity: github.Identity{Token: token}})
	n := s.Repo("acme/app").OpenPullRequest(githubserver.PullRequest{Head: head})
	first, err := byToken.PutComment(t.Context(), ref(n), "", "<!-- m -->", "<!-- m --> 1")
	if err != nil {
		t.Fatal(err)
	}
	second, err := byApp.PutComment(t.Context(), ref(n), first.ID, "<!-- m -->", "<!-- m --> 2")
	if err != nil || second.ID == first.ID || second.Author != githubserver.AppLogin {
		t.Errorf("got %+v, %v", second, err)
	}
}

// TestAppWithAnotherClock issues tokens though GitHub's clock is not ours.
func TestAppWithAnotherClock(t *testing.T) {
	t.Parallel()
	s := githubserver.New(t)
	s.Repo("acme/app")
	key := s.AppKey()
	for _, off := range []time.Duration{-55 * time.Second, -time.Minute, 0, time.Minute, 7 * time.Minute} {
		s.SetNow(func() time.Time { return time.Now().Add(off) })
		c := newClient(t, s, github.Options{Identity: github.Identity{App: &github.App{ID: githubserver.AppID, PrivateKey: key}}})
		if _, _, err := c.Credential(t.Context(), "app"); err != nil {
			t.Errorf("GitHub's clock is off by %s: %v", off, err)
		}
	}
}
