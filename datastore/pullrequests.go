package datastore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// PullRequestStore keeps pull requests and what people commanded in them.
type PullRequestStore struct{ *records }

// pullRequestRow is what the columns have of a pull request, except for its document.
type pullRequestRow struct {
	ref            holdfast.PullRequestRef
	state          holdfast.PullRequestState
	version, since int64
	mark           []byte // of the document, see seal.Mark
}

// pullRequestColumns are of pull_requests AS p. In each row they come before the document, so
// that none of its pages is read for them.
const pullRequestColumns = `p.repo, p.number, p.state, p.version, p.shown_since, p.mark`

// scan reads pullRequestColumns, and what comes after them.
func (row *pullRequestRow) scan(from scanner, more ...any) error {
	return from.Scan(append([]any{&row.ref.Repo, &row.ref.Number, &row.state, &row.version, &row.since, &row.mark}, more...)...)
}

// PullRequest returns what is remembered of a pull request. For a record that cannot be
// read that is little; see PullRequestRecord.Damaged.
func (s *PullRequestStore) PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error) {
	return s.readPullRequest(ctx, s.db.reader(), ref, "")
}

// PullRequestVersion returns the Version of a pull request's record, and decodes nothing.
func (s *PullRequestStore) PullRequestVersion(ctx context.Context, ref holdfast.PullRequestRef) (version int64, err error) {
	err = s.db.reader().row(ctx, `SELECT version FROM pull_requests WHERE repo = ? AND number = ?`, ref.Repo, ref.Number).Scan(&version)
	return version, notFound(err, "pull request", ref.String())
}

func (s *PullRequestStore) readPullRequest(ctx context.Context, q querier, ref holdfast.PullRequestRef, suffix string) (holdfast.PullRequestRecord, error) {
	var row pullRequestRow
	err := row.scan(q.row(ctx, `SELECT `+pullRequestColumns+` FROM pull_requests AS p WHERE p.repo = ? AND p.number = ?`+suffix, ref.Repo, ref.Number))
	if err != nil {
		return holdfast.PullRequestRecord{}, notFound(err, "pull request", ref.String())
	}
	return s.recordOf(ctx, q, row)
}

// recordOf returns the record that a row is of. Its document is neither read nor decoded if it
// is the one last decoded, by the mark of that: each decision and each view needs the whole
// record, and one of a thousand clusters takes 20 ms to decode. The mark is new with each
// write, whoever writes; Version is not, when a comment no longer shows any plan.
func (s *PullRequestStore) recordOf(ctx context.Context, q querier, row pullRequestRow) (holdfast.PullRequestRecord, error) {
	mark, pr := s.decoded.Last(row.ref)
	if mark == "" || mark != string(row.mark) {
		return s.decodePullRequest(ctx, q, row.ref)
	}
	pr.ShownSince = fromNanos(row.since)
	return pr, nil
}

// decodePullRequest reads and decodes a record. For one that is damaged it returns what is
// left: who looks at the pull request next puts it on record again.
func (s *PullRequestStore) decodePullRequest(ctx context.Context, q querier, ref holdfast.PullRequestRef) (pr holdfast.PullRequestRecord, err error) {
	var row pullRequestRow
	var doc []byte
	err = row.scan(q.row(ctx, `SELECT `+pullRequestColumns+`, p.doc FROM pull_requests AS p WHERE p.repo = ? AND p.number = ?`, ref.Repo, ref.Number), &doc)
	if err != nil {
		return pr, notFound(err, "pull request", ref.String())
	}
	if s.unseal(ctx, "pull request", ref.String(), doc, &pr) == nil {
		s.decoded.Keep(ref, seal.Mark(doc), pr, len(doc))
	} else {
		pr = damagedPullRequest(row)
	}
	pr.ShownSince = fromNanos(row.since)
	return pr, nil
}

