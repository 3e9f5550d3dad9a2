package github_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

const graphQLRoute = "POST /graphql"

// withCommands is withToken, with comments that hold commands.
func withCommands(t *testing.T) (*github.Client, *githubserver.Server, *githubserver.Repo) {
	t.Helper()
	s := githubserver.New(t)
	c := newClient(t, s, github.Options{
		Identity: github.Identity{Token: token}, MayCommand: func(body string) bool { return strings.HasPrefix(body, "/holdfast") },
	})
	return c, s, s.Repo("acme/app")
}

// A comment that somebody has edited within the second in which it was written has equal
// stamps, and is an edited one all the same. Nobody asks about what commands nothing.
func TestEditWithinTheSecond(t *testing.T) {
	t.Parallel()
	c, s, repo := withCommands(t)
	now := newClock()
	s.SetNow(now.Now)
	n := repo.OpenPullRequest(githubserver.PullRequest{Head: head})
	repo.Comment(n, "alice", "nothing")
	repo.Comment(n, "renovate[bot]", "/holdfast plan")
	if _, err := c.Comments(t.Context(), "app", now.Now()); err != nil || s.Calls()[graphQLRoute] != 0 {
		t.Errorf("without a command: %v, %v", err, s.Calls())
	}

	repo.Comment(n, "alice", "/holdfast apply")
	repo.EditComment(repo.Comment(n, "alice", "not yet"), "mallory", "/holdfast approve")
	for range 150 { // more than a query takes
		repo.Comment(n, "alice", "/holdfast help")
	}
	repo.EditComment(repo.Comment(n, "alice", "nor yet"), "mallory", "/holdfast cancel")
	list, err := c.Comments(t.Context(), "app", now.Now())
	if err != nil || len(list.Comments) != 155 {
		t.Fatalf("%d comments, %v", len(list.Comments), err)
	}
	edited := ""
	for _, comment := range list.Comments {
		if comment.Edited() {
			edited += comment.Body + "\n"
		}
	}
	if edited != "/holdfast approve\n/holdfast cancel\n" || s.Calls()[graphQLRoute] != 2 {
		t.Errorf("edited were %q, by %v", edited, s.Calls())
	}
	if refused, _ := s.SlowWrites(); refused != 0 {
		t.Error("queries count as writes")
	}
}

// A host without the GraphQL API is read as it was before; an answer that is missing now is
// waited for.
func TestEditsThatAreNotKnown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault githubserver.Fault
		want  error
	}{
		"no such API":   {fault: githubserver.NotFound},
		"forbidden":     {fault: githubserver.Forbidden},
		"refused":       {fault: githubserver.Unprocessable},
		"away":          {fault: githubserver.BadGateway, want: holdfast.ErrUnavailable},
		"another page":  {fault: githubserver.HTML, want: holdfast.ErrUnavailable},
		"an error":      {fault: githubserver.Fault{Status: 200, Body: `{"errors":[{"type":"RATE_LIMITED"}]}`}, want: holdfast.ErrUnavailable},
		"without nodes": {fault: githubserver.Fault{Status: 200, Body: `{"data":null,"errors":[{"message":"Something went wrong"}]}`}, want: holdfast.ErrUnavailable},
		"one is gone":   {fault: githubserver.Fault{Status: 200, Body: `{"data":{"nodes":[null]}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, repo := withCommands(t)
			now := newClock()
			s.SetNow(now.Now)
			repo.Comment(repo.OpenPullRequest(githubserver.PullRequest{Head: head}), "alice", "/holdfast apply")
			s.Fail(1, graphQLRoute, test.fault)
			list, err := c.Comments(t.Context(), "app", now.Now())
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if test.want == nil && (len(list.Comments) != 1 || list.Comments[0].Edited()) {
				t.Errorf("comments: %+v", list.Comments)
			}
		})
	}
}
