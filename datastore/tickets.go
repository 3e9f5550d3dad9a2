package datastore

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// PutTicket records that a ticket was made for a running attempt. Only a hash of the ticket
// is kept. A second one for the attempt changes nothing. ErrFenced if the attempt is over.
func (s *RunStore) PutTicket(ctx context.Context, ref holdfast.AttemptRef, runner, ticket string, now time.Time) error {
	hash := sha256.Sum256([]byte(ticket))
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := running(ctx, q, ref, q.forUpdate); err != nil {
			return err
		}
		_, err := q.exec(ctx, `INSERT INTO tickets (run, attempt, runner, hash, process, host, created_at, exchanged_at)
			VALUES (?, ?, ?, ?, ?, '', ?, 0) ON CONFLICT (run, attempt) DO NOTHING`,
			ref.Run, ref.Attempt, runner, hash[:], []byte{}, nanos(now))
		return err
	})
	if err != nil {
		return fmt.Errorf("record ticket of run %q attempt %d: %w", ref.Run, ref.Attempt, err)
	}
	return nil
}

// ExchangeTicket records that a process shows the ticket of an attempt, and returns the run.
// ErrUnauthorized if it is not that ticket, ErrFenced if the attempt is over, ErrConflict if
// another process has shown it before.
func (s *RunStore) ExchangeTicket(
	ctx context.Context, ref holdfast.AttemptRef, ticket, process, host string, now time.Time,
) (run holdfast.Run, err error) {
	shown, by := sha256.Sum256([]byte(ticket)), sha256.Sum256([]byte(process))
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		if run, err = s.readRun(ctx, q, ref.Run, q.forUpdate); errors.Is(err, holdfast.ErrNotFound) {
			return holdfast.ErrUnauthorized
		} else if err != nil {
			return err
		}
		var hash, holder []byte
		var exchanged int64
		err := q.row(ctx, `SELECT hash, process, exchanged_at FROM tickets WHERE run = ? AND attempt = ?`+q.forUpdate, ref.Run, ref.Attempt).
			Scan(&hash, &holder, &exchanged)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return holdfast.ErrUnauthorized
		case err != nil:
			return err
		case subtle.ConstantTimeCompare(hash, shown[:]) != 1:
			return holdfast.ErrUnauthorized
		case run.Status != holdfast.RunRunning || run.Ref() != ref:
			return holdfast.ErrFenced
		case exchanged != 0 && subtle.ConstantTimeCompare(holder, by[:]) != 1:
			return holdfast.ErrConflict
		case exchanged != 0:
			return nil
		}
		_, err = q.exec(ctx, `UPDATE tickets SET process = ?, host = ?, exchanged_at = ? WHERE run = ? AND attempt = ?`,
			by[:], host, nanos(now), ref.Run, ref.Attempt)
		return err
	})
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("exchange ticket of run %q attempt %d: %w", ref.Run, ref.Attempt, err)
	}
	return run, nil
}

// LaunchedAttempts returns the running attempts that a runner launches, with what is known of
// their tickets: of one that has none yet, the zero time as CreatedAt. Agents whose token has
// the runner's name have ids that begin as well: theirs are not among them.
func (s *RunStore) LaunchedAttempts(ctx context.Context, runner string) ([]protocol.Ticket, error) {
	var list []protocol.Ticket
	err := s.db.reader().each(ctx, func(row scanner) error {
		t := protocol.Ticket{Runner: runner}
		var created, exchanged int64
		if err := row.Scan(&t.Run, &t.Attempt, &t.Fence, &t.Agent, &t.Host, &created, &exchanged); err != nil {
			return err
		}
		t.CreatedAt, t.ExchangedAt = fromNanos(created), fromNanos(exchanged)
		list = append(list, t)
		return nil
	}, `SELECT r.id, r.attempt, r.fence, a.agent, COALESCE(t.host, ''), COALESCE(t.created_at, 0), COALESCE(t.exchanged_at, 0)
		FROM runs AS r JOIN attempts AS a ON a.run = r.id AND a.attempt = r.attempt
		LEFT JOIN tickets AS t ON t.run = r.id AND t.attempt = r.attempt
		WHERE r.status = 'running' AND a.agent = ? || r.id || '-' || CAST(a.attempt AS TEXT) ORDER BY r.id`, protocol.AgentIDOf(runner)+"/")
	if err != nil {
		return nil, fmt.Errorf("list attempts of runner %q: %w", runner, err)
	}
	return list, nil
}

// EndUnexchanged is EndAttempt for an attempt of which nobody has shown the ticket: nobody
// can any longer, and nothing has begun. ErrLocked, and nothing is stored, if somebody has.
func (s *RunStore) EndUnexchanged(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource) (holdfast.Run, error) {
	return s.endAttempt(ctx, ref, run, resources, func(ctx context.Context, q querier, _ holdfast.Run) error {
		var exchanged int64
		err := q.row(ctx, `SELECT exchanged_at FROM tickets WHERE run = ? AND attempt = ?`+q.forUpdate, ref.Run, ref.Attempt).Scan(&exchanged)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err == nil && exchanged != 0:
			return holdfast.ErrLocked
		}
		return err
	})
}
