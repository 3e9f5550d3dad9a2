package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/report"
)

// Reply answers a comment in words: all of its commands in one comment of ours, so that
// nobody can make us write more than they write.
func (p *Publisher) Reply(ctx context.Context, c holdfast.Command) error {
	key := "reply:" + c.PullRequest.Repo + ":" + c.CommentID
	said, err := p.opts.Store.Post(ctx, key)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read post %s: %w", key, err)
	}
	body, answer := said.Body, report.Reply(c)
	if body == "" {
		body = replyMarker(key)
	}
	if strings.Contains(body, answer) {
		return nil
	}
	return p.want(ctx, outgoing.Post{
		Key: key, Kind: outgoing.PostReply, Repo: c.PullRequest.Repo, PullRequest: c.PullRequest,
		Body: body + "\n" + answer,
	})
}

func replyMarker(key string) string { return "<!-- holdfast:" + key + " -->" }

// React shows the result of a command as a reaction to its comment. A command that was
// not given in a comment has none.
func (p *Publisher) React(ctx context.Context, c holdfast.Command, reaction holdfast.Reaction) error {
	if c.CommentID == "" {
		return nil
	}
	return p.want(ctx, outgoing.Post{
		Key: "reaction:" + c.ID, Kind: outgoing.PostReaction, Repo: c.PullRequest.Repo,
		PullRequest: c.PullRequest, CommentID: c.CommentID, Reaction: reaction,
	})
}
