package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// PostStore is the outbox: what the forges should show, and what they show.
type PostStore struct{ *records }

const postColumns = `post_key, runs, head, external_id, wanted, wanted_at, posted, posted_at, abandoned, not_before, failures, refusal, refusals, last_error, after_key, claimed_wanted, echo, attempts, doc`

// storedPost is a post with what only the outbox needs.
type storedPost struct {
	outgoing.Post
	abandoned int64
}

func (s *PostStore) scanPost(row scanner) (storedPost, error) {
	var (
		p                  storedPost
		key, runs, tried   string
		wantedAt, postedAt int64
		notBefore, claimed int64
		doc                []byte
		meta               outgoing.Post
	)
	if err := row.Scan(&key, &runs, &meta.Head, &meta.ExternalID, &meta.Wanted, &wantedAt, &meta.Posted, &postedAt, &p.abandoned,
		&notBefore, &meta.Failures, &meta.Refusal, &meta.Refusals, &meta.LastError, &meta.After, &claimed, &meta.Echo, &tried, &doc); err != nil {
		return p, err
	}
	if err := s.keys.UnsealJSON("post", key, doc, &p.Post); err != nil {
		// It cannot be shown, and whatever is wanted next is something else.
		s.log.Warn("a post cannot be read", "post", key, "err", err)
		p.Post = outgoing.Post{Key: key}
	}
	list, err := decodeList(runs)
	if err == nil {
		p.Attempts, err = decodeList(tried)
	}
	if err != nil {
		return p, fmt.Errorf("read post %q: %w", key, err)
	}
	p.Runs, p.Head, p.ExternalID, p.Echo = list, meta.Head, meta.ExternalID, meta.Echo
	p.Wanted, p.WantedAt = meta.Wanted, fromNanos(wantedAt)
	p.Posted, p.PostedAt = meta.Posted, fromNanos(postedAt)
	p.NotBefore, p.Failures, p.Refusal, p.Refusals, p.LastError = fromNanos(notBefore), meta.Failures, meta.Refusal, meta.Refusals, meta.LastError
	p.After, p.GivenUp = meta.After, p.Wanted > p.Posted && p.abandoned == p.Wanted
	p.Tried = p.Wanted > p.Posted && claimed > p.Posted
	return p, nil
}

func (s *PostStore) readPost(ctx context.Context, q querier, key, suffix string) (storedPost, error) {
	p, err := s.scanPost(q.row(ctx, `SELECT `+postColumns+` FROM posts WHERE post_key = ?`+suffix, key))
	return p, notFound(err, "post", key)
}

// Post returns a post with the content that is wanted.
func (s *PostStore) Post(ctx context.Context, key string) (outgoing.Post, error) {
	p, err := s.readPost(ctx, s.db.reader(), key, "")
	return p.Post, err
}

// Posts returns the posts that match, by key. One that cannot be read has no content and
// no Kind; it is given up until something is wanted of it again.
func (s *PostStore) Posts(ctx context.Context, filter outgoing.PostFilter) ([]outgoing.Post, error) {
	query, args := `SELECT `+postColumns+` FROM posts WHERE 1 = 1`, []any(nil)
	if filter.Kind != "" {
		query, args = query+` AND kind = ?`, append(args, string(filter.Kind))
	}
	if !filter.PullRequest.IsZero() {
		query, args = query+` AND pr_repo = ? AND pr_number = ?`, append(args, filter.PullRequest.Repo, filter.PullRequest.Number)
	}
	var posts []outgoing.Post
	err := s.db.reader().each(ctx, func(row scanner) error {
		p, err := s.scanPost(row)
		posts = append(posts, p.Post)
		return err
	}, query+` ORDER BY post_key`, args...)
	if err != nil {
		return nil, fmt.Errorf("list posts: %w", err)
	}
	return posts, nil
}

