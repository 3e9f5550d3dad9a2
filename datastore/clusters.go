package datastore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// maxNames is how many names one query takes.
const maxNames = 500

const clusterColumns = `c.name, c.labels, c.doc, COALESCE(s.serial, 0)
	FROM clusters AS c LEFT JOIN states AS s ON s.location = 'clusters/' || c.name`

// scanCluster reads clusterColumns; ok is false if the record's labels are not
// all of want.
func (s *Store) scanCluster(row scanner, want map[string]string) (c holdfast.ClusterRecord, ok bool, err error) {
	var name string
	var labels, doc []byte
	var serial int64
	if err := row.Scan(&name, &labels, &doc, &serial); err != nil {
		return c, false, err
	}
	if ok, err := hasLabels(labels, want); err != nil || !ok {
		return c, false, err
	}
	if err := s.keys.unsealJSON("cluster", name, doc, &c); err != nil {
		return c, false, err
	}
	c.StateSerial = serial
	return c, true, nil
}

// hasLabels reports whether labels, a JSON object, has all of want.
func hasLabels(labels []byte, want map[string]string) (bool, error) {
	if len(want) == 0 {
		return true, nil
	}
	for _, value := range want { // most clusters are out without being decoded
		if quoted, err := json.Marshal(value); err != nil || !bytes.Contains(labels, quoted) {
			return false, err
		}
	}
	var has map[string]string
	if err := json.Unmarshal(labels, &has); err != nil {
		return false, fmt.Errorf("decode labels: %w", err)
	}
	for key, value := range want {
		if got, ok := has[key]; !ok || got != value {
			return false, nil
		}
	}
	return true, nil
}

// Cluster returns what is remembered of a cluster.
func (s *Store) Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error) {
	c, _, err := s.scanCluster(s.db.reader().row(ctx, `SELECT `+clusterColumns+` WHERE c.name = ?`, name), nil)
	if err := notFound(err, "cluster", name); err != nil {
		return holdfast.ClusterRecord{}, err
	}
	return c, nil
}

// Clusters returns the clusters that match, by name.
func (s *Store) Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	var c conditions
	for _, equal := range []struct{ column, value string }{
		{"c.owner", filter.Owner},
		{"c.project", filter.Project},
		{"c.environment", filter.Environment},
		{"c.phase", string(filter.Phase)},
	} {
		if equal.value != "" {
			c.add(equal.column+` = ?`, equal.value)
		}
	}
	switch filter.Waiting {
	case "":
	case "*":
		c.add(`c.waiting <> ''`)
	default:
		c.add(`c.waiting = ? AND c.waiting <> ''`, filter.Waiting)
	}
	names := slices.Compact(slices.Sorted(slices.Values(filter.Names)))
	if len(names) == 0 {
		return s.queryClusters(ctx, c, filter.Labels)
	}
	var all []holdfast.ClusterRecord
	for some := range slices.Chunk(names, maxNames) {
		named := conditions{parts: slices.Clone(c.parts), args: slices.Clone(c.args)}
		in(&named, "c.name", some)
		found, err := s.queryClusters(ctx, named, filter.Labels)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (s *Store) queryClusters(ctx context.Context, c conditions, labels map[string]string) ([]holdfast.ClusterRecord, error) {
	var found []holdfast.ClusterRecord
	err := s.db.reader().each(ctx, func(row scanner) error {
		record, ok, err := s.scanCluster(row, labels)
		if ok {
			found = append(found, record)
		}
		return err
	}, `SELECT `+clusterColumns+c.where()+` ORDER BY c.name`, c.args...)
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	return found, nil
}

// SaveCluster creates (Version 0) or replaces a record, and returns it with the
// next Version. A zero UpdatedAt becomes now. StateSerial is not stored: it is
// read from the newest state version.
func (s *Store) SaveCluster(ctx context.Context, c holdfast.ClusterRecord) (holdfast.ClusterRecord, error) {
	if c.Name == "" {
		return holdfast.ClusterRecord{}, fmt.Errorf("save cluster: it has no name")
	}
	if c.UpdatedAt.IsZero() {
		c.UpdatedAt = s.now()
	}
	read := c.Version
	c.Version++
	stored := c
	stored.StateSerial = 0
	doc, err := s.keys.sealJSON("cluster", c.Name, stored)
	if err != nil {
		return holdfast.ClusterRecord{}, fmt.Errorf("save cluster: %w", err)
	}
	document := describing(c)
	labels, err := json.Marshal(document.Labels)
	if err != nil {
		return holdfast.ClusterRecord{}, fmt.Errorf("save cluster %q: %w", c.Name, err)
	}
	values := []any{c.Owner, document.Project, document.Environment, string(c.Phase), c.Waiting, string(labels), c.Applied.Run, c.Version, doc, c.Name}
	query := `UPDATE clusters SET owner = ?, project = ?, environment = ?, phase = ?, waiting = ?, labels = ?, applied_run = ?,
		version = ?, doc = ? WHERE name = ? AND version = ?`
	if read == 0 {
		query = `INSERT INTO clusters (owner, project, environment, phase, waiting, labels, applied_run, version, doc, name)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING`
	} else {
		values = append(values, read)
	}
	if err := s.save(ctx, query, values, nil); err != nil {
		return holdfast.ClusterRecord{}, fmt.Errorf("save cluster %q at version %d: %w", c.Name, read, err)
	}
	return c, nil
}

// describing is the document that says what a cluster is: the desired one, or
// the last applied one of a cluster whose desired one is gone or at fault.
func describing(c holdfast.ClusterRecord) holdfast.Cluster {
	if c.Desired.Document.Name == "" && c.Applied.Document.Name != "" {
		return c.Applied.Document
	}
	return c.Desired.Document
}

// save runs a conditional write of one record and what belongs to it; it is an
// ErrConflict if the condition does not hold.
func (s *Store) save(ctx context.Context, query string, args []any, more func(ctx context.Context, q querier) error) error {
	return s.db.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, query, args...)
		if err != nil {
			return err
		}
		if n == 0 {
			return holdfast.ErrConflict
		}
		if more == nil {
			return nil
		}
		return more(ctx, q)
	})
}

