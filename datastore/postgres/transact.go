package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-dev/holdfast"
)

const (
	// longest is how long a transaction may take: a connection that died silently blocks
	// nobody for longer.
	longest = 3 * time.Minute
	// patience is how long a transaction is tried again while the database is
	// unavailable: a restart, or a failover.
	patience = 15 * time.Second
	// conflicts is how often it is tried again because of another one.
	conflicts = 30
)

// Write runs do in a transaction and commits it if do returns nil. Once begun it is not
// canceled: nobody could tell what was written. It is tried again, from its beginning and on
// another connection, if another transaction was in its way or the database went away, as
// long as COMMIT was not sent: do must be able to run more than once. If it is not known
// whether COMMIT took effect, the error says so.
func (p *Pools) Write(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	began := time.Now()
	for try := 1; ; try++ {
		err := p.write(ctx, do)
		var pause time.Duration
		var rerun *againError
		switch {
		case !errors.As(err, &rerun):
			return err
		case rerun.gone:
			if p.Renew(); time.Since(began) > patience {
				return rerun.error
			}
			pause = min(time.Duration(try)*50*time.Millisecond, time.Second)
		case try > conflicts:
			return rerun.error
		default:
			pause = rand.N(time.Duration(min(try, 10)) * 5 * time.Millisecond) //nolint:gosec // spreads, and hides nothing
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), rerun.error)
		}
	}
}

// againError is of a transaction that certainly had no effect.
type againError struct {
	error
	gone bool // the connection was the cause
}

func (e *againError) Unwrap() error { return e.error }

func (p *Pools) write(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	conn, err := p.Writers.Conn(ctx)
	if err != nil {
		if err = fmt.Errorf("connect: %w", err); gone(err) && ctx.Err() == nil {
			return &againError{err, true}
		}
		return err
	}
	defer func() { _ = conn.Close() }()
	if p.member != nil {
		if err := p.member.check(ctx); gone(err) {
			return &againError{err, true}
		} else if err != nil {
			return err
		}
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer stop()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		if err = fmt.Errorf("begin: %w", err); gone(err) {
			return &againError{err, true}
		}
		return err
	}
	if err := do(ctx, tx); err != nil {
		broken := closed(conn)
		_ = tx.Rollback()
		switch {
		case conflict(err):
			return &againError{err, false}
		case broken && ctx.Err() == nil, gone(err) && ctx.Err() == nil:
			return &againError{err, true}
		}
		return err
	}
	return committed(tx.Commit())
}

// closed reports whether a connection has ended. The error of a query may say less.
func closed(conn *sql.Conn) bool {
	end := true
	_ = conn.Raw(func(c any) error {
		end = c.(*stdlib.Conn).Conn().IsClosed()
		return nil
	})
	return end
}

// committed is what the end of COMMIT means. Only the server's own word says that it had no
// effect, and no word of a server that is about to end.
func committed(err error) error {
	var failure *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case conflict(err):
		return &againError{fmt.Errorf("commit: %w", err), false}
	case errors.As(err, &failure) && !away(failure) && failure.Code != codeUnknownEnd:
		return fmt.Errorf("commit: %w", err)
	default:
		return fmt.Errorf("commit: the connection ended, and it is not known whether this was stored: %w: %w", holdfast.ErrUnavailable, err)
	}
}

// Read runs do on one snapshot.
func (p *Pools) Read(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	tx, err := p.Readers.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	return do(ctx, tx)
}
