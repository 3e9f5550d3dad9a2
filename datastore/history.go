package datastore

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// keepTransitions is how many transitions are kept of each cluster.
const keepTransitions = 100

// addHistory adds what became of cluster, and forgets what is beyond the newest.
func (s *ClusterStore) addHistory(ctx context.Context, q querier, cluster string, history []holdfast.Transition) error {
	changed := map[string]bool{}
	for _, t := range history {
		if t.Cluster == "" {
			t.Cluster = cluster
		}
		if t.At.IsZero() {
			t.At = s.now()
		}
		if _, err := q.exec(ctx, `INSERT INTO transitions (cluster, at, what, was, becomes, reason, run) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			t.Cluster, nanos(t.At), t.What, t.From, t.To, t.Reason, t.Run); err != nil {
			return fmt.Errorf("add to the history: %w", err)
		}
		changed[t.Cluster] = true
	}
	for name := range changed {
		if err := trimHistory(ctx, q, name); err != nil {
			return err
		}
	}
	return nil
}

func trimHistory(ctx context.Context, q querier, cluster string) error {
	_, err := q.exec(ctx, `DELETE FROM transitions WHERE id IN (SELECT id FROM transitions WHERE cluster = ?
		ORDER BY at DESC, id DESC LIMIT 1000 OFFSET ? + 0)`, cluster, keepTransitions)
	if err != nil {
		return fmt.Errorf("trim the history: %w", err)
	}
	return nil
}

// Transitions returns a cluster's history, newest first; a limit of zero means
// 100. The newest 100 are kept.
func (s *ClusterStore) Transitions(ctx context.Context, cluster string, limit int) ([]holdfast.Transition, error) {
	var found []holdfast.Transition
	err := s.db.reader().each(ctx, func(row scanner) error {
		t := holdfast.Transition{Cluster: cluster}
		var at int64
		err := row.Scan(&at, &t.What, &t.From, &t.To, &t.Reason, &t.Run)
		t.At = fromNanos(at)
		found = append(found, t)
		return err
	}, `SELECT at, what, was, becomes, reason, run FROM transitions WHERE cluster = ? ORDER BY at DESC, id DESC LIMIT ? + 0`,
		cluster, limitOr100(limit))
	if err != nil {
		return nil, fmt.Errorf("read history of %q: %w", cluster, err)
	}
	return found, nil
}
