// What others have done to our comments.

package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// stampSlack is how much later than it answered a forge may stamp what it has written:
// GitHub has been seen to be a second apart. Nobody reads an edit that is that short.
const stampSlack = time.Second

// echo is how a forge has a comment that was written here: many give it back in another
// form than it was sent.
type echo struct {
	posted int64 // which content it is
	digest holdfast.Digest
}

// Untouched reports whether the forge has a post as it was written there: as it was
// sent, or as the forge gave it back, and not edited since. An edit that was taken back
// is one, too: people have read it meanwhile. Of a forge that does not say when a
// comment was edited, the text alone counts.
func (o *outbox) Untouched(post holdfast.Post, found holdfast.Comment) bool {
	if editedSince(post, found) {
		return false
	}
	if sameText(post.Body, found.Body) {
		return true
	}
	echo, ok := o.echo(post)
	return ok && echo == holdfast.DigestOf([]byte(found.Body))
}

// overwrites is Untouched of a post whose next content is about to be written: what the
// last one said is known only if it was written here.
func (o *outbox) overwrites(post holdfast.Post, found holdfast.Comment) bool {
	echo, ok := o.echo(post)
	return editedSince(post, found) || ok && echo != holdfast.DigestOf([]byte(found.Body))
}

func editedSince(post holdfast.Post, found holdfast.Comment) bool {
	return found.UpdatedAt.After(post.PostedAt.Add(stampSlack))
}

// sameText reports whether two texts differ at most in how their lines end.
func sameText(a, b string) bool {
	plain := func(s string) string { return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n") }
	return a == b || plain(a) == plain(b)
}

// wrote remembers how the forge has a comment that was written here.
func (o *outbox) wrote(post holdfast.Post, comment holdfast.Comment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.echoes, post.Key)
	if comment.Body != "" {
		o.echoes[post.Key] = echo{posted: post.Wanted, digest: holdfast.DigestOf([]byte(comment.Body))}
	}
}

// echo returns what the forge has of a post, if the newest of it was written here.
func (o *outbox) echo(post holdfast.Post) (holdfast.Digest, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, ok := o.echoes[post.Key]
	return e.digest, ok && e.posted == post.Posted
}

// lookFirst looks at a comment that is about to be written again: that would hide what
// somebody else has made of it, and people have read. One that was deleted loses its
// ExternalID. After an attempt of which nobody knows what came the comment may say what
// is not on record: then nothing is concluded.
func (o *outbox) lookFirst(ctx context.Context, forge Comments, post *holdfast.Post) error {
	if post.Kind != holdfast.PostComment || post.ExternalID == "" || post.Posted == 0 || post.Tried {
		return nil
	}
	found, err := forge.Comment(ctx, post.PullRequest, post.ExternalID)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		post.ExternalID = ""
	case err != nil:
		return fmt.Errorf("read the comment before it is written again: %w", err)
	case !o.overwrites(*post, found):
		return nil
	}
	pr, err := o.opts.Store.PullRequest(ctx, post.PullRequest)
	if err != nil {
		return fmt.Errorf("read pull request %s: %w", post.PullRequest, err)
	}
	_, err = o.CommentEdited(ctx, *post, pr.PullRequest, pr.State, found)
	return err
}

// CommentEdited has a pull request's comment written again that somebody else has edited
// or, if post has no ExternalID, deleted, and reports whether it was still as it was
// posted. Everybody who may write can do that, and nobody who reads it can tell: what it
// showed counts as shown, and as approved, only from when it is there again, unless that
// was done after the merge, and a look since the merge had found it as it was: was is the
// state of pr on record. Of several edits a forge tells the time of the last one only.
func (o *outbox) CommentEdited(
	ctx context.Context, post holdfast.Post, pr holdfast.PullRequest, was holdfast.PullRequestState, found holdfast.Comment,
) (bool, error) {
	var seen, since time.Time
	switch {
	case pr.State != holdfast.PullRequestMerged:
	case was == holdfast.PullRequestMerged && (post.ExternalID == "" || found.UpdatedAt.After(pr.MergedAt)):
		seen = pr.MergedAt
	default:
		since = pr.MergedAt.Add(time.Second) // it may be there again within that of the merge
	}
	edited, err := o.opts.Store.PostEdited(ctx, post, seen, since)
	if err != nil || !edited {
		return false, err
	}
	o.opts.Logger.WarnContext(ctx, "somebody has edited or deleted the comment with the plans: it is written again",
		"pull_request", pr.PullRequestRef, "comment", found.ID, "edited_at", found.UpdatedAt)
	o.posts.Send()
	return true, nil
}
