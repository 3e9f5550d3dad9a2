package datastore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// What was shown of pull requests and said in them goes when they have ended long
// ago, and with them what was said elsewhere at that time.

// ended is how long pull requests are kept after their end, if nothing else is said.
const (
	endedKept   = 180 * 24 * time.Hour
	endedFewest = 30 * 24 * time.Hour
)

// neededPull is of pull_requests AS p that a decision may look at: an open one, one
// with a run that has not ended, and one whose merge a cluster may still wait with.
const neededPull = `(p.state = 'open'
	OR EXISTS (SELECT 1 FROM runs AS r WHERE r.pr_repo = p.repo AND r.pr_number = p.number AND r.` + unfinished + `)
	OR EXISTS (SELECT 1 FROM pull_request_clusters AS a JOIN summaries AS l ON l.name = a.cluster
		WHERE p.state = 'merged' AND a.repo = p.repo AND a.number = p.number
			AND l.phase <> 'Deleted' AND (l.waiting <> '' OR l.applied_run = '')))`

// knownPull is of rows with a repository and a number whose pull request is kept.
func knownPull(repo, number string) string {
	return `EXISTS (SELECT 1 FROM pull_requests AS p WHERE p.repo = ` + repo + ` AND p.number = ` + number + `)`
}

// endedBefore is before when something ended that is not kept; zero keeps all.
func (s *sweeper) endedBefore() int64 {
	if s.retention.Ended < 0 {
		return 0
	}
	return nanos(s.now().Add(-s.retention.Ended))
}

// pruneEnded removes what is left of pull requests that ended before the retention:
// records, posts, commands, and what the forge without a code host keeps of them.
func (s *sweeper) pruneEnded(ctx context.Context, gone removals) error {
	now := s.now()
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `UPDATE pull_requests SET ended_at = CASE WHEN state = 'open' THEN 0 ELSE CAST(? AS BIGINT) END
			WHERE (state = 'open') <> (ended_at = 0)`, nanos(now))
		return err
	})
	if err != nil || s.retention.Ended < 0 {
		return err
	}
	before := s.endedBefore()
	return errors.Join(
		s.prunePullRequests(ctx, before, gone), s.prunePosts(ctx, before, gone), s.pruneCommands(ctx, before, gone), s.pruneLocal(ctx, before, gone),
	)
}