func sameContent(a, b outgoing.Post) bool {
	return a.Title == b.Title && a.Closed == b.Closed && a.Body == b.Body && a.Status == b.Status && a.Reaction == b.Reaction &&
		a.Unshown == b.Unshown && slices.Equal(a.Faults, b.Faults)
}

// Want stores what posts should say, all of them or none: Wanted grows if the content (Title,
// Closed, Body, Status, Faults, Reaction) differs from what was wanted last, otherwise nothing
// happens. Runs and Head are stored in any case; if the content they go with is on the forge
// already, the runs count as posted. With After it is posted when the post of that key has posted
// what is wanted of it now. What was given up is tried again when it shows other runs.
func (s *PostStore) Want(ctx context.Context, posts ...outgoing.Post) error {
	news := slices.DeleteFunc(slices.Clone(posts), func(post outgoing.Post) bool {
		old, err := s.readPost(ctx, s.db.reader(), post.Key, "")
		return err == nil && wantedAlready(old.Post, post) // what is asked for again and again costs no write
	})
	if len(news) == 0 {
		return nil
	}
	return s.db.write(ctx, func(ctx context.Context, q querier) error {
		for _, post := range news {
			if err := s.wantPost(ctx, q, post); err != nil {
				return fmt.Errorf("want post %q: %w", post.Key, err)
			}
		}
		return nil
	})
}

func (s *PostStore) wantPost(ctx context.Context, q querier, post outgoing.Post) error {
	if err := q.alone(ctx, ofPullRequest(post.PullRequest), "post "+post.Key); err != nil {
		return err
	}
	old, err := s.readPost(ctx, q, post.Key, q.forUpdate)
	switch {
	case post.Key == "":
		return errors.New("it has no key")
	case errors.Is(err, holdfast.ErrNotFound):
		return s.insertPost(ctx, q, post)
	case err != nil || wantedAlready(old.Post, post):
		return err
	case sameContent(old.Post, post):
		if err := s.showRuns(ctx, q, old.Post, post); err != nil || !old.GivenUp || slices.Equal(old.Runs, post.Runs) {
			return err
		}
		_, err := q.exec(ctx, `UPDATE posts SET `+neverFailed+` WHERE post_key = ?`, post.Key)
		return err
	}
	return s.changePost(ctx, q, old, post)
}

func wantedAlready(old, post outgoing.Post) bool {
	return sameContent(old, post) && old.Head == post.Head && slices.Equal(old.Runs, post.Runs)
}

// sealPost encrypts the part of a post that has no columns.
func (s *PostStore) sealPost(post outgoing.Post) ([]byte, error) {
	return s.keys.SealJSON("post", post.Key, outgoing.Post{
		Key: post.Key, Kind: post.Kind, Repo: post.Repo, PullRequest: post.PullRequest,
		Title: post.Title, Closed: post.Closed, Body: post.Body, Status: post.Status, Faults: post.Faults,
		CommentID: post.CommentID, Reaction: post.Reaction, Unshown: post.Unshown,
	})
}

func (s *PostStore) insertPost(ctx context.Context, q querier, post outgoing.Post) error {
	doc, err := s.sealPost(post)
	if err != nil {
		return err
	}
	_, err = q.exec(ctx, `INSERT INTO posts (post_key, kind, repo, pr_repo, pr_number, runs, head, posted_runs, posted_head, external_id,
			wanted, wanted_at, posted, posted_at, abandoned, not_before, failures, last_error, claimed_by, claimed_until, claimed_wanted,
			after_key, after_wanted, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, '[]', '', ?, 1, ?, 0, 0, 0, ?, 0, '', '', 0, 0, ?, `+wantedOf+`, ?)`,
		post.Key, string(post.Kind), post.Repo, post.PullRequest.Repo, post.PullRequest.Number, encodeList(post.Runs), string(post.Head),
		post.ExternalID, nanos(s.now()), nanos(post.NotBefore), post.After, post.After, doc)
	return err
}

