package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/outgoing"
)

// NotificationStore is the outbox of notifications: those that are to be sent, and those
// that were.
type NotificationStore struct{ *records }

const (
	// maxNotifications is how many may wait for one channel.
	maxNotifications = 1000
	// seenAgain is the time after which it is noted again that something is still so.
	seenAgain = 24 * time.Hour
)

func ofChannel(name string) string { return "channel " + name }

// Notify stores notifications that are to be sent after a delay, and reports how many of
// them are new. One that is on record was sent, or will be; it stays there as long as it is noticed.
// Where too much waits for a channel, the oldest is given up.
func (s *NotificationStore) Notify(ctx context.Context, delay time.Duration, notifications ...outgoing.Notification) (fresh int, err error) {
	now := s.now()
	var unseen []outgoing.Notification
	for _, n := range notifications {
		var seen int64
		err := s.db.reader().row(ctx, `SELECT seen_at FROM notifications WHERE id = ?`, n.ID).Scan(&seen)
		switch {
		case err == nil && fromNanos(seen).Add(seenAgain).After(now): // what is noticed again and again costs no write
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return 0, fmt.Errorf("store notification %q: %w", n.ID, err)
		default:
			unseen = append(unseen, n)
		}
	}
	if len(unseen) == 0 {
		return 0, nil
	}
	slices.SortStableFunc(unseen, func(a, b outgoing.Notification) int { return strings.Compare(a.Channel, b.Channel) }) // as all take their locks
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		fresh = 0
		for _, n := range unseen {
			isNew, err := s.notify(ctx, q, now.Add(delay), n)
			if err != nil {
				return fmt.Errorf("store notification %q: %w", n.ID, err)
			}
			if isNew {
				fresh++
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return fresh, nil
}

func (s *NotificationStore) notify(ctx context.Context, q querier, due time.Time, n outgoing.Notification) (isNew bool, err error) {
	now := nanos(s.now())
	doc, err := s.keys.SealJSON("notification", n.ID, n)
	if err != nil {
		return false, err
	}
	if err := q.alone(ctx, ofChannel(n.Channel)); err != nil {
		return false, err
	}
	again, err := q.exec(ctx, `UPDATE notifications SET seen_at = ? WHERE id = ?`, now, n.ID)
	if err != nil || again > 0 {
		return false, err
	}
	var paused int64 // what waits after a failure makes what is new wait, too
	err = q.row(ctx, `SELECT COALESCE(MAX(not_before), 0) FROM notifications WHERE ended_at = 0 AND failures > 0 AND channel = ?`, n.Channel).Scan(&paused)
	if err != nil {
		return false, err
	}
	if _, err := q.exec(ctx, `INSERT INTO notifications (id, channel, created_at, seen_at, not_before, claimed_until, failures, last_error, ended_at, doc)
		VALUES (?, ?, ?, ?, ?, 0, 0, '', 0, ?)`, n.ID, n.Channel, now, now, max(nanos(due), paused), doc); err != nil {
		return false, err
	}
	_, err = q.exec(ctx, `UPDATE notifications SET ended_at = ?, last_error = 'too many wait for the channel' WHERE ended_at = 0 AND channel = ?
		AND id NOT IN (SELECT id FROM notifications WHERE ended_at = 0 AND channel = ? ORDER BY created_at DESC, id DESC LIMIT ? + 0)`,
		now, n.Channel, n.Channel, maxNotifications)
	return err == nil, err
}

// ClaimNotifications returns up to limit notifications of a channel that wait and are due,
// the oldest first, and hides them from other claims for ttl.
func (s *NotificationStore) ClaimNotifications(ctx context.Context, channel string, ttl time.Duration, limit int) ([]outgoing.Notification, error) {
	now := s.now()
	const due = ` FROM notifications WHERE ended_at = 0 AND channel = ? AND (not_before <= ? OR not_before > ?) AND (claimed_until <= ? OR claimed_until > ?)`
	args := []any{channel, nanos(now), nanos(now.Add(longestPause)), nanos(now), nanos(now.Add(ttl + maxSkew))}
	var waiting int
	if err := s.db.reader().row(ctx, `SELECT COUNT(*) FROM (SELECT 1`+due+` LIMIT 1) AS due`, args...).Scan(&waiting); err != nil {
		return nil, fmt.Errorf("claim notifications: %w", err)
	}
	if waiting == 0 {
		return nil, nil // most looks find nothing: they cost no write
	}
	var claimed []outgoing.Notification
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		claimed = nil
		if err := q.alone(ctx, ofChannel(channel)); err != nil {
			return err
		}
		var ids []string
		err := q.each(ctx, func(row scanner) error {
			var id string
			var doc []byte
			if err := row.Scan(&id, &doc); err != nil {
				return err
			}
			ids = append(ids, id)
			n := outgoing.Notification{}
			if err := s.keys.UnsealJSON("notification", id, doc, &n); err != nil {
				s.log.Warn("a notification cannot be read, and is given up", "notification", id, "err", err)
				n = outgoing.Notification{ID: id}
			}
			claimed = append(claimed, n)
			return nil
		}, `SELECT id, doc`+due+` ORDER BY created_at, id LIMIT ? + 0`, append(args, limit)...)
		if err != nil {
			return err
		}
		for i, id := range ids {
			ended := int64(0)
			if claimed[i].Channel == "" {
				ended = nanos(now)
			}
			if _, err := q.exec(ctx, `UPDATE notifications SET claimed_until = ?, ended_at = ? WHERE id = ?`, nanos(now.Add(ttl)), ended, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim notifications: %w", err)
	}
	readable := claimed[:0]
	for _, n := range claimed {
		if n.Channel != "" {
			readable = append(readable, n)
		}
	}
	return readable, nil
}

// NotificationsSent records that notifications were sent.
func (s *NotificationStore) NotificationsSent(ctx context.Context, ids ...string) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		for _, id := range ids {
			if _, err := q.exec(ctx, `UPDATE notifications SET ended_at = ?, claimed_until = 0, last_error = '' WHERE id = ?`, nanos(s.now()), id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record notifications: %w", err)
	}
	return nil
}

// NotificationsFailed records why nothing could be sent to a channel, and ends the claim of
// those with the ids. It defers everything that waits for the channel until notBefore, gives up
// what has waited for longer than patience, and returns how many of each there are. What
// another replica has claimed may be on its way, and stays claimed.
func (s *NotificationStore) NotificationsFailed(
	ctx context.Context, channel, cause string, notBefore time.Time, patience time.Duration, ids ...string,
) (waiting, givenUp int, err error) {
	now := s.now()
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofChannel(channel)); err != nil {
			return err
		}
		for _, id := range ids {
			if _, err := q.exec(ctx, `UPDATE notifications SET claimed_until = 0 WHERE id = ?`, id); err != nil {
				return err
			}
		}
		over, err := q.exec(ctx, `UPDATE notifications SET ended_at = ?, claimed_until = 0, failures = failures + 1, last_error = ?
			WHERE ended_at = 0 AND channel = ? AND claimed_until <= ? AND created_at <= ?`, nanos(now), cause, channel, nanos(now), nanos(now.Add(-patience)))
		if err != nil {
			return err
		}
		left, err := q.exec(ctx, `UPDATE notifications SET claimed_until = 0, failures = failures + 1, last_error = ?, not_before = ?
			WHERE ended_at = 0 AND channel = ? AND claimed_until <= ?`, cause, nanos(notBefore), channel, nanos(now))
		waiting, givenUp = int(left), int(over)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("record failed notifications: %w", err)
	}
	return waiting, givenUp, nil
}

// ForgetNotifications removes what was sent and was not noticed since a time.
func (s *NotificationStore) ForgetNotifications(ctx context.Context, before time.Time) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `DELETE FROM notifications WHERE ended_at > 0 AND seen_at < ?`, nanos(before))
		return err
	})
	if err != nil {
		return fmt.Errorf("forget notifications: %w", err)
	}
	return nil
}
