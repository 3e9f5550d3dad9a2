// What others have done to our comments.

package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/report"
)

const (
	// stampSlack is how much later than it answered a forge may stamp what it has written:
	// GitHub has been seen to be a second apart. Nobody reads an edit that is that short.
	stampSlack = time.Second
	// readAgain is when a comment that is not as it was confirmed is read once more: a
	// forge may answer a read with what was there before the last write.
	readAgain = time.Second
	// inTheFuture is further ahead of our clock than any forge's is: a comment that is shown
	// since such a time is not shown.
	inTheFuture = 365 * 24 * time.Hour
	// readsLag is how long after a write that is assumed.
	readsLag = time.Minute
	// attemptsMost bounds the attempts that are kept of a comment that cannot be posted.
	attemptsMost = 50
)

// errOldRead is a forge's answer with a comment from before a write that it has confirmed.
var errOldRead = fmt.Errorf("the code host returned the comment as it was before the last write: %w", holdfast.ErrUnavailable)

// Intact reports whether a pull request's comment is on the forge as it was written there,
// if it was. What somebody else has edited or deleted is written again: everybody who may
// write can do that, and nobody who reads it can know. What the comment showed counts as
// shown, and as approved, only from when it is there again, unless that was done after the
// merge, and a look since the merge had found it as it was: was is the state of pr on
// record. An edit that was taken back is one, too: people have read it meanwhile. Nor is it
// as it was written if it shows none of the plans any longer, and that is news.
func (o *outbox) Intact(ctx context.Context, pr holdfast.PullRequest, was holdfast.PullRequestState) (bool, error) {
	forge := o.opts.Forges[pr.Repo]
	for forge != nil {
		post, err := o.opts.Store.Post(ctx, commentKey(pr.PullRequestRef))
		switch {
		case errors.Is(err, holdfast.ErrNotFound):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("read comment of %s: %w", pr.PullRequestRef, err)
		}
		found, intact, err := o.look(ctx, forge, post)
		if err != nil {
			return intact, err
		} else if intact {
			unshown, err := o.unshown(ctx, post, found)
			return !unshown, err
		}
		if edited, err := o.edited(ctx, post, found, pr, was); edited || err != nil {
			return false, err
		}
		// It is written here, or somebody else has noticed: look again.
	}
	return true, nil
}

// putComment writes a comment or a reply. A comment that is there is looked at first: to
// write it again would hide what somebody else has made of it.
func (o *outbox) putComment(ctx context.Context, forge Comments, post *outgoing.Post) (holdfast.Comment, error) {
	marker, id := report.Marker(post.PullRequest), post.ExternalID
	if post.Kind == outgoing.PostReply {
		marker = replyMarker(post.Key)
	}
	if post.Kind == outgoing.PostReply || post.Posted == 0 {
		if post.Tried {
			// It is read back: what is there already is not written again, and is
			// there since then.
			id = ""
		}
		return o.write(ctx, forge, post, id, marker)
	}
	found, intact, err := o.look(ctx, forge, *post)
	switch {
	case err != nil:
		return found, fmt.Errorf("read the comment before it is written again: %w", err)
	case intact && post.Tried && found.ID != "" && plain(found.Body) == plain(post.Body):
		post.Echo = echoOf(found)
		return found, nil // written by an attempt whose end is not on record
	case intact:
		if _, err := o.unshown(ctx, *post, found); err != nil {
			return found, err
		}
		comment, err := o.tryComment(ctx, forge, post, id, marker)
		if err == nil && id != "" && comment.ID != id { // it was deleted since the look
			err = o.notice(ctx, *post, holdfast.Comment{})
		}
		return comment, err
	}
	if err := o.notice(ctx, *post, found); err != nil {
		return found, err
	}
	return o.tryComment(ctx, forge, post, found.ID, marker)
}

// notice is edited before or after a write, unless that was noticed before: it is written
// again for that.
func (o *outbox) notice(ctx context.Context, post outgoing.Post, found holdfast.Comment) error {
	pr, err := o.opts.Store.PullRequest(ctx, post.PullRequest)
	if err != nil {
		return fmt.Errorf("read pull request %s: %w", post.PullRequest, err)
	}
	if pr.ShownSince.After(o.opts.Settings.Now().Add(inTheFuture)) {
		return nil
	}
	_, err = o.edited(ctx, post, found, pr.PullRequest, pr.State)
	return err
}

// tryComment writes a comment that was posted before. As long as nobody knows whether that
// was done, what it says may be there, and is nobody else's.
func (o *outbox) tryComment(ctx context.Context, forge Comments, post *outgoing.Post, id, marker string) (holdfast.Comment, error) {
	attempt := post.Attempt()
	before := slices.DeleteFunc(slices.Clone(post.Attempts), func(a string) bool { return a == attempt })
	post.Attempts = append(before[max(0, len(before)-attemptsMost):len(before):len(before)], attempt)
	if err := o.opts.Store.PostTried(ctx, post.Key, post.Attempts); err != nil {
		return holdfast.Comment{}, err
	}
	comment, err := o.write(ctx, forge, post, id, marker)
	if limited := (*holdfast.RateLimitError)(nil); err != nil && (final(err) || errors.As(err, &limited)) {
		// The forge has said that it was not done.
		post.Attempts = before
		return comment, errors.Join(err, o.opts.Store.PostTried(ctx, post.Key, before))
	}
	return comment, err
}