// wantedOf is what is wanted of the post with a key now; zero if there is none.
const wantedOf = `COALESCE((SELECT p.wanted FROM posts AS p WHERE p.post_key = ?), 0)`

// changePost keeps the time before which the forge does not want to be asked.
func (s *PostStore) changePost(ctx context.Context, q querier, old storedPost, post outgoing.Post) error {
	doc, err := s.sealPost(post)
	if err != nil {
		return err
	}
	notBefore, delivery := old.NotBefore, old.PostDelivery
	if old.abandoned == old.Wanted {
		delivery = outgoing.PostDelivery{} // of a content that was given up
	}
	if post.NotBefore.After(notBefore) {
		notBefore = post.NotBefore
	}
	_, err = q.exec(ctx, `UPDATE posts SET kind = ?, repo = ?, pr_repo = ?, pr_number = ?, runs = ?, head = ?, wanted = wanted + 1, wanted_at = ?,
			not_before = ?, failures = ?, refusal = ?, refusals = ?, last_error = ?, after_key = ?, after_wanted = `+wantedOf+`, doc = ? WHERE post_key = ?`,
		string(post.Kind), post.Repo, post.PullRequest.Repo, post.PullRequest.Number, encodeList(post.Runs), string(post.Head), nanos(s.now()),
		nanos(notBefore), delivery.Failures, delivery.Refusal, delivery.Refusals, delivery.LastError, post.After, post.After, doc, post.Key)
	return err
}

// showRuns stores that the same content shows other runs.
func (s *PostStore) showRuns(ctx context.Context, q querier, old, post outgoing.Post) error {
	if _, err := q.exec(ctx, `UPDATE posts SET runs = ?, head = ? WHERE post_key = ?`,
		encodeList(post.Runs), string(post.Head), post.Key); err != nil || old.Posted != old.Wanted {
		return err
	}
	if _, err := q.exec(ctx, `UPDATE posts SET posted_runs = runs, posted_head = head WHERE post_key = ?`, post.Key); err != nil {
		return err
	}
	for _, id := range post.Runs {
		run, err := s.readRun(ctx, q, id, "")
		if errors.Is(err, holdfast.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		// The content was there before the run; the run was not.
		at := old.PostedAt
		if run.FinishedAt.After(at) {
			at = run.FinishedAt
		}
		if err := markPosted(ctx, q, at, id); err != nil {
			return err
		}
	}
	return nil
}

// markPosted sets PostedAt of runs where it is not set.
func markPosted(ctx context.Context, q querier, at time.Time, runs ...string) error {
	for _, id := range distinct(slices.Clone(runs)) { // sorted: two of them do not wait for one another
		if _, err := q.exec(ctx, `UPDATE runs SET posted_at = ? WHERE id = ? AND posted_at = 0`, nanos(at), id); err != nil {
			return err
		}
	}
	return nil
}

// PostsLeft counts the statuses, checks, comments and issues that were wanted at since
// or later and can be posted now: none that has failed or was deferred, or waits for one
// that has.
func (s *PostStore) PostsLeft(ctx context.Context, now, since time.Time) (int, error) {
	var left int
	err := s.db.reader().row(ctx, `SELECT COUNT(*) FROM posts WHERE wanted > posted AND wanted > abandoned AND wanted_at >= ?
		AND `+postTurn+` < 2 AND failures = 0 AND last_error = '' AND not_before <= ?
		AND NOT EXISTS (SELECT 1 FROM posts AS p WHERE p.post_key = posts.after_key AND p.posted < posts.after_wanted
			AND (p.failures > 0 OR p.last_error <> '' OR p.not_before > ?))`, nanos(since), nanos(now), nanos(now)).Scan(&left)
	if err != nil {
		return 0, fmt.Errorf("count posts: %w", err)
	}
	return left, nil
}

// Posted records that the content of post (its Wanted, as it was claimed) is on
// the forge under post.ExternalID since at (the forge's clock), ends the claim,
// and sets PostedAt of post.Runs where it is not set. A comment that is Unshown
// begins a time in which no plan counts as shown, another one ends it.
func (s *PostStore) Posted(ctx context.Context, post outgoing.Post, at time.Time) error {
	claimed := post
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		post := claimed
		if err := q.alone(ctx, ofPullRequest(post.PullRequest)); err != nil {
			return err
		}
		row, err := s.readPost(ctx, q, post.Key, q.forUpdate)
		if err != nil {
			return err
		}
		if post.Wanted < row.Posted || post.Wanted > row.Wanted {
			return endClaim(ctx, q, post.Key) // a later content is there already
		}
		runs, head := post.Runs, post.Head
		if post.Wanted == row.Wanted { // the same content may show other runs than at the claim
			runs, head = row.Runs, row.Head
			post.Runs = append(slices.Clone(row.Runs), post.Runs...)
		}
		if _, err := q.exec(ctx, `UPDATE posts SET posted_runs = ?, posted_head = ?, posted = ?, posted_at = ?, external_id = ?, failures = 0,
			refusal = '', refusals = 0, last_error = '', not_before = 0, echo = ?, attempts = ? WHERE post_key = ?`, encodeList(runs), string(head), post.Wanted, nanos(at),
			post.ExternalID, string(post.Echo), encodeList(attemptsAfter(row.Attempts, post)), post.Key); err != nil {
			return err
		}
		if err := markPosted(ctx, q, at, post.Runs...); err != nil {
			return err
		}
		if row.Kind == outgoing.PostComment {
			if err := shownAgain(ctx, q, row.PullRequest, at); err != nil {
				return err
			}
			if _, err := s.turn(ctx, q, row.PullRequest, post.Unshown, at); err != nil {
				return err
			}
		}
		return endClaim(ctx, q, post.Key)
	})
	if err != nil {
		return fmt.Errorf("record post %q: %w", post.Key, err)
	}
	return nil
}

