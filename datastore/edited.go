package datastore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// notShown is when a comment that somebody has edited will be there again: nobody knows.
const notShown = math.MaxInt64

// shownAgain records when the comment of a pull request is there again.
func shownAgain(ctx context.Context, q querier, ref holdfast.PullRequestRef, at time.Time) error {
	_, err := q.exec(ctx, `UPDATE pull_requests SET shown_since = ? WHERE repo = ? AND number = ? AND shown_since = ?`,
		nanos(at), ref.Repo, ref.Number, int64(notShown))
	return err
}

// turn records that the comment of a pull request shows none of the plans since at, or shows
// them again, and reports whether that was not so. Without a time what it should show is
// refused now: after the merge that says nothing of the plans.
func (s *PostStore) turn(ctx context.Context, q querier, ref holdfast.PullRequestRef, unshown bool, at time.Time) (turned bool, err error) {
	pr, err := (&PullRequestStore{s.records}).readPullRequest(ctx, q, ref, q.forUpdate)
	switch {
	case errors.Is(err, holdfast.ErrNotFound), pr.Damaged: // its comment is written again once it is on record
		return false, nil
	case err != nil, unshown == (len(pr.Unshown)%2 == 1), at.IsZero() && pr.State == holdfast.PullRequestMerged:
		return false, err
	case at.IsZero():
		at = s.now()
	}
	if n := len(pr.Unshown); n > 0 && pr.Unshown[n-1].After(at) {
		at = pr.Unshown[n-1] // the clocks differ
	}
	pr.Unshown = append(pr.Unshown, at.UTC())
	doc, err := s.keys.SealJSON("pull request", ref.String(), pr)
	if err != nil {
		return false, err
	}
	_, err = q.exec(ctx, `UPDATE pull_requests SET doc = ? WHERE repo = ? AND number = ?`, doc, ref.Repo, ref.Number)
	return err == nil, err
}

// PostUnshown records that a comment shows none of the plans on the forge since at, where the
// end of writing it is not on record, and reports whether nobody has noticed that before.
func (s *PostStore) PostUnshown(ctx context.Context, post outgoing.Post, at time.Time) (turned bool, err error) {
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofPullRequest(post.PullRequest)); err != nil {
			return err
		}
		turned, err = s.turn(ctx, q, post.PullRequest, true, at)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("record that post %q shows no plan: %w", post.Key, err)
	}
	return turned, nil
}

// PostTried records what may be on the forge of a comment besides what was posted last: the
// digests of the bodies that were sent since, and whose end is not known.
func (s *PostStore) PostTried(ctx context.Context, key string, attempts []string) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `UPDATE posts SET attempts = ? WHERE post_key = ?`, encodeList(attempts), key)
		return err
	})
	if err != nil {
		return fmt.Errorf("record an attempt at post %q: %w", key, err)
	}
	return nil
}

// attemptsAfter are those that were made after the one that is on record as posted now.
func attemptsAfter(attempts []string, post outgoing.Post) []string {
	return attempts[slices.Index(attempts, post.Attempt())+1:]
}

// PostEdited has a post made again that somebody else has edited or deleted on the forge,
// and reports whether that was so of what is on record: nothing was posted of it, or begun
// to be, since post was read. It was found under post.ExternalID, or under none. Of the
// runs of its pull request, and of those that it showed, what counts as posted later than
// seen does so since another time or, if that is zero, from when it is there again.
func (s *Store) PostEdited(ctx context.Context, post outgoing.Post, seen, since time.Time) (edited bool, err error) {
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofPullRequest(post.PullRequest)); err != nil {
			return err
		}
		row, err := s.readPost(ctx, q, post.Key, q.forUpdate)
		edited = err == nil && row.Posted != 0 && row.Posted == post.Posted && slices.Equal(row.Attempts, post.Attempts)
		if !edited {
			return err
		}
		if err := s.postUnseen(ctx, q, row.Post, seen, since); err != nil {
			return err
		}
		if err := s.postAgain(ctx, q, row.Post, post.ExternalID); err != nil {
			return err
		}
		// Their authors may have read what somebody else had written. Stamps of forges do not
		// tell them from those that come after the comment was written again.
		return s.barCommands(ctx, q, row.PullRequest, holdfast.BarredByEdit, func(c holdfast.Command) bool {
			return slices.Contains([]holdfast.Verb{holdfast.VerbApprove, holdfast.VerbApply, holdfast.VerbWaive}, c.Verb) && c.CommentID != "" && len(c.Shown) > 0
		})
	})
	if err != nil {
		return false, fmt.Errorf("record that post %q was edited: %w", post.Key, err)
	}
	return edited, nil
}

// postUnseen has what counts as posted in a comment later than seen do so since another
// time: the runs of its pull request, and those that it showed, of the tracked branch, too.
func (s *Store) postUnseen(ctx context.Context, q querier, row outgoing.Post, seen, since time.Time) error {
	var runs string
	if err := q.row(ctx, `SELECT posted_runs FROM posts WHERE post_key = ?`, row.Key).Scan(&runs); err != nil {
		return err
	}
	shown, err := decodeList(runs)
	if err != nil {
		return err
	}
	ref := row.PullRequest
	if _, err := q.exec(ctx, `UPDATE runs SET posted_at = ? WHERE pr_repo = ? AND pr_number = ? AND posted_at > ?`,
		nanos(since), ref.Repo, ref.Number, nanos(seen)); err != nil {
		return err
	}
	for _, id := range append(shown, row.Runs...) {
		if _, err := q.exec(ctx, `UPDATE runs SET posted_at = ? WHERE id = ? AND posted_at > ?`, nanos(since), id, nanos(seen)); err != nil {
			return err
		}
	}
	_, err = q.exec(ctx, `UPDATE pull_requests SET shown_since = ? WHERE repo = ? AND number = ?`, int64(notShown), ref.Repo, ref.Number)
	return err
}

// postAgain has a comment written again that is on the forge under id, or not at all if
// that is empty. What is being written may be there before the edit. What was given up is
// tried once more: it may not be refused any longer.
func (s *Store) postAgain(ctx context.Context, q querier, row outgoing.Post, id string) error {
	again := row.Wanted == row.Posted || slices.Contains(row.Attempts, row.Attempt())
	_, err := q.exec(ctx, `UPDATE posts SET wanted = wanted + ?, wanted_at = ?, external_id = ?, posted_runs = '[]', posted_head = ''
		WHERE post_key = ?`, map[bool]int{true: 1}[again], nanos(s.now()), id, row.Key)
	return err
}