func (o *outbox) write(ctx context.Context, forge Comments, post *outgoing.Post, id, marker string) (holdfast.Comment, error) {
	comment, err := forge.PutComment(ctx, post.PullRequest, id, marker, post.Body)
	if post.Echo = ""; err == nil && comment.Body != "" {
		post.Echo = echoOf(comment)
	}
	return comment, err
}

// look returns a comment as the forge has it, and whether that is as it was written there.
// One that was deleted has no ID.
func (o *outbox) look(ctx context.Context, forge Comments, post outgoing.Post) (found holdfast.Comment, intact bool, err error) {
	if post.Posted == 0 || post.ExternalID == "" {
		return found, true, nil
	}
	for again := range 2 {
		found, err = forge.Comment(ctx, post.PullRequest, post.ExternalID)
		if gone := errors.Is(err, holdfast.ErrNotFound); !gone && err != nil {
			return found, false, fmt.Errorf("read comment of %s: %w", post.PullRequest, err)
		} else if gone {
			found = holdfast.Comment{}
		} else if untouched(post, found) {
			return found, true, nil
		} else if !older(post, found) {
			return found, false, nil
		}
		if again == 0 {
			select {
			case <-ctx.Done():
				return found, false, ctx.Err()
			case <-time.After(readAgain):
			}
		}
	}
	if found.ID == "" { // it is not gone because all of the repository is hidden
		_, err := forge.PullRequest(ctx, post.PullRequest)
		return found, false, err
	}
	if now := o.opts.Settings.Now(); min(now.Sub(post.WantedAt), now.Sub(post.PostedAt).Abs()) < readsLag {
		return found, false, errOldRead
	}
	return found, false, nil
}

// untouched reports whether a comment is as it was written: as the forge gave it back, and
// not edited since, or as it may have been written later. For a forge that does not say
// when a comment was edited, the text alone counts.
func untouched(post outgoing.Post, found holdfast.Comment) bool {
	edited := found.UpdatedAt.After(post.PostedAt.Add(stampSlack))
	if post.Echo != "" && post.Echo == echoOf(found) {
		return !edited // whatever was tried: it is what was posted, or was put back
	}
	switch {
	case attempted(post, found, false), attempted(post, found, true):
		return true
	case edited, older(post, found), post.Echo != "":
		return false
	case post.Wanted == post.Posted: // posted by a version that has kept no echo
		return plain(post.Body) == plain(found.Body)
	}
	return true
}

// attempted reports whether a comment is as it may have been written since it was posted, to
// show plans or, if it is unshown, none.
func attempted(post outgoing.Post, found holdfast.Comment, unshown bool) bool {
	return slices.ContainsFunc([]string{found.Body, plain(found.Body), plain(found.Body) + "\n"}, func(text string) bool {
		return slices.Contains(post.Attempts, outgoing.Post{Body: text, Unshown: unshown}.Attempt())
	})
}

// unshown records that a comment was written which shows none of the plans, though the answer
// to that got lost, and reports whether nobody knew that: what a comment before has shown does
// not count from then on.
func (o *outbox) unshown(ctx context.Context, post outgoing.Post, found holdfast.Comment) (bool, error) {
	if post.Echo != "" && post.Echo == echoOf(found) || !attempted(post, found, true) {
		return false, nil
	}
	at := found.UpdatedAt
	if at.IsZero() {
		at = o.opts.Settings.Now()
	}
	return o.opts.Store.PostUnshown(ctx, post, at)
}

// older reports whether a comment is as it was before it was written.
func older(post outgoing.Post, found holdfast.Comment) bool {
	return !found.UpdatedAt.IsZero() && found.UpdatedAt.Before(post.PostedAt.Truncate(time.Second))
}

// plain is a text without what forges change in it: how lines and the text end.
func plain(text string) string {
	return strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
}

func echoOf(comment holdfast.Comment) holdfast.Digest {
	return holdfast.DigestOf([]byte(plain(comment.Body)))
}

// edited records that somebody else has edited or deleted a comment, and reports whether
// that was so of what is on record. After several edits a forge reports the time of the
// last one only.
func (o *outbox) edited(
	ctx context.Context, post outgoing.Post, found holdfast.Comment, pr holdfast.PullRequest, was holdfast.PullRequestState,
) (bool, error) {
	post.ExternalID = found.ID
	var seen, since time.Time
	switch {
	case pr.State != holdfast.PullRequestMerged:
	case was == holdfast.PullRequestMerged && (found.ID == "" || found.UpdatedAt.After(pr.MergedAt)):
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
