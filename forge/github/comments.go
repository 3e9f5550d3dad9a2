package github

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
)

// maxComment is GitHub's limit for a comment, in characters.
const maxComment = 65536

// Comments returns the comments of all pull requests that were created or
// edited since; comments on issues are left out. At most 5,000 are read: the
// caller continues from Until. One that may hold a command and was edited within the second in
// which it was written is an edited one, too.
func (c *Client) Comments(ctx context.Context, repo string, since time.Time) (holdfast.CommentList, error) {
	var list holdfast.CommentList
	err := c.do(ctx, repo, fmt.Sprintf("read comments of %q", repo), func(gh *github.Client, on repository) error {
		opts := &github.IssueListCommentsOptions{
			Sort: new("updated"), Direction: new("asc"),
			ListOptions: github.ListOptions{PerPage: 100},
		}
		if !since.IsZero() {
			since = since.UTC().Truncate(time.Second) // GitHub's resolution
			opts.Since = &since
		}
		seen := make(map[int64]bool)
		var unsure []uncertain
		var err error
		list.More, err = eachPage(&opts.ListOptions, func() (*github.Response, error) {
			found, resp, err := gh.Issues.ListComments(ctx, on.owner, on.name, 0, opts)
			for _, comment := range found {
				if at := comment.GetUpdatedAt().UTC(); at.After(list.Until) {
					list.Until = at
				}
				if n := pullRequestNumber(comment); n != 0 && !seen[comment.GetID()] {
					seen[comment.GetID()] = true
					list.Comments = append(list.Comments, toComment(holdfast.PullRequestRef{Repo: repo, Number: n}, comment))
					if last := len(list.Comments) - 1; c.isUncertain(list.Comments[last]) {
						unsure = append(unsure, uncertain{at: last, node: comment.GetNodeID()})
					}
				}
			}
			// Pages shift while they are read: a comment that is edited goes to the
			// end, and one that comes after it to the page that was read already. So
			// the next page is the first one since the last comment of this one.
			if err == nil && resp.NextPage > 1 && list.Until.After(opts.GetSince()) {
				until := list.Until
				opts.Since, resp.NextPage = &until, 1
			}
			return resp, err
		})
		if err != nil {
			return err
		}
		return c.noteEdits(ctx, gh, list.Comments, unsure)
	})
	if err != nil {
		return holdfast.CommentList{}, err
	}
	slices.SortStableFunc(list.Comments, func(a, b holdfast.Comment) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	return list, nil
}

// pullRequestNumber returns the pull request that a comment is on; zero if it
// is on an issue. Only the page for people tells the two apart.
func pullRequestNumber(comment *github.IssueComment) int {
	page, _, _ := strings.Cut(comment.GetHTMLURL(), "#")
	rest, number := path.Split(page)
	if !strings.HasSuffix(rest, "/pull/") {
		return 0
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}

func toComment(ref holdfast.PullRequestRef, comment *github.IssueComment) holdfast.Comment {
	return holdfast.Comment{
		ID: strconv.FormatInt(comment.GetID(), 10), PullRequest: ref,
		Author: comment.GetUser().GetLogin(), Bot: comment.GetUser().GetType() == "Bot",
		Body:      comment.GetBody(),
		CreatedAt: comment.GetCreatedAt().UTC(), UpdatedAt: comment.GetUpdatedAt().UTC(),
	}
}

// Comment returns a comment as it is now.
func (c *Client) Comment(ctx context.Context, ref holdfast.PullRequestRef, id string) (holdfast.Comment, error) {
	number, err := commentID(id)
	if err != nil {
		return holdfast.Comment{}, fmt.Errorf("read comment on %s: %w: %w", ref, err, holdfast.ErrNotFound)
	}
	var found holdfast.Comment
	err = c.do(ctx, ref.Repo, fmt.Sprintf("read comment %s on %s", id, ref), func(gh *github.Client, on repository) error {
		comment, _, err := gh.Issues.GetComment(ctx, on.owner, on.name, number)
		if err != nil {
			return err
		}
		found = toComment(ref, comment)
		return nil
	})
	return found, err
}

// PutComment creates or updates a comment of ours, as reconciler.Forge says.
// A comment that we may not edit since another identity of ours wrote it counts
// as gone. A body that is too long for GitHub is cut, visibly.
func (c *Client) PutComment(ctx context.Context, ref holdfast.PullRequestRef, id, marker, body string) (holdfast.Comment, error) {
	body = fit(body)
	var put holdfast.Comment
	err := c.do(ctx, ref.Repo, fmt.Sprintf("comment on %s", ref), func(gh *github.Client, on repository) error {
		known, err := commentID(id)
		if err != nil && id != "" {
			return err
		}
		var refused error
		if known != 0 {
			comment, err := editComment(ctx, gh, on, known, body)
			if err == nil {
				put = toComment(ref, comment)
				return nil
			}
			if !errors.Is(err, holdfast.ErrNotFound) && !errors.Is(err, holdfast.ErrForbidden) {
				return err
			}
			refused = err
		}
		if marker != "" {
			found, still, err := c.findOurs(ctx, gh, on, ref.Number, marker, known)
			switch {
			case err != nil:
				return err
			case still: // it is there and ours: what was refused now may work later
				return refused
			case found != nil && found.GetBody() == body: // the answer to a former try got lost
				put = toComment(ref, found)
				return nil
			case found != nil:
				comment, err := editComment(ctx, gh, on, found.GetID(), body)
				put = toComment(ref, comment)
				return err
			}
		}
		comment, _, err := gh.Issues.CreateComment(ctx, on.owner, on.name, ref.Number, &github.IssueComment{Body: &body})
		put = toComment(ref, comment)
		return err
	})
	if err != nil {
		return holdfast.Comment{}, err
	}
	return put, nil
}

func editComment(ctx context.Context, gh *github.Client, on repository, id int64, body string) (*github.IssueComment, error) {
	comment, _, err := gh.Issues.EditComment(ctx, on.owner, on.name, id, &github.IssueComment{Body: &body})
	return comment, translate(ctx, err)
}

func commentID(id string) (int64, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("comment id %q is not GitHub's", id)
	}
	return n, nil
}

// findOurs returns the first comment on a pull request that we wrote and that
// has marker; nil if there is none. Others can write a marker too, and some of
// us may edit the comments of others: so the author counts. The comment except
// is passed over: still reports that it is there and certainly ours.
func (c *Client) findOurs(
	ctx context.Context, gh *github.Client, on repository, number int, marker string, except int64,
) (first *github.IssueComment, still bool, err error) {
	login, err := c.writer(ctx)
	if err != nil {
		return nil, false, err
	}
	err = eachSteadyPage(func(opts *github.ListOptions, see func(id int64)) (*github.Response, error) {
		found, resp, err := gh.Issues.ListComments(ctx, on.owner, on.name, number, &github.IssueListCommentsOptions{ListOptions: *opts})
		for _, comment := range found {
			see(comment.GetID())
			user := comment.GetUser()
			byUs := login != "" && strings.EqualFold(user.GetLogin(), login)
			switch {
			case comment.GetID() == except:
				still = byUs
			case first == nil && (byUs || login == "" && user.GetType() == "Bot") && strings.Contains(comment.GetBody(), marker):
				first = comment
			}
		}
		if still || first != nil && except == 0 {
			resp.NextPage = 0
		}
		return resp, err
	}, func() bool { return still || first != nil && except == 0 })
	return first, still, err
}

// writer returns who writes our comments and issues; empty if that cannot be
// known: an installation's token that was given to us does not say whose it is.
func (c *Client) writer(ctx context.Context) (string, error) {
	login, err := c.Login(ctx)
	if errors.Is(err, holdfast.ErrForbidden) {
		return "", nil
	}
	return login, err
}

// React puts a reaction of ours under a comment. Doing it twice is doing it
// once.
func (c *Client) React(ctx context.Context, ref holdfast.PullRequestRef, commentID string, reaction holdfast.Reaction) error {
	return c.do(ctx, ref.Repo, fmt.Sprintf("react to comment %s on %s", commentID, ref), func(gh *github.Client, on repository) error {
		id, err := strconv.ParseInt(commentID, 10, 64)
		if err != nil {
			return holdfast.ErrorOf(holdfast.ErrNotFound, "%q is not an id of GitHub's", commentID)
		}
		_, _, err = gh.Reactions.CreateIssueCommentReaction(ctx, on.owner, on.name, id, string(reaction))
		return err
	})
}

// cut replaces the end of a body that is too long.
const cut = "\n\n_Truncated: GitHub does not accept longer comments._\n"

// fit cuts a body to GitHub's limit. Whoever writes bodies fits them in a better way;
// this is only a safeguard.
func fit(body string) string { return fitWith(body, "") }

// fitWith is fit for a body with an end that is not cut.
func fitWith(body, end string) string {
	room := maxComment - utf8.RuneCountInString(end)
	if utf8.RuneCountInString(body) <= room {
		return body + end
	}
	return string([]rune(body)[:room-utf8.RuneCountInString(cut)]) + cut + end
}
