package datastore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// longestPostPause is how long posts are put off at most, and more: code hosts ask for an
// hour.
const longestPostPause = 2 * time.Hour

// endPauses makes what was put off by a clock that was ahead of ours due now: its last sign of
// life is in the future, or it is put off for longer than the longest pause. A store that is
// open does nothing of this, as what fails would then be tried without a pause until that
// time: see ClockSetBack.
func (s *Store) endPauses(ctx context.Context) {
	now := s.now()
	ahead := nanos(now)
	if s.db.server != nil { // other servers know the database's time as well as we do
		ahead = nanos(now.Add(time.Minute))
	}
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `UPDATE posts SET not_before = ? WHERE not_before > ? AND (wanted_at > ? OR not_before > ?)`,
			nanos(now), nanos(now), ahead, nanos(now.Add(longestPostPause)))
		return err
	})
	again := s.retryAt(ctx, func(time.Time) time.Time { return now }, ` WHERE claim_at > ? AND heartbeat_at > ?`, nanos(now), ahead)
	if err = errors.Join(err, again); err != nil { // it is tried when it was to be
		s.log.WarnContext(ctx, "work that a wrong clock had postponed is not done early", "err", err)
	}
}

// ClockSetBack makes what waits for a time wait no longer than it should, after our clock
// was set back by that much. If that is the database's, one of its servers does.
func (s *Store) ClockSetBack(ctx context.Context, by time.Duration) error {
	now := s.now()
	if s.db.server != nil {
		if ours, err := s.Lease(ctx, "clock set back", s.Identity(), now, time.Minute); err != nil || !ours {
			return err
		}
	}
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := q.exec(ctx, `UPDATE posts SET not_before = not_before - ? WHERE not_before > ?`, int64(by), nanos(now)); err != nil {
			return err
		}
		_, err := q.exec(ctx, `UPDATE lane_turns SET served_at = served_at - ?`, int64(by))
		return err
	})
	earlier := func(at time.Time) time.Time { return at.Add(-by) }
	if err = errors.Join(err, s.retryAt(ctx, earlier, ` WHERE claim_at > ?`, nanos(now))); err != nil {
		return fmt.Errorf("wait as long as before the clock was set back: %w", err)
	}
	return nil
}

// retryAt gives those of some runs that are tried again later another time for that.
func (s *Store) retryAt(ctx context.Context, when func(time.Time) time.Time, where string, args ...any) error {
	runs, _, err := s.queryRuns(ctx, false, where, args...)
	for _, run := range runs {
		if run.Status != holdfast.RunRetrying {
			continue
		}
		run.NotBefore = when(run.NotBefore)
		if _, updateErr := s.UpdateRun(ctx, run); !errors.Is(updateErr, holdfast.ErrConflict) { // then it has another time
			err = errors.Join(err, updateErr)
		}
	}
	return err
}