func (s *sweeper) prunePullRequests(ctx context.Context, before int64, gone removals) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var old []holdfast.PullRequestRef
		err := s.db.reader().each(ctx, func(row scanner) error {
			var ref holdfast.PullRequestRef
			err := row.Scan(&ref.Repo, &ref.Number)
			old = append(old, ref)
			return err
		}, `SELECT p.repo, p.number FROM pull_requests AS p WHERE p.ended_at > 0 AND p.ended_at < ? AND NOT `+neededPull+` LIMIT ? + 0`, before, pruneRuns)
		if err != nil || len(old) == 0 {
			return err
		}
		removed := int64(0)
		err = s.db.write(ctx, func(ctx context.Context, q querier) error {
			removed = 0
			for _, ref := range old {
				n, err := q.exec(ctx, `DELETE FROM pull_requests AS p WHERE p.repo = ? AND p.number = ? AND NOT `+neededPull, ref.Repo, ref.Number)
				if err != nil || n == 0 { // it was opened again
					return err
				}
				removed += n
				for _, statement := range []string{
					`DELETE FROM pull_request_clusters WHERE repo = ? AND number = ?`,
					`DELETE FROM posts WHERE pr_repo = ? AND pr_number = ?`,
					`DELETE FROM impacts WHERE pr_repo = ? AND pr_number = ?`,
					`DELETE FROM requesters WHERE repo = ? AND number = ?`,
					`DELETE FROM local_comments WHERE repo = ? AND number = ?`,
				} {
					if _, err := q.exec(ctx, statement, ref.Repo, ref.Number); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil || removed == 0 {
			return err
		}
		gone.add("pull requests", keyEnded, int(removed))
	}
}

// prunePosts removes posts that are of no pull request that is known: statuses of
// commits that no cluster is of any longer, and answers where there was nothing. Those of
// issues stay: they say which issue is a cluster's.
func (s *sweeper) prunePosts(ctx context.Context, before int64, gone removals) error {
	for last := ""; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		keys, err := texts(ctx, s.db.reader(), `SELECT post_key FROM posts WHERE post_key > ? AND kind <> 'issue' AND wanted_at < ? AND posted_at < ?
			AND NOT `+knownPull("posts.pr_repo", "posts.pr_number")+` ORDER BY post_key LIMIT ? + 0`, last, before, before, pruneRows)
		if err != nil || len(keys) == 0 {
			return err
		}
		last = keys[len(keys)-1]
		removed := int64(0)
		err = s.db.write(ctx, func(ctx context.Context, q querier) error {
			removed = 0
			for _, key := range keys {
				var n int
				if err := q.row(ctx, `SELECT COUNT(*) FROM summaries WHERE revision = ? AND revision <> ''`, revisionOf(key)).Scan(&n); err != nil {
					return err
				} else if n > 0 {
					continue
				}
				deleted, err := q.exec(ctx, `DELETE FROM posts WHERE post_key = ? AND wanted_at < ?`, key, before)
				if err != nil {
					return err
				}
				removed += deleted
			}
			return nil
		})
		if err != nil {
			return err
		}
		gone.add("posts", keyEnded, int(removed))
	}
}

// revisionOf is the commit that the post with a key is a status of; empty for others:
// "status:REPOSITORY:COMMIT:CONTEXT".
func revisionOf(key string) string {
	parts := strings.Split(key, ":")
	if len(parts) < 4 || parts[0] != "status" {
		return ""
	}
	return parts[len(parts)-2]
}

// pruneCommands removes commands that were carried out, but not those of comments of
// a pull request that is known: such a comment must never count a second time. One that
// cannot be read stays, as nobody knows what it is of.
func (s *sweeper) pruneCommands(ctx context.Context, before int64, gone removals) error {
	for last := ""; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var some []holdfast.Command
		from := last
		err := s.db.reader().each(ctx, func(row scanner) error {
			var doc []byte
			if err := row.Scan(&last, &doc); err != nil {
				return err
			}
			var c holdfast.Command
			if err := s.keys.UnsealJSON("command", last, doc, &c); err != nil {
				s.log.WarnContext(ctx, "a command cannot be read and is kept", "id", last, "err", err)
				return nil
			}
			some = append(some, c)
			return nil
		}, `SELECT id, doc FROM commands WHERE id > ? AND status <> 'received' AND created_at < ? ORDER BY id LIMIT ? + 0`, from, before, pruneRows)
		if err != nil || last == from {
			return err
		}
		removed := int64(0)
		err = s.db.write(ctx, func(ctx context.Context, q querier) error {
			removed = 0
			for _, c := range some {
				n, err := q.exec(ctx, `DELETE FROM commands WHERE id = ? AND NOT EXISTS (SELECT 1 FROM pull_requests AS p
					WHERE p.repo = ? AND p.number = ?)`, c.ID, c.PullRequest.Repo, c.PullRequest.Number)
				if err != nil {
					return err
				}
				removed += n
			}
			return nil
		})
		if err != nil {
			return err
		}
		gone.add("commands", keyEnded, int(removed))
	}
}

// pruneLocal removes statuses of the forge without a code host that were set long ago,
// and comments of pull requests that are no longer known.
func (s *sweeper) pruneLocal(ctx context.Context, before int64, gone removals) error {
	remove := func(records, query string) error {
		var n int64
		err := s.db.write(ctx, func(ctx context.Context, q querier) (err error) {
			n, err = q.exec(ctx, query, before)
			return err
		})
		if err == nil {
			gone.add(records, keyEnded, int(n))
		}
		return err
	}
	return errors.Join(
		s.db.write(ctx, func(ctx context.Context, q querier) error {
			_, err := q.exec(ctx, `UPDATE local_statuses SET set_at = ? WHERE set_at = 0`, nanos(s.now()))
			return err
		}),
		remove("statuses", `DELETE FROM local_statuses WHERE set_at < ?
			AND NOT EXISTS (SELECT 1 FROM summaries AS l WHERE l.revision = local_statuses.revision)`),
		remove("comments", `DELETE FROM local_comments WHERE updated_at < ? AND NOT `+knownPull("local_comments.repo", "local_comments.number")),
	)
}
