package github

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
)

// PullRequest reads a pull request with its reviews: two calls, and one for
// each reviewer, whose permission counts.
func (c *Client) PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequest, error) {
	var pr holdfast.PullRequest
	err := c.do(ctx, ref.Repo, fmt.Sprintf("read pull request %s", ref), func(gh *github.Client, on repository) error {
		found, _, err := gh.PullRequests.Get(ctx, on.owner, on.name, ref.Number)
		if err != nil {
			return err
		}
		pr = toPullRequest(ref.Repo, found)
		if pr.State == holdfast.PullRequestClosed {
			return nil // nobody asks whether it was approved
		}
		if pr.Verdicts, err = verdicts(ctx, gh, on, pr); err != nil {
			return err
		}
		pr.Approved = isApproved(pr)
		return nil
	})
	if err != nil {
		return holdfast.PullRequest{}, err
	}
	return pr, nil
}

// verdicts returns the latest approvals and requests for changes of those who may
// write, except for the author's, by their names.
func verdicts(ctx context.Context, gh *github.Client, on repository, pr holdfast.PullRequest) ([]holdfast.Verdict, error) {
	latest := make(map[string]holdfast.Verdict)
	opts := &github.ListOptions{PerPage: 100}
	more, err := eachPage(opts, func() (*github.Response, error) {
		reviews, resp, err := gh.PullRequests.ListReviews(ctx, on.owner, on.name, pr.Number, opts)
		for _, review := range reviews { // the oldest first
			by := review.GetUser().GetLogin()
			switch state := strings.ToUpper(review.GetState()); state {
			case "APPROVED", "CHANGES_REQUESTED":
				latest[by] = holdfast.Verdict{
					By: by, Approves: state == "APPROVED", Head: holdfast.Revision(review.GetCommitID()), At: review.GetSubmittedAt().UTC(),
				}
			case "DISMISSED":
				delete(latest, by)
			} // a mere comment takes nothing back
		}
		return resp, err
	})
	if err != nil {
		return nil, err
	}
	if more { // the latest count, and they are last
		return nil, finalError(fmt.Sprintf("it has more than %d reviews", maxPages*opts.PerPage))
	}
	var out []holdfast.Verdict
	for _, login := range slices.Sorted(maps.Keys(latest)) {
		if login == "" || strings.EqualFold(login, pr.Author) {
			continue
		}
		// In a public repository anybody may review. An account that is gone has no
		// permission; any other "not found" is about us, and forgets no objection.
		permission, err := permission(ctx, gh, on, login)
		if err != nil {
			return nil, err
		}
		if permission.CanWrite() {
			out = append(out, latest[login])
		}
	}
	return out, nil
}

// isApproved reports whether somebody approves the current head, and nobody asks for
// changes. Whoever approved an older head has not seen what came since.
func isApproved(pr holdfast.PullRequest) bool {
	objects := func(v holdfast.Verdict) bool { return !v.Approves }
	approves := func(v holdfast.Verdict) bool { return v.Approves && v.Head == pr.Head }
	return !slices.ContainsFunc(pr.Verdicts, objects) && slices.ContainsFunc(pr.Verdicts, approves)
}

// PullRequests returns the open pull requests and those closed ones that were updated
// since; of the zero time, only the open ones. Lists do not tell Approved, Verdicts and
// Mergeable. If there are more than 5,000, the most recently updated count.
func (c *Client) PullRequests(ctx context.Context, repo string, since time.Time) ([]holdfast.PullRequest, error) {
	var prs []holdfast.PullRequest
	at := make(map[int]int) // number → index in prs: pages shift while they are read
	list := func(gh *github.Client, on repository, state string, since time.Time) error {
		opts := &github.PullRequestListOptions{
			State: state, Sort: "updated", Direction: "desc", ListOptions: github.ListOptions{PerPage: 100},
		}
		more, err := eachPage(&opts.ListOptions, func() (*github.Response, error) {
			found, resp, err := gh.PullRequests.List(ctx, on.owner, on.name, opts)
			for _, pr := range found {
				if pr.GetUpdatedAt().Before(since) {
					resp.NextPage = 0
					break
				}
				if i, ok := at[pr.GetNumber()]; ok {
					prs[i] = toPullRequest(repo, pr)
					continue
				}
				at[pr.GetNumber()] = len(prs)
				prs = append(prs, toPullRequest(repo, pr))
			}
			return resp, err
		})
		if more {
			c.opts.Logger.WarnContext(ctx, "list of pull requests was cut off", "repo", repo, "reason", "TooManyPullRequests")
		}
		return err
	}
	err := c.do(ctx, repo, fmt.Sprintf("list pull requests of %q", repo), func(gh *github.Client, on repository) error {
		// The open ones come first: one that is closed between the two calls is
		// in both lists, and the later one tells the truth.
		err := list(gh, on, "open", time.Time{})
		if err != nil || since.IsZero() {
			return err
		}
		return list(gh, on, "closed", since.UTC().Truncate(time.Second))
	})
	if err != nil {
		return nil, err
	}
	return prs, nil
}