// neverFailed makes a post that was given up one that has not failed.
const neverFailed = `abandoned = 0, not_before = 0, failures = 0, refusal = '', refusals = 0, last_error = ''`

// RetryPosts makes what was given up of a pull request or, without a number, of all of
// a repository claimable again, as if it had never failed and were wanted since now.
func (s *PostStore) RetryPosts(ctx context.Context, ref holdfast.PullRequestRef) error {
	query := `UPDATE posts SET wanted_at = ?, ` + neverFailed + ` WHERE wanted > posted AND abandoned = wanted`
	args := []any{nanos(s.now()), ref.Repo}
	if ref.Number != 0 {
		query, args = query+` AND pr_repo = ? AND pr_number = ?`, append(args, ref.Number)
	} else {
		query += ` AND repo = ?`
	}
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, query, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("retry posts of %s: %w", ref.Repo, err)
	}
	return nil
}

func endClaim(ctx context.Context, q querier, key string) error {
	_, err := q.exec(ctx, `UPDATE posts SET claimed_by = '', claimed_until = 0 WHERE post_key = ?`, key)
	return err
}

// endClaims ends the claims of a poster that is about to start, and of those that are dead:
// what they had begun is posted now, not when their claims end.
func endClaims(ctx context.Context, q querier, identity string) error {
	const query = `UPDATE posts SET claimed_by = '', claimed_until = 0 WHERE claimed_until > 0`
	if q.dialect == sqliteDialect { // it is ours alone
		_, err := q.exec(ctx, query)
		return err
	}
	_, err := q.exec(ctx, query+` AND (claimed_by = ? OR NOT `+postgres.Living("claimed_by")+`)`, identity)
	return err
}

