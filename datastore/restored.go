package datastore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// holdRestored suspends everything at the first start on records that were put back from a
// backup, which have a counter that says so. What was merged and applied after the backup looks
// as if it were to be applied still, to states that know nothing of it: a person has to look first.
func (s *Store) holdRestored(ctx context.Context) error {
	const mark = `FROM counters WHERE name = 'restored'`
	var marks int
	if err := s.db.reader().row(ctx, `SELECT COUNT(*) `+mark).Scan(&marks); err != nil || marks == 0 {
		return err
	}
	const by, why = "holdfast", "the records were restored from a backup: what was applied after it is not in them (docs/backup.md)"
	err := errors.Join(
		s.Suspend(ctx, holdfast.Suspension{By: by, Reason: why}),
		s.Audit(ctx, holdfast.AuditEntry{Actor: by, Action: "fleet.suspend", Object: "fleet", Detail: why}),
	)
	if err == nil { // not before: a start that was cut short does it again
		err = s.db.write(ctx, func(ctx context.Context, q querier) error {
			_, err := q.exec(ctx, `DELETE `+mark)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("suspend what was restored: %w", err)
	}
	s.log.WarnContext(ctx, "everything is suspended until somebody has looked, and runs `holdfast resume --all`", "err", why)
	return nil
}