// Source returns what is remembered of a repository.
func (s *Store) Source(ctx context.Context, repo string) (holdfast.Source, error) {
	source := holdfast.Source{Repo: repo}
	var seen, polled int64
	err := s.db.reader().row(ctx, `SELECT head, comments_seen, polled_at, last_error FROM sources WHERE repo = ?`, repo).
		Scan(&source.Head, &seen, &polled, &source.LastError)
	if err := notFound(err, "repository", repo); err != nil {
		return holdfast.Source{}, err
	}
	source.CommentsSeen, source.PolledAt = fromNanos(seen), fromNanos(polled)
	return source, nil
}

// SaveSource creates or replaces what is remembered of a repository.
func (s *Store) SaveSource(ctx context.Context, source holdfast.Source) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO sources (repo, head, comments_seen, polled_at, last_error) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (repo) DO UPDATE SET head = excluded.head, comments_seen = excluded.comments_seen,
				polled_at = excluded.polled_at, last_error = excluded.last_error`,
			source.Repo, string(source.Head), nanos(source.CommentsSeen), nanos(source.PolledAt), source.LastError)
		return err
	})
	if err != nil {
		return fmt.Errorf("save repository %q: %w", source.Repo, err)
	}
	return nil
}

// PinTag records that a repository's tag is rev and returns rev; if the tag was
// recorded before, it returns what was recorded.
func (s *Store) PinTag(ctx context.Context, repo, tag string, rev holdfast.Revision) (holdfast.Revision, error) {
	const recorded = `SELECT revision FROM tags WHERE repo = ? AND tag = ?`
	var pinned holdfast.Revision
	if err := s.db.reader().row(ctx, recorded, repo, tag).Scan(&pinned); err == nil {
		return pinned, nil
	}
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := q.exec(ctx, `INSERT INTO tags (repo, tag, revision) VALUES (?, ?, ?) ON CONFLICT (repo, tag) DO NOTHING`,
			repo, tag, string(rev)); err != nil {
			return err
		}
		return q.row(ctx, recorded, repo, tag).Scan(&pinned)
	})
	if err != nil {
		return "", fmt.Errorf("pin tag %q of %q: %w", tag, repo, err)
	}
	return pinned, nil
}

// Lease makes owner the holder of name for ttl from now, if nobody else holds
// it, and reports whether owner does. A ttl of zero gives it back.
func (s *Store) Lease(ctx context.Context, name, owner string, now time.Time, ttl time.Duration) (bool, error) {
	var held int64
	err := s.db.writeRelaxed(ctx, func(ctx context.Context, q querier) (err error) {
		held, err = q.exec(ctx, `INSERT INTO leases (name, owner, expires_at) VALUES (?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
			WHERE leases.owner = excluded.owner OR leases.expires_at <= ?`,
			name, owner, nanos(now.Add(ttl)), nanos(now))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("lease %q to %q: %w", name, owner, err)
	}
	return held > 0, nil
}

// Audit appends to the audit trail. A zero At becomes now.
func (s *Store) Audit(ctx context.Context, entry holdfast.AuditEntry) error {
	if entry.At.IsZero() {
		entry.At = s.now()
	}
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO audit (recorded_at, actor, action, object, detail) VALUES (?, ?, ?, ?, ?)`,
			nanos(entry.At), entry.Actor, entry.Action, entry.Object, entry.Detail)
		return err
	})
	if err != nil {
		return fmt.Errorf("record %s of %q: %w", entry.Action, entry.Object, err)
	}
	return nil
}

// AuditTrail returns what was done to object, newest first; an empty object
// selects all, a limit of zero means 100.
func (s *Store) AuditTrail(ctx context.Context, object string, limit int) ([]holdfast.AuditEntry, error) {
	var c conditions
	if object != "" {
		c.add(`object = ?`, object)
	}
	var trail []holdfast.AuditEntry
	err := s.db.reader().each(ctx, func(row scanner) error {
		var entry holdfast.AuditEntry
		var at int64
		err := row.Scan(&at, &entry.Actor, &entry.Action, &entry.Object, &entry.Detail)
		entry.At = fromNanos(at)
		trail = append(trail, entry)
		return err
	}, `SELECT recorded_at, actor, action, object, detail FROM audit`+c.where()+` ORDER BY id DESC LIMIT ?`,
		append(c.args, limitOr100(limit))...)
	if err != nil {
		return nil, fmt.Errorf("read audit trail: %w", err)
	}
	return trail, nil
}
