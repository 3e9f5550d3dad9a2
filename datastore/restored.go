package datastore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// The counter "restored" of records that were put back from a backup: by what did that, and once
// everything is suspended. It goes when everything is resumed.
const restoredNow, restoredHeld = 1, 2

// restored is that counter; zero: nothing was put back, or somebody has looked at it.
func (s *records) restored(ctx context.Context) (mark int, err error) {
	err = s.db.reader().row(ctx, `SELECT COALESCE(MAX(value), 0) FROM counters WHERE name = 'restored'`).Scan(&mark)
	return mark, err
}

// holdRestored suspends everything at the first start on records that were put back from a
// backup. What was merged and applied after the backup looks
// as if it were to be applied still, to states that know nothing of it: a person has to look first.
func (s *Store) holdRestored(ctx context.Context) error {
	if mark, err := s.restored(ctx); err != nil || mark != restoredNow {
		return err
	}
	const by, why = "holdfast", "the records were restored from a backup: what was applied after it is not in them (docs/backup.md)"
	err := errors.Join(
		s.Suspend(ctx, holdfast.Suspension{By: by, Reason: why}),
		s.Audit(ctx, holdfast.AuditEntry{Actor: by, Action: "fleet.suspend", Object: "fleet", Detail: why}),
	)
	if err == nil { // not before: a start that was cut short does it again
		err = s.db.write(ctx, func(ctx context.Context, q querier) error {
			_, err := q.exec(ctx, `UPDATE counters SET value = ? WHERE name = 'restored'`, restoredHeld)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("suspend what was restored: %w", err)
	}
	s.log.WarnContext(ctx, "everything is suspended until somebody has looked, and runs `holdfast resume --all`", "err", why)
	return nil
}
