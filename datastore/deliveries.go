package datastore

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// keptDeliveries is how many deliveries are kept.
const keptDeliveries = 5000

// AddDeliveries records webhooks that were taken in, and forgets those beyond the newest 5,000.
func (s *RepositoryStore) AddDeliveries(ctx context.Context, deliveries []holdfast.Delivery) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		for _, d := range deliveries {
			if _, err := q.exec(ctx, `INSERT INTO deliveries (received_at, delivery, event, repo, about, status, result, took) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
				nanos(d.At), d.ID, d.Event, d.Repo, d.About, d.Status, d.Result, int64(d.Took)); err != nil {
				return err
			}
		}
		_, err := q.exec(ctx, `DELETE FROM deliveries WHERE id <= (SELECT MAX(id) FROM deliveries) - (? + 0)`, keptDeliveries)
		return err
	})
	if err != nil {
		return fmt.Errorf("record deliveries: %w", err)
	}
	return nil
}

// Deliveries returns the webhooks that were taken in, newest first: what comes before the place
// that a former part gave, zero for none. It returns its own place, zero if there is nothing in it.
func (s *RepositoryStore) Deliveries(ctx context.Context, before int64, limit int) (found []holdfast.Delivery, place int64, err error) {
	var c conditions
	if before > 0 {
		c.Add(`id < ?`, before)
	}
	err = s.db.reader().each(ctx, func(row scanner) error {
		var d holdfast.Delivery
		var at, took int64
		err := row.Scan(&place, &at, &d.ID, &d.Event, &d.Repo, &d.About, &d.Status, &d.Result, &took)
		d.At, d.Took = fromNanos(at), time.Duration(took)
		found = append(found, d)
		return err
	}, `SELECT id, received_at, delivery, event, repo, about, status, result, took FROM deliveries`+c.Where()+` ORDER BY id DESC LIMIT ? + 0`,
		append(c.Args, limitOr100(limit))...)
	if err != nil {
		return nil, 0, fmt.Errorf("read deliveries: %w", err)
	}
	return found, place, nil
}
