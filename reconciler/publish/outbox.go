package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/report"
)

const (
	postRetryBase = 2 * time.Second
	postRetryMost = 5 * time.Minute
	postGiveUp    = 10 // failures: about a quarter of an hour
	postRefused   = 2  // failures before the one that ends it: a few seconds
	postLongest   = 30 // failures, whatever the words: about two hours

	// closedWait is how long a post of a pull request that was closed is deferred.
	closedWait = 24 * time.Hour
)

// post makes one thing on a forge as it is wanted.
func (o *outbox) post(ctx context.Context, post outgoing.Post) error {
	forge := o.opts.Forges[post.Repo]
	if forge == nil {
		// It may be configured again, or already is at another replica: it stays due,
		// and is not claimed here again.
		o.strangers.begin(post.Repo)
		return o.deferPost(ctx, post, "the repository is not configured", o.opts.Settings.Now())
	}
	if seen, err := o.seen(ctx, post); err != nil {
		return o.postFailed(ctx, post, err)
	} else if !seen {
		return o.drop(ctx, post)
	}
	at, began := o.opts.Settings.Now(), time.Now()
	// The result of a call is recorded even if the call used up its time.
	call, cancel := context.WithTimeout(ctx, postLease/2)
	defer cancel()
	var err error
	switch post.Kind {
	case outgoing.PostStatus:
		err = forge.SetStatus(call, post.Repo, post.Status)
	case outgoing.PostCheck:
		if checker, ok := forge.(Checker); ok {
			err = checker.PutCheck(call, post.Repo, post.Status, post.Faults)
		}
	case outgoing.PostLabels:
		err = putLabels(call, forge, post)
	case outgoing.PostReaction:
		err = forge.React(call, post.PullRequest, post.CommentID, post.Reaction)
	case outgoing.PostComment, outgoing.PostReply:
		var comment holdfast.Comment
		comment, err = o.putComment(call, forge, &post)
		post.ExternalID = comment.ID
		if !comment.UpdatedAt.IsZero() {
			at = comment.UpdatedAt // the clock of merges
		}
	case outgoing.PostIssue:
		post.ExternalID, err = putIssue(call, forge, post)
	}
	if !deferred(err) {
		o.opts.Watcher.Posted(post, began, err)
	}
	if err != nil {
		return o.postFailed(ctx, post, err)
	}
	if err := o.opts.Store.Posted(ctx, post, at); err != nil {
		return fmt.Errorf("record post %s: %w", post.Key, err)
	}
	return nil
}

// seen reports whether anybody would look at a post. A check run that had to wait, for a
// permission say, is of interest only on the head of an open pull request. One that is on
// the forge is brought up to date in any case.
func (o *outbox) seen(ctx context.Context, post outgoing.Post) (bool, error) {
	if post.Kind != outgoing.PostCheck || post.LastError == "" || post.Posted > 0 {
		return true, nil
	}
	open, err := o.openAt(ctx, post.Repo, post.Status.Revision)
	return len(open) > 0, err
}

// drop forgets a post that nobody would see. It is wanted again when its commit is a head
// again: after a force-push back to it, or when its pull request is reopened.
func (o *outbox) drop(ctx context.Context, post outgoing.Post) error {
	o.opts.Logger.InfoContext(ctx, "post dropped: its commit is not the head of an open pull request", "post", post.Key)
	if err := o.opts.Store.PostDropped(ctx, post); err != nil {
		return fmt.Errorf("drop post %s: %w", post.Key, err)
	}
	return nil
}

// openAt returns the open pull requests whose head is a commit, by number.
func (o *outbox) openAt(ctx context.Context, repo string, head holdfast.Revision) ([]holdfast.PullRequestRecord, error) {
	open, err := o.opts.Store.PullRequests(ctx, holdfast.PullRequestFilter{
		Repo: repo, States: []holdfast.PullRequestState{holdfast.PullRequestOpen}, Limit: 10_000,
	})
	if err != nil {
		return nil, fmt.Errorf("list pull requests of %q: %w", repo, err)
	}
	open = slices.DeleteFunc(open, func(pr holdfast.PullRequestRecord) bool { return pr.Head != head })
	slices.SortFunc(open, func(a, b holdfast.PullRequestRecord) int { return cmp.Compare(a.Number, b.Number) })
	return open, nil
}

