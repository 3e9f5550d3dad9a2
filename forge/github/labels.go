package github

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
)

// SetLabels gives a pull request the labels that are wanted of ours, takes the others of
// ours off it, and leaves those of people alone. GitHub makes a label that it does not
// have. It is an ErrNotFound if there is no such pull request.
func (c *Client) SetLabels(ctx context.Context, ref holdfast.PullRequestRef, ours, wanted []string) error {
	return c.do(ctx, ref.Repo, fmt.Sprintf("label %s", ref), func(gh *github.Client, on repository) error {
		// GitHub puts at most 100 labels on one.
		found, _, err := gh.Issues.ListLabelsByIssue(ctx, on.owner, on.name, ref.Number, &github.ListOptions{PerPage: 100})
		if err != nil {
			return err
		}
		has := func(name string) bool {
			return slices.ContainsFunc(found, func(l *github.Label) bool { return strings.EqualFold(l.GetName(), name) })
		}
		var missing []string
		for _, name := range wanted {
			if !has(name) {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			if _, _, err := gh.Issues.AddLabelsToIssue(ctx, on.owner, on.name, ref.Number, missing); err != nil {
				return err
			}
		}
		for _, name := range ours {
			if slices.Contains(wanted, name) || !has(name) {
				continue
			}
			_, err := gh.Issues.RemoveLabelForIssue(ctx, on.owner, on.name, ref.Number, url.PathEscape(name))
			if err != nil && !isGone(err) { // somebody else has taken it off
				return err
			}
		}
		return nil
	})
}

// isGone reports whether GitHub has answered that there is no such thing.
func isGone(err error) bool {
	answer := (*github.ErrorResponse)(nil)
	return errors.As(err, &answer) && answer.Response != nil && answer.Response.StatusCode == 404
}
