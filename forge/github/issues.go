package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
)

// maxTitle is GitHub's limit for the title of an issue, in characters.
const maxTitle = 256

// PutIssue creates, updates, closes or opens again an issue of ours, as
// reconciler.Forge says. What is on GitHub as it should be is left alone. An
// issue that no longer has marker, or was moved to another
// repository, counts as gone: under its number may be what is not ours. Labels
// are put on when it is created and belong to people then; GitHub drops them
// if we may not label. A text that is too long for GitHub is cut, visibly.
func (c *Client) PutIssue(ctx context.Context, repo, id, marker string, issue holdfast.Issue) (holdfast.Issue, error) {
	issue.Title, issue.Body = clip(issue.Title, maxTitle), fit(issue.Body)
	var put holdfast.Issue
	err := c.do(ctx, repo, fmt.Sprintf("put issue %q in %q", issue.Title, repo), func(gh *github.Client, on repository) error {
		found, err := readIssue(ctx, gh, on, id, marker)
		if err == nil && found == nil && marker != "" {
			found, err = c.findIssue(ctx, gh, on, marker, issue.Labels)
		}
		switch {
		case err != nil:
			return err
		case found != nil && isAsWanted(found, issue): // the answer to a former try got lost
			put = toIssue(found)
			return nil
		case found != nil:
			put, err = editIssue(ctx, gh, on, found.GetNumber(), issue)
			return err
		case issue.Closed:
			return nil
		}
		put, err = createIssue(ctx, gh, on, issue)
		return err
	})
	if err != nil {
		return holdfast.Issue{}, err
	}
	return put, nil
}

// readIssue returns the issue that id names; nil if it is gone, or is not one of
// ours.
func readIssue(ctx context.Context, gh *github.Client, on repository, id, marker string) (*github.Issue, error) {
	number, err := strconv.Atoi(id)
	if err != nil || number <= 0 {
		return nil, nil // of another forge that the repository was on
	}
	found, _, err := gh.Issues.Get(ctx, on.owner, on.name, number)
	if err != nil {
		if err = issueError(ctx, err); errors.Is(err, holdfast.ErrNotFound) {
			return nil, nil
		}
		return nil, err
	}
	// GitHub redirects to where an issue was moved.
	here := strings.HasSuffix(strings.ToLower(found.GetRepositoryURL()), strings.ToLower("/repos/"+on.String()))
	if found.IsPullRequest() || !here || !strings.Contains(found.GetBody(), marker) {
		return nil, nil
	}
	return found, nil
}

// findIssue returns an issue that we wrote and that has marker, rather an open one than
// a closed one, otherwise the newest; nil if there is none. GitHub's search lags
// behind, lists do not. Labels that GitHub dropped find nothing, so the newest issues
// are looked through, too.
func (c *Client) findIssue(
	ctx context.Context, gh *github.Client, on repository, marker string, labels []string,
) (*github.Issue, error) {
	login, err := c.writer(ctx)
	if err != nil {
		return nil, err
	}
	var best *github.Issue
	look := func(labels []string, most int) error {
		err := eachSteadyPage(func(page *github.ListOptions, see func(id int64)) (*github.Response, error) {
			found, resp, err := gh.Issues.ListByRepo(ctx, on.owner, on.name, &github.IssueListByRepoOptions{
				State: "all", Labels: labels, Sort: "created", Direction: "desc", ListOptions: *page,
			})
			for _, issue := range found {
				see(issue.GetID())
				user := issue.GetUser()
				byUs := login != "" && strings.EqualFold(user.GetLogin(), login) || login == "" && user.GetType() == "Bot"
				ours := byUs && !issue.IsPullRequest() && strings.Contains(issue.GetBody(), marker)
				if ours && (best == nil || isClosed(best) && !isClosed(issue)) {
					best = issue
				}
			}
			if resp != nil && (max(page.Page, 1) >= most || best != nil && !isClosed(best)) {
				resp.NextPage = 0
			}
			return resp, err
		}, func() bool { return best != nil && !isClosed(best) })
		return issueError(ctx, err)
	}
	if len(labels) > 0 {
		if err := look(labels[:1], maxPages); err != nil || best != nil {
			return best, err
		}
	}
	return best, look(nil, 1)
}

func createIssue(ctx context.Context, gh *github.Client, on repository, issue holdfast.Issue) (holdfast.Issue, error) {
	request := &github.IssueRequest{Title: &issue.Title, Body: &issue.Body}
	if len(issue.Labels) > 0 {
		request.Labels = &issue.Labels
	}
	created, _, err := gh.Issues.Create(ctx, on.owner, on.name, request)
	if hasStatus(err, http.StatusGone) { // there is nothing else that could be
		return holdfast.Issue{}, errIssuesOff
	}
	return toIssue(created), err
}

func editIssue(ctx context.Context, gh *github.Client, on repository, number int, issue holdfast.Issue) (holdfast.Issue, error) {
	request := &github.IssueRequest{Title: &issue.Title, Body: &issue.Body, State: new("open")}
	if issue.Closed {
		request.State, request.StateReason = new("closed"), new("completed")
	}
	edited, _, err := gh.Issues.Edit(ctx, on.owner, on.name, number, request)
	return toIssue(edited), issueError(ctx, err)
}

var errIssuesOff = fmt.Errorf("the repository's issues are turned off: %w", holdfast.ErrForbidden)

// issueError is translate for issues: of a repository whose issues are turned
// off GitHub says that they are gone, as it does of one that was deleted.
func issueError(ctx context.Context, err error) error {
	if hasStatus(err, http.StatusGone) && strings.Contains(err.Error(), "disabled") {
		return errIssuesOff
	}
	return translate(ctx, err)
}

func isClosed(issue *github.Issue) bool { return issue.GetState() == "closed" }

func isAsWanted(have *github.Issue, want holdfast.Issue) bool {
	return have.GetTitle() == want.Title && have.GetBody() == want.Body && isClosed(have) == want.Closed
}

func toIssue(issue *github.Issue) holdfast.Issue {
	out := holdfast.Issue{
		ID: strconv.Itoa(issue.GetNumber()), Title: issue.GetTitle(), Body: issue.GetBody(),
		Closed: isClosed(issue), URL: issue.GetHTMLURL(),
	}
	if issue != nil {
		for _, label := range issue.Labels {
			out.Labels = append(out.Labels, label.GetName())
		}
	}
	return out
}