// postFailed tries again later what may succeed then, and gives up on what the
// forge refuses for good, such as a comment on a pull request that is gone.
func (o *outbox) postFailed(ctx context.Context, post outgoing.Post, cause error) error {
	if refusal := refusalOf(cause); refusal != post.Refusal && !deferred(cause) {
		post.Refusal, post.Refusals = refusal, 0
	}
	if o.nobodyWaits(ctx, post, cause) || !deferred(cause) && hopeless(post, cause) {
		return o.giveUp(ctx, post, cause)
	}
	now := o.opts.Settings.Now()
	if limited := (*holdfast.RateLimitError)(nil); errors.As(cause, &limited) {
		// This is not the post's fault, however often it happens: its turn comes as
		// soon as the forge answers again.
		notBefore := now.Add(time.Second)
		if limited.RetryAt.After(notBefore) {
			notBefore = limited.RetryAt
		}
		return o.deferPost(ctx, post, cause.Error(), notBefore)
	}
	notBefore := now.Add(queue.Backoff(postRetryBase, post.Failures, postRetryMost))
	o.opts.Logger.Log(ctx, levelOf(post, cause), "post failed", "post", post.Key, "err", cause, "retry_at", notBefore)
	if err := o.opts.Store.PostFailed(ctx, failedOnce(post, cause), notBefore); err != nil {
		return fmt.Errorf("record failure of post %s: %w", post.Key, err)
	}
	return nil
}

// failedOnce returns a post as it is on record after a failure.
func failedOnce(post outgoing.Post, cause error) outgoing.Post {
	post.LastError = cause.Error()
	post.Failures++
	if post.Refusal != "" {
		post.Refusals++
	}
	return post
}

// deferred reports whether the forge accepts nothing at all now.
func deferred(cause error) bool {
	limited := (*holdfast.RateLimitError)(nil)
	return errors.As(cause, &limited)
}

// deferPost leaves a post for later because the forge accepts no posts now. It has not
// failed.
func (o *outbox) deferPost(ctx context.Context, post outgoing.Post, why string, notBefore time.Time) error {
	o.opts.Logger.InfoContext(ctx, "post deferred", "post", post.Key, "reason", why, "retry_at", notBefore)
	if err := o.opts.Store.PostDeferred(ctx, post.Key, why, notBefore); err != nil {
		return fmt.Errorf("defer post %s: %w", post.Key, err)
	}
	return nil
}

// giveUp ends a post until its content changes, or somebody asks for it.
func (o *outbox) giveUp(ctx context.Context, post outgoing.Post, cause error) error {
	o.opts.Logger.Log(ctx, levelOf(post, cause), "post given up", "post", post.Key, "err", cause)
	if err := o.opts.Store.PostFailed(ctx, failedOnce(post, cause), time.Time{}); err != nil {
		return fmt.Errorf("record failure of post %s: %w", post.Key, err)
	}
	o.opts.Watcher.GaveUp(post)
	if post.Kind == outgoing.PostComment {
		o.shows.Add(showKey{pullRequest: post.PullRequest}) // its plan was not seen, and will not be
	}
	return nil
}