// PostFailed ends the claim, records the Failures, Refusal, Refusals and LastError of post, and
// hides it until notBefore. The zero time gives up on the content that was claimed: it is not
// posted until it changes, and of a comment none of the plans shown before counts as shown.
func (s *PostStore) PostFailed(ctx context.Context, post outgoing.Post, notBefore time.Time) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofPullRequest(post.PullRequest)); err != nil {
			return err
		}
		query := `UPDATE posts SET failures = ?, refusal = ?, refusals = ?, last_error = ?, not_before = ?, claimed_by = '', claimed_until = 0`
		if notBefore.IsZero() {
			query += `, abandoned = CASE WHEN claimed_wanted > 0 THEN claimed_wanted ELSE wanted END`
		}
		n, err := q.exec(ctx, query+` WHERE post_key = ?`, post.Failures, post.Refusal, post.Refusals, post.LastError, nanos(notBefore), post.Key)
		if err == nil && n == 0 {
			err = holdfast.ErrNotFound
		}
		if err != nil || !notBefore.IsZero() {
			return err
		}
		row, err := s.readPost(ctx, q, post.Key, "")
		if err == nil && row.Kind == outgoing.PostComment && row.GivenUp && row.Posted > 0 {
			_, err = s.turn(ctx, q, row.PullRequest, true, time.Time{})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("record failure of post %q: %w", post.Key, err)
	}
	return nil
}

// PostDeferred ends the claim and hides the post until notBefore, as the forge accepts
// nothing now: that is not a failure, and the cause of the last one stays on record.
func (s *PostStore) PostDeferred(ctx context.Context, key, cause string, notBefore time.Time) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, `UPDATE posts SET last_error = CASE WHEN failures = 0 THEN ? ELSE last_error END, not_before = ?,
			claimed_by = '', claimed_until = 0 WHERE post_key = ?`, cause, nanos(notBefore), key)
		if err == nil && n == 0 {
			err = holdfast.ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("defer post %q: %w", key, err)
	}
	return nil
}

// PostDropped ends the claim, and forgets the post if nothing of it is on the forge and
// nothing else is wanted of it since it was claimed.
func (s *PostStore) PostDropped(ctx context.Context, post outgoing.Post) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `DELETE FROM posts WHERE post_key = ? AND posted = 0 AND wanted = ?`, post.Key, post.Wanted)
		if err != nil {
			return err
		}
		return endClaim(ctx, q, post.Key)
	})
	if err != nil {
		return fmt.Errorf("drop post %q: %w", post.Key, err)
	}
	return nil
}

// shown returns the runs and the head that the comment of a pull request shows on the
// forge now, without those that it does not show since an earlier second than at: the
// timestamps of forges have whole seconds, so that the order of two things in one
// second is unknown. The zero time leaves out none. The head is empty if anything was
// left out: what was seen then was not this.
func shown(ctx context.Context, q querier, ref holdfast.PullRequestRef, at time.Time) ([]string, holdfast.Revision, error) {
	var runs string
	var head holdfast.Revision
	var posted int64
	err := q.row(ctx, `SELECT posted_runs, posted_head, posted_at FROM posts WHERE kind = 'comment' AND pr_repo = ? AND pr_number = ?
		ORDER BY posted_at DESC, post_key LIMIT 1`, ref.Repo, ref.Number).Scan(&runs, &head, &posted)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, "", nil
	} else if err != nil {
		return nil, "", fmt.Errorf("read comment of %s: %w", ref, err)
	}
	list, err := decodeList(runs)
	if err != nil || at.IsZero() || posted < nanos(at.Truncate(time.Second)) {
		return list, head, err
	}
	// The comment has changed since. A run that it showed before is still meant.
	var seen []string
	for _, id := range list {
		var since int64
		err := q.row(ctx, `SELECT posted_at FROM runs WHERE id = ?`, id).Scan(&since)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return nil, "", fmt.Errorf("read when run %s was posted: %w", id, err)
		case since != 0 && since < nanos(at.Truncate(time.Second)):
			seen = append(seen, id)
		}
	}
	if len(seen) == 0 || len(seen) < len(list) {
		head = ""
	}
	return seen, head, nil
}
