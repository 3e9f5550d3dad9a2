package datastore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/outgoing"
)

// postTurn orders posts by what waits for them: a merge waits for statuses, checks and
// the comment that they refer to, nothing for a reply or a reaction. An index has it.
const postTurn = `CASE kind WHEN 'issue' THEN 1 WHEN 'reply' THEN 2 WHEN 'reaction' THEN 3 ELSE 0 END`

// postPatience is how long a post is kept waiting by those that come before it. Then it
// has the one place of a claim that goes by age.
const postPatience = 2 * time.Minute

// ClaimPosts returns up to limit posts with Wanted > Posted whose NotBefore has come
// and whose After is on the forge, and hides them from other claims for ttl: statuses,
// checks and comments first, then issues, replies and reactions, of each those that
// wait longest. If there is more than one, the last one is the one that waits longest
// of all, once that is minutes. Those of the repositories in except are passed over.
func (s *PostStore) ClaimPosts(
	ctx context.Context, owner string, now time.Time, ttl time.Duration, limit int, except ...string,
) ([]outgoing.Post, error) {
	due := ` FROM posts WHERE wanted > posted AND wanted > abandoned AND (not_before <= ? OR not_before > ?)
		AND (claimed_until <= ` + s.db.clock + ` OR claimed_until > ` + s.db.clock + `)
		AND NOT EXISTS (SELECT 1 FROM posts AS p WHERE p.post_key = posts.after_key AND p.posted < posts.after_wanted)`
	args := []any{nanos(now), nanos(now.Add(longestPause)), s.by(now), s.by(now.Add(ttl + maxSkew))}
	if len(except) > 0 {
		due += ` AND repo NOT IN (?` + strings.Repeat(`, ?`, len(except)-1) + `)`
		for _, repo := range except {
			args = append(args, repo)
		}
	}
	// Most looks find nothing: they cost no write. Others read no more than one post for it,
	// however many wait.
	var waiting int
	if err := s.db.reader().row(ctx, `SELECT COUNT(*) FROM (SELECT 1`+due+` LIMIT 1) AS due`, args...).Scan(&waiting); err != nil {
		return nil, fmt.Errorf("claim posts: %w", err)
	}
	if waiting == 0 || limit <= 0 {
		return nil, nil
	}
	var posts []outgoing.Post
	err := s.db.write(ctx, func(ctx context.Context, q querier) (err error) {
		if posts, err = s.duePosts(ctx, q, due, args, now, limit); err != nil {
			return err
		}
		for _, p := range posts {
			if _, err := q.exec(ctx, `UPDATE posts SET claimed_by = ?, claimed_until = `+q.clock+`, claimed_wanted = wanted WHERE post_key = ?`,
				owner, s.by(now.Add(ttl)), p.Key); err != nil {
				return err
			}
			if p.Kind == "" { // it cannot be read
				if _, err := q.exec(ctx, `UPDATE posts SET abandoned = wanted, last_error = 'it cannot be read' WHERE post_key = ?`, p.Key); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim posts: %w", err)
	}
	return slices.DeleteFunc(posts, func(p outgoing.Post) bool { return p.Kind == "" }), nil
}

// duePosts reads the posts that a claim takes of those that are due.
func (s *PostStore) duePosts(ctx context.Context, q querier, due string, args []any, now time.Time, limit int) ([]outgoing.Post, error) {
	var posts []outgoing.Post
	read := func(row scanner) error {
		p, err := s.scanPost(row)
		posts = append(posts, p.Post)
		return err
	}
	err := q.each(ctx, read, `SELECT `+postColumns+due+` ORDER BY `+postTurn+`, wanted_at, post_key LIMIT ? + 0`+q.skipLocked,
		append(slices.Clone(args), limit)...)
	if err != nil || limit < 2 || len(posts) < limit {
		return posts, err
	}
	first := posts
	posts = nil
	err = q.each(ctx, read, `SELECT `+postColumns+due+` AND wanted_at <= ? ORDER BY wanted_at, post_key LIMIT 1`+q.skipLocked,
		append(slices.Clone(args), nanos(now.Add(-postPatience)))...)
	for _, late := range posts {
		if !slices.ContainsFunc(first, func(p outgoing.Post) bool { return p.Key == late.Key }) {
			first[limit-1] = late
		}
	}
	return first, err
}