// levelOf is how loud a failure is logged. A reaction whose comment was deleted has
// nobody who would see it.
func levelOf(post outgoing.Post, cause error) slog.Level {
	if post.Kind == outgoing.PostReaction && errors.Is(cause, holdfast.ErrNotFound) {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// refusalOf names the kind of a failure that may end a post; it is empty for any other.
// Refusals of another kind, and those before an outage, say nothing of how long this one
// has been there: each kind is counted from its first, while the wait for the next try
// grows with all failures.
func refusalOf(cause error) string {
	switch {
	case errors.Is(cause, holdfast.ErrNotFound):
		return "not found"
	case errors.Is(cause, errors.ErrUnsupported):
		return "unsupported"
	case final(cause):
		return "refused"
	default:
		return ""
	}
}

// hopeless reports whether no other try of a post would be better than those that were
// made, of which Refusals has those with a cause of that kind.
func hopeless(post outgoing.Post, cause error) bool {
	switch {
	case errors.Is(cause, holdfast.ErrNotFound):
		return goneForGood(post)
	case post.Kind == outgoing.PostIssue && errors.Is(cause, holdfast.ErrForbidden):
		return true // a repository without issues has none until somebody turns them on
	case errors.Is(cause, errors.ErrUnsupported) && post.Refusals > 2:
		return true
	default:
		return refusedForGood(post, cause)
	}
}

// goneForGood reports whether what a post belongs to is not found, and was not before. It
// may only be hidden for a while: a token that was cut down, a forge in trouble. It does
// not count as final too soon.
func goneForGood(post outgoing.Post) bool {
	most := postGiveUp
	if post.Kind == outgoing.PostReaction {
		// It is looked for once more: a comment that was just written may not be
		// everywhere on the forge yet.
		most = 1
	}
	return post.Refusals >= most
}

// refusedForGood reports whether a forge has refused a post so often that it will each
// time. For a text that it refuses again, as in a locked conversation, people who wait
// learn it from the status; a permission that is lacking may be given within minutes.
func refusedForGood(post outgoing.Post, cause error) bool {
	if !final(cause) {
		return false
	}
	most := postGiveUp
	if post.Kind == outgoing.PostComment || post.Kind == outgoing.PostReply {
		most = postRefused
	}
	return post.Refusals >= most && post.LastError == cause.Error() || post.Refusals >= postLongest
}

// nobodyWaits reports whether a post has failed often, for whatever cause, or is deferred
// and was wanted long ago, and is of a pull request that was closed. How long ago it was
// wanted says nothing of failures: no server may have run meanwhile.
func (o *outbox) nobodyWaits(ctx context.Context, post outgoing.Post, cause error) bool {
	age := o.opts.Settings.Now().Sub(post.WantedAt)
	long := post.Failures >= postLongest || deferred(cause) && age >= closedWait
	if !long || post.PullRequest.IsZero() {
		return false
	}
	pr, err := o.opts.Store.PullRequest(ctx, post.PullRequest)
	return err == nil && pr.State == holdfast.PullRequestClosed
}

// Retry asks to post again what was given up of a pull request or, without a number, of
// all of a repository.
func (o *outbox) Retry(ctx context.Context, ref holdfast.PullRequestRef) error {
	if err := o.opts.Store.RetryPosts(ctx, ref); err != nil {
		return err
	}
	o.posts.Send()
	return nil
}

// final reports whether a forge has understood a call and refused it. Any other error
// says nothing about the post: a network, a token, a disk of ours.
func final(err error) bool {
	if errors.Is(err, holdfast.ErrUnavailable) {
		return false
	}
	return slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}

// refusals are the errors by which a forge says that it has understood a call.
var refusals = []error{holdfast.ErrForbidden, holdfast.ErrRejected} //nolint:gochecknoglobals // a constant list

// want writes to the outbox what posts should say, all of them or none.
func (o *outbox) want(ctx context.Context, posts ...outgoing.Post) error {
	if len(posts) == 0 {
		return nil
	}
	if err := o.opts.Store.Want(ctx, posts...); err != nil {
		return fmt.Errorf("want %s: %w", posts[0].Key, err)
	}
	o.posts.Send()
	o.opts.Watcher.Wanted(ctx)
	return nil
}

// wantStatus sets the status of a commit. Unless asked to, its numbers of progress
// alone are not worth a call.
func (o *outbox) wantStatus(ctx context.Context, post outgoing.Post, told bool) error {
	return o.want(ctx, o.statusPosts(ctx, post, told)...)
}

// statusPosts is the post that sets the status of a commit, as wantStatus does; none if there is
// nothing to set.
func (o *outbox) statusPosts(ctx context.Context, post outgoing.Post, told bool) []outgoing.Post {
	status := post.Status
	if status.Revision == "" {
		return nil
	}
	post.Key, post.Kind = statusKey(post.Repo, status.Revision, status.Context), outgoing.PostStatus
	if report.InProgress(status) && !told {
		before, err := o.opts.Store.Post(ctx, post.Key)
		if err == nil && report.InProgress(before.Status) {
			return nil
		}
	}
	return []outgoing.Post{post}
}