// eachPullRequest calls do for each pull request that the end of a query selects.
func (s *PullRequestStore) eachPullRequest(
	ctx context.Context, q querier, do func(holdfast.PullRequestRecord) error, from string, args ...any,
) error {
	var rows []pullRequestRow
	err := q.each(ctx, func(one scanner) error {
		var row pullRequestRow
		err := row.scan(one)
		rows = append(rows, row)
		return err
	}, `SELECT `+pullRequestColumns+` FROM `+from, args...)
	if err != nil {
		return err
	}
	for _, row := range rows {
		pr, err := s.recordOf(ctx, q, row)
		if err == nil {
			err = do(pr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PullRequests returns the pull requests that match, newest number first, or the
// last merged one first.
func (s *PullRequestStore) PullRequests(ctx context.Context, filter holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error) {
	var c conditions
	from, order := `pull_requests AS p`, `p.number DESC, p.repo`
	merged := `(SELECT MAX(a.merged_at) FROM pull_request_clusters AS a WHERE a.repo = p.repo AND a.number = p.number)`
	if filter.Repo != "" {
		c.Add(`p.repo = ?`, filter.Repo)
	}
	in(&c, "p.state", filter.States)
	if filter.Cluster != "" {
		from = `pull_request_clusters AS a JOIN pull_requests AS p ON p.repo = a.repo AND p.number = a.number`
		c.Add(`a.cluster = ?`, filter.Cluster)
		merged = `a.merged_at`
	}
	if filter.ByMerge {
		order = merged + ` DESC, ` + order
	}
	if after := filter.After; !after.IsZero() {
		c.Add(`(p.number < ? OR p.number = ? AND p.repo > ?)`, after.Number, after.Number, after.Repo)
	}
	var found []holdfast.PullRequestRecord
	add := func(pr holdfast.PullRequestRecord) error { found = append(found, pr); return nil }
	err := s.db.read(ctx, func(ctx context.Context, q querier) error {
		return s.eachPullRequest(ctx, q, add, from+c.Where()+` ORDER BY `+order+` LIMIT ? + 0`, append(c.Args, limitOr100(filter.Limit))...)
	})
	if err != nil {
		return nil, fmt.Errorf("list pull requests: %w", err)
	}
	return found, nil
}

// OpenPullRequests returns the versions of a repository's open pull requests, by number.
func (s *PullRequestStore) OpenPullRequests(ctx context.Context, repo string) (map[int]int64, error) {
	var list string // one row: each costs more than what is in it
	err := s.db.reader().row(ctx, `SELECT COALESCE(STRING_AGG(number || ' ' || version, ' '), '')
		FROM pull_requests WHERE repo = ? AND state = ?`, repo, string(holdfast.PullRequestOpen)).Scan(&list)
	if err != nil {
		return nil, fmt.Errorf("list open pull requests of %q: %w", repo, err)
	}
	versions, fields := make(map[int]int64), strings.Fields(list)
	for i := 0; i+1 < len(fields); i += 2 {
		number, _ := strconv.Atoi(fields[i]) // the database wrote them
		versions[number], _ = strconv.ParseInt(fields[i+1], 10, 64)
	}
	return versions, nil
}

// SavePullRequest creates (Version 0) or replaces a record, and returns it with
// the next Version. It is found by its clusters except for the samples. Unshown stays as
// it is on record: what posts comments sets it. Over a record that was damaged, the comment
// is written again: nobody knows whether the one there shows the plans.
func (s *PullRequestStore) SavePullRequest(ctx context.Context, pr holdfast.PullRequestRecord) (holdfast.PullRequestRecord, error) {
	if pr.Repo == "" || pr.IsZero() {
		return holdfast.PullRequestRecord{}, fmt.Errorf("save pull request %q: it needs a repository and a number", pr.String())
	}
	if pr.Damaged {
		return holdfast.PullRequestRecord{}, fmt.Errorf("save pull request %s: its record could not be read: %w", pr, holdfast.ErrDamaged)
	}
	read := pr.Version
	pr.Version++
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofPullRequest(pr.PullRequestRef)); err != nil {
			return err
		}
		old, err := s.readPullRequest(ctx, q, pr.PullRequestRef, q.forUpdate)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return err
		}
		pr.Unshown = old.Unshown
		doc, err := s.keys.SealJSON("pull request", pr.String(), pr)
		if err != nil {
			return err
		}
		query := `UPDATE pull_requests SET state = ?, version = ?, doc = ? WHERE repo = ? AND number = ?`
		if read == 0 {
			query = `INSERT INTO pull_requests (state, version, doc, repo, number) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (repo, number) DO NOTHING`
		}
		n, err := q.exec(ctx, query, string(pr.State), pr.Version, doc, pr.Repo, pr.Number)
		if err == nil && (n == 0 || old.Version != read) {
			err = holdfast.ErrConflict
		}
		if err != nil {
			return err
		}
		if old.Damaged {
			if err := s.showAgain(ctx, q, pr.PullRequestRef); err != nil {
				return err
			}
		}
		if read > 0 && !old.Damaged && sameMerges(old, pr) {
			return nil
		}
		if _, err := q.exec(ctx, `DELETE FROM pull_request_clusters WHERE repo = ? AND number = ?`, pr.Repo, pr.Number); err != nil {
			return err
		}
		for _, cluster := range pr.Clusters {
			if cluster.Sample {
				continue // its merge does not change it
			}
			if _, err := q.exec(ctx, `INSERT INTO pull_request_clusters (repo, number, cluster, merged_at) VALUES (?, ?, ?, ?)
				ON CONFLICT (repo, number, cluster) DO NOTHING`, pr.Repo, pr.Number, cluster.Name, nanos(pr.MergedAt)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return holdfast.PullRequestRecord{}, fmt.Errorf("save pull request %s at version %d: %w", pr, read, err)
	}
	return pr, nil
}

// showAgain has the comment of a pull request written again, if there is one.
func (s *PullRequestStore) showAgain(ctx context.Context, q querier, ref holdfast.PullRequestRef) error {
	s.damagedLogged.Delete("pull request " + ref.String())
	_, err := q.exec(ctx, `UPDATE posts SET wanted = wanted + 1, wanted_at = ?, posted_runs = '[]', posted_head = ''
		WHERE pr_repo = ? AND pr_number = ? AND kind = 'comment' AND posted > 0`, nanos(s.now()), ref.Repo, ref.Number)
	return err
}

// sameMerges reports whether the merges of two pull requests change the same clusters, and
// are of the same time.
func sameMerges(a, b holdfast.PullRequestRecord) bool {
	changed := func(pr holdfast.PullRequestRecord) map[string]bool {
		names := make(map[string]bool, len(pr.Clusters))
		for _, cluster := range pr.Clusters {
			if !cluster.Sample {
				names[cluster.Name] = true
			}
		}
		return names
	}
	return a.MergedAt.Equal(b.MergedAt) && maps.Equal(changed(a), changed(b))
}
