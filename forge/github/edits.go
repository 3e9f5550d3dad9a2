package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
)

// What only GitHub's GraphQL API says of comments.

// maxNodes is how many objects one query accepts.
const maxNodes = 100

// uncertain is a comment of which the REST API does not say whether it was edited: its stamps
// have seconds, and those of an edit within the first one are equal.
type uncertain struct {
	at   int    // in the list
	node string // its id in the GraphQL API
}

// isUncertain reports whether it matters of a comment whether it was edited within its first
// second.
func (c *Client) isUncertain(comment holdfast.Comment) bool {
	return c.opts.MayCommand != nil && !comment.Bot && !comment.Edited() && c.opts.MayCommand(comment.Body)
}

// noteEdits makes comments edited ones that were edited within their first second. A GitHub, or
// a proxy before it, that has no GraphQL API for us leaves them as they are.
func (c *Client) noteEdits(ctx context.Context, gh *github.Client, comments []holdfast.Comment, unsure []uncertain) error {
	for some := range slices.Chunk(unsure, maxNodes) {
		edited, err := editedNodes(ctx, gh, some)
		switch err = translate(ctx, err); {
		case errors.Is(err, holdfast.ErrNotFound), errors.Is(err, holdfast.ErrForbidden), errors.Is(err, holdfast.ErrRejected):
			c.opts.Logger.WarnContext(ctx, "GitHub does not say which comments were edited within a second", "err", err)
			return nil
		case err != nil:
			return fmt.Errorf("ask for edits: %w", err)
		}
		for i, one := range some {
			if edited[i] {
				comments[one.at].UpdatedAt = comments[one.at].CreatedAt.Add(time.Nanosecond)
			}
		}
	}
	return nil
}

// editedNodes reports which comments were edited. One that is gone was not.
func editedNodes(ctx context.Context, gh *github.Client, comments []uncertain) ([]bool, error) {
	ids := make([]string, len(comments))
	for i, comment := range comments {
		ids[i] = comment.node
	}
	req, err := gh.NewRequest(http.MethodPost, graphQL(gh.BaseURL).String(), map[string]any{
		"query":     `query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { lastEditedAt } } }`,
		"variables": map[string]any{"ids": ids},
	})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Nodes []struct { // in the order of the ids; null for one that is gone
				LastEditedAt *time.Time `json:"lastEditedAt"`
			} `json:"nodes"`
		} `json:"data"`
	}
	if _, err := gh.Do(ctx, req, &answer); err != nil {
		return nil, err
	}
	if got := len(answer.Data.Nodes); got != len(ids) {
		return nil, fmt.Errorf("GitHub answered with %d of %d comments: %w", got, len(ids), holdfast.ErrUnavailable)
	}
	edited := make([]bool, len(ids))
	for i, node := range answer.Data.Nodes {
		edited[i] = node.LastEditedAt != nil
	}
	return edited, nil
}

// graphQL is where the GraphQL API of a REST API is.
func graphQL(rest *url.URL) *url.URL {
	if strings.HasSuffix(rest.Path, "/api/v3/") {
		return rest.JoinPath("../graphql")
	}
	return rest.JoinPath("graphql")
}
