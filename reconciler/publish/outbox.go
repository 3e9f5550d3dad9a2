package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/report"
)

const (
	postRetryBase = 2 * time.Second
	postRetryMost = 5 * time.Minute
	postGiveUp    = 10 // failures: about a quarter of an hour
	postRefused   = 2  // failures before the one that ends it: a few seconds
	postLongest   = 30 // failures, whatever the words: about two hours
)

// post makes one thing on a forge as it is wanted.
func (o *outbox) post(ctx context.Context, post holdfast.Post) error {
	forge := o.opts.Forges[post.Repo]
	if forge == nil {
		// It may be configured again, or be so at another replica: it stays due, and is
		// not asked for here again.
		o.strangers.begin(post.Repo)
		return o.opts.Store.PostFailed(ctx, post.Key, "the repository is not configured", o.opts.Settings.Now())
	}
	at, began := o.opts.Settings.Now(), time.Now()
	// What comes of a call is recorded also if it took all the time that it had.
	call, cancel := context.WithTimeout(ctx, postLease/2)
	defer cancel()
	var err error
	switch post.Kind {
	case holdfast.PostStatus:
		err = forge.SetStatus(call, post.Repo, post.Status)
	case holdfast.PostCheck:
		if checker, ok := forge.(Checker); ok {
			err = checker.PutCheck(call, post.Repo, post.Status, post.Faults)
		}
	case holdfast.PostReaction:
		err = forge.React(call, post.PullRequest, post.CommentID, post.Reaction)
	case holdfast.PostComment, holdfast.PostReply:
		var comment holdfast.Comment
		comment, err = o.putComment(call, forge, &post)
		post.ExternalID = comment.ID
		if !comment.UpdatedAt.IsZero() {
			at = comment.UpdatedAt // the clock of merges
		}
	case holdfast.PostIssue:
		post.ExternalID, err = putIssue(call, forge, post)
	}
	o.opts.Watcher.Posted(post, began, err)
	if err != nil {
		return o.postFailed(ctx, post, err)
	}
	if err := o.opts.Store.Posted(ctx, post, at); err != nil {
		return fmt.Errorf("record post %s: %w", post.Key, err)
	}
	return nil
}

// postFailed tries again later what may succeed then, and gives up on what the
// forge refuses for good, such as a comment on a pull request that is gone.
func (o *outbox) postFailed(ctx context.Context, post holdfast.Post, cause error) error {
	now := o.opts.Settings.Now()
	notBefore := now.Add(queue.Backoff(postRetryBase, post.Failures, postRetryMost))
	if limited := (*holdfast.RateLimitError)(nil); errors.As(cause, &limited) {
		// Not this post's fault, and however often it was not asked: its turn
		// comes as soon as the forge listens again.
		notBefore = now.Add(time.Second)
		if limited.RetryAt.After(notBefore) {
			notBefore = limited.RetryAt
		}
	}
	// What is not found may only be hidden for a while: a token that was cut
	// down, a forge in trouble. That is not taken for the end too soon.
	gone := errors.Is(cause, holdfast.ErrNotFound) && post.Failures >= postGiveUp
	// A repository without issues has none until somebody turns them on.
	noIssues := post.Kind == holdfast.PostIssue && errors.Is(cause, holdfast.ErrForbidden)
	// A reaction whose comment was deleted has nobody who would see it. It is looked for once
	// more: a comment that was just written may not be everywhere on the forge yet.
	unseen := post.Kind == holdfast.PostReaction && errors.Is(cause, holdfast.ErrNotFound)
	level := slog.LevelWarn
	if unseen {
		level, gone = slog.LevelInfo, post.Failures > 0
	}
	if gone || refusedForGood(post, cause) || noIssues || errors.Is(cause, errors.ErrUnsupported) && post.Failures > 2 || o.nobodyWaits(ctx, post) {
		notBefore = time.Time{}
	}
	o.opts.Logger.Log(ctx, level, "post failed", "post", post.Key, "err", cause, "retry_at", notBefore)
	if err := o.opts.Store.PostFailed(ctx, post.Key, cause.Error(), notBefore); err != nil {
		return fmt.Errorf("record failure of post %s: %w", post.Key, err)
	}
	if !notBefore.IsZero() {
		return nil
	}
	o.opts.Watcher.GaveUp(post)
	if post.Kind == holdfast.PostComment {
		o.shows.Add(showKey{pullRequest: post.PullRequest}) // its plan was not seen, and will not be
	}
	return nil
}

// refusedForGood reports whether a forge has refused a post so often that it will
// each time. Words that it refuses again, as in a conversation that is locked, have
// somebody waiting who learns it from the status; a permission that is lacking may
// be given within minutes.
func refusedForGood(post holdfast.Post, cause error) bool {
	if !final(cause) {
		return false
	}
	most := postGiveUp
	if post.Kind == holdfast.PostComment || post.Kind == holdfast.PostReply {
		most = postRefused
	}
	again := slices.ContainsFunc(refusals, func(err error) bool { return strings.Contains(post.LastError, err.Error()) })
	return post.Failures >= most && post.LastError == cause.Error() || post.Failures >= postLongest && again
}

// nobodyWaits reports whether a post has failed for long, for whatever cause, and is
// of a pull request that was closed.
func (o *outbox) nobodyWaits(ctx context.Context, post holdfast.Post) bool {
	if post.Failures < postLongest || post.PullRequest.IsZero() {
		return false
	}
	pr, err := o.opts.Store.PullRequest(ctx, post.PullRequest)
	return err == nil && pr.State == holdfast.PullRequestClosed
}

// Retry has what was given up of a pull request posted again or, without a number,
// of all of a repository.
func (o *outbox) Retry(ctx context.Context, ref holdfast.PullRequestRef) error {
	if err := o.opts.Store.RetryPosts(ctx, ref); err != nil {
		return err
	}
	o.posts.Send()
	return nil
}

// final reports whether a forge has understood a call and refused it. Whatever else
// went wrong says nothing of what was to be posted: a network, a token, a disk of ours.
func final(err error) bool {
	if errors.Is(err, holdfast.ErrUnavailable) {
		return false
	}
	return slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}

// refusals are the errors by which a forge says that it has understood a call.
var refusals = []error{holdfast.ErrForbidden, holdfast.ErrRejected} //nolint:gochecknoglobals // a constant list

// want writes to the outbox what a post should say.
func (o *outbox) want(ctx context.Context, post holdfast.Post) error {
	if err := o.opts.Store.Want(ctx, post); err != nil {
		return fmt.Errorf("want %s: %w", post.Key, err)
	}
	o.posts.Send()
	o.opts.Watcher.Wanted(ctx)
	return nil
}

// wantStatus sets the status of a commit. Unless told, its numbers of progress
// alone are not worth a call.
func (o *outbox) wantStatus(ctx context.Context, post holdfast.Post, told bool) error {
	status := post.Status
	if status.Revision == "" {
		return nil
	}
	post.Key, post.Kind = statusKey(post.Repo, status.Revision, status.Context), holdfast.PostStatus
	if report.InProgress(status) && !told {
		before, err := o.opts.Store.Post(ctx, post.Key)
		if err == nil && report.InProgress(before.Status) {
			return nil
		}
	}
	return o.want(ctx, post)
}