// PullRequestsOf returns the merged pull requests that brought a commit to a
// base branch, whichever way they were merged.
func (c *Client) PullRequestsOf(ctx context.Context, repo string, commit holdfast.Revision) ([]holdfast.PullRequest, error) {
	var prs []holdfast.PullRequest
	err := c.do(ctx, repo, fmt.Sprintf("find pull requests of %s@%s", repo, commit.Short()), func(gh *github.Client, on repository) error {
		opts := &github.ListOptions{PerPage: 100}
		_, err := eachPage(opts, func() (*github.Response, error) {
			found, resp, err := gh.PullRequests.ListPullRequestsWithCommit(ctx, on.owner, on.name, string(commit), opts)
			for _, pr := range found {
				if pr.MergedAt != nil {
					prs = append(prs, toPullRequest(repo, pr))
				}
			}
			return resp, err
		})
		// GitHub's message for a commit that it does not have.
		if hasStatus(err, http.StatusUnprocessableEntity) && strings.Contains(err.Error(), "No commit found") {
			return holdfast.ErrorOf(holdfast.ErrNotFound, "no such commit")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return prs, nil
}

// Permission returns what a user may do in a repository: none for a user that
// does not exist.
func (c *Client) Permission(ctx context.Context, repo, user string) (holdfast.Permission, error) {
	var may holdfast.Permission
	err := c.do(ctx, repo, fmt.Sprintf("read permission of %q in %q", user, repo), func(gh *github.Client, on repository) error {
		var err error
		may, err = permission(ctx, gh, on, user)
		return err
	})
	if err != nil {
		return holdfast.PermissionNone, err
	}
	return may, nil
}

func permission(ctx context.Context, gh *github.Client, on repository, user string) (holdfast.Permission, error) {
	if !isLogin(user) {
		return holdfast.PermissionNone, nil
	}
	level, _, err := gh.Repositories.GetPermissionLevel(ctx, on.owner, on.name, user)
	if hasStatus(err, http.StatusNotFound) && strings.Contains(err.Error(), "is not a user") {
		return holdfast.PermissionNone, nil
	}
	if err != nil {
		return holdfast.PermissionNone, err
	}
	switch level.GetPermission() {
	case "admin":
		return holdfast.PermissionAdmin, nil
	case "write", "maintain":
		return holdfast.PermissionWrite, nil
	case "read", "triage":
		return holdfast.PermissionRead, nil
	default:
		return holdfast.PermissionNone, nil
	}
}

// isLogin reports whether s can be a login: it becomes a part of a URL's path.
func isLogin(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.[]"
	return s != "" && s != "." && s != ".." && strings.Trim(s, allowed) == ""
}

func hasStatus(err error, status int) bool {
	var answer *github.ErrorResponse
	return errors.As(err, &answer) && answer.Response.StatusCode == status
}

func toPullRequest(repo string, pr *github.PullRequest) holdfast.PullRequest {
	out := holdfast.PullRequest{
		PullRequestRef: holdfast.PullRequestRef{Repo: repo, Number: pr.GetNumber()},
		Title:          pr.GetTitle(),
		Author:         pr.GetUser().GetLogin(),
		URL:            pr.GetHTMLURL(),
		State:          holdfast.PullRequestOpen,
		Draft:          pr.GetDraft(),
		// The repository of a head that was deleted can only have been a fork.
		Fork:       pr.GetHead().GetRepo() == nil || pr.GetHead().GetRepo().GetID() != pr.GetBase().GetRepo().GetID(),
		Branch:     pr.GetHead().GetRef(),
		Head:       holdfast.Revision(pr.GetHead().GetSHA()),
		BaseBranch: pr.GetBase().GetRef(),
		UpdatedAt:  pr.GetUpdatedAt().UTC(),
	}
	switch {
	case pr.MergedAt != nil:
		out.State = holdfast.PullRequestMerged
		out.MergedAt = pr.GetMergedAt().UTC()
		// Before the merge it is a merge that GitHub made to try.
		out.MergeCommit = holdfast.Revision(pr.GetMergeCommitSHA())
	case pr.GetState() == "closed":
		out.State = holdfast.PullRequestClosed
	default:
		// "unstable" and "has_hooks" can be merged. An empty one is a list's,
		// which does not say; "unknown" will be known in a moment.
		switch state := pr.GetMergeableState(); state {
		case "clean", "unstable", "has_hooks":
			out.Mergeable = true
		case "", "unknown":
		default: // "blocked", "behind", "dirty", "draft"
			out.Blocked = state
		}
	}
	return out
}
