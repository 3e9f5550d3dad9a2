package datastore

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// longestPostPause is for how long posts are put off at most, and more: code hosts ask for an
// hour.
const longestPostPause = 2 * time.Hour

// endPauses has what was put off by a clock that was ahead of ours tried now: its last sign of
// life is of a time that has not come, or it is put off for longer than anything is. A store that is open does nothing of this, as what
// fails would then be tried without a pause until that time.
func (s *Store) endPauses(ctx context.Context) {
	now := s.now()
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `UPDATE posts SET not_before = ? WHERE not_before > ? AND (wanted_at > ? OR not_before > ?)`,
			nanos(now), nanos(now), nanos(now), nanos(now.Add(longestPostPause)))
		return err
	})
	runs, readErr := s.queryRuns(ctx, s.db.reader(), ` WHERE claim_at > ? AND heartbeat_at > ?`, nanos(now), nanos(now))
	for _, run := range runs {
		if run.Status == holdfast.RunRetrying {
			run.NotBefore = now
			_, updateErr := s.UpdateRun(ctx, run)
			err = errors.Join(err, updateErr)
		}
	}
	if err = errors.Join(err, readErr); err != nil { // it is tried when it was to be
		s.log.WarnContext(ctx, "what a wrong clock had put off is not tried before its time", "err", err)
	}
}
