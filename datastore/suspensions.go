package datastore

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Suspensions returns those of more than one cluster: first that of all
// clusters, then by project.
func (s *ClusterStore) Suspensions(ctx context.Context) ([]holdfast.Suspension, error) {
	var found []holdfast.Suspension
	err := s.db.reader().each(ctx, func(row scanner) error {
		var suspension holdfast.Suspension
		var project string
		var doc []byte
		if err := row.Scan(&project, &doc); err != nil {
			return err
		}
		err := s.keys.UnsealJSON("suspension", project, doc, &suspension)
		found = append(found, suspension)
		return err
	}, `SELECT project, doc FROM suspensions ORDER BY project`)
	if err != nil {
		return nil, fmt.Errorf("list suspensions: %w", err)
	}
	return found, nil
}

// Suspend stores a suspension, in place of one of the same project. A zero At becomes now.
func (s *ClusterStore) Suspend(ctx context.Context, suspension holdfast.Suspension) error {
	if suspension.At.IsZero() {
		suspension.At = s.now()
	}
	doc, err := s.keys.SealJSON("suspension", suspension.Project, suspension)
	if err != nil {
		return fmt.Errorf("suspend: %w", err)
	}
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO suspensions (project, doc) VALUES (?, ?)
			ON CONFLICT (project) DO UPDATE SET doc = excluded.doc`, suspension.Project, doc)
		return err
	})
	if err != nil {
		return fmt.Errorf("suspend project %q: %w", suspension.Project, err)
	}
	return nil
}

// Resume removes the suspension of that project (empty: of all clusters);
// ErrNotFound if there is none.
func (s *ClusterStore) Resume(ctx context.Context, project string) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, `DELETE FROM suspensions WHERE project = ?`, project)
		if err == nil && n == 0 {
			err = holdfast.ErrNotFound
		}
		if err == nil && project == "" {
			_, err = q.exec(ctx, `DELETE FROM counters WHERE name = 'restored'`)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("resume project %q: %w", project, err)
	}
	return nil
}
