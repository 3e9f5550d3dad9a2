package datastore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

func readLock(ctx context.Context, q querier, location string) (holdfast.StateLock, error) {
	var l holdfast.StateLock
	var created int64
	err := q.row(ctx, `SELECT lock_id, operation, who, engine, created_at, info, run, attempt, fence FROM state_locks WHERE location = ?`+q.forUpdate, location).
		Scan(&l.ID, &l.Operation, &l.Who, &l.Version, &created, &l.Info, &l.By.Run, &l.By.Attempt, &l.By.Fence)
	l.Created = fromNanos(created)
	return l, notFound(err, "state lock", location)
}

// StateLock returns the engine's lock on a state; ErrNotFound if it is free.
func (s *Store) StateLock(ctx context.Context, location string) (holdfast.StateLock, error) {
	q := s.db.reader()
	q.forUpdate = ""
	return readLock(ctx, q, location)
}

// LockState gives the state's lock to the attempt lock.By; the same lock again
// is no error. A *holdfast.StateLockedError says who has it, ErrFenced that the
// attempt is over, ErrForbidden that the state is another run's.
func (s *Store) LockState(ctx context.Context, location string, lock holdfast.StateLock) error {
	if lock.ID == "" {
		return fmt.Errorf("lock state %q: the lock has no id", location)
	}
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		own, err := running(ctx, q, lock.By, q.forUpdate)
		if err != nil {
			return err
		}
		if own != location {
			return fmt.Errorf("it is not the state of run %q: %w", lock.By.Run, holdfast.ErrForbidden)
		}
		held, err := readLock(ctx, q, location)
		switch {
		case err == nil && held.ID == lock.ID && held.By == lock.By:
			return nil
		case err == nil:
			return &holdfast.StateLockedError{Lock: held}
		case !errors.Is(err, holdfast.ErrNotFound):
			return err
		}
		n, err := q.exec(ctx, `INSERT INTO state_locks (location, lock_id, operation, who, engine, created_at, info, run, attempt, fence)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (location) DO NOTHING`,
			location, lock.ID, lock.Operation, lock.Who, lock.Version, nanos(lock.Created), lock.Info,
			lock.By.Run, lock.By.Attempt, lock.By.Fence)
		if err == nil && n == 0 {
			return holdfast.ErrConflict
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("lock state %q: %w", location, err)
	}
	return nil
}

// UnlockState releases the lock with that id; an empty id releases whatever
// by's attempt holds. A state that nobody holds is no error; a
// *holdfast.StateLockedError if it is another's.
func (s *Store) UnlockState(ctx context.Context, location, id string, by holdfast.AttemptRef) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		held, err := readLock(ctx, q, location)
		switch {
		case errors.Is(err, holdfast.ErrNotFound):
			return nil
		case err != nil:
			return err
		case id == "" && held.By != by, id != "" && held.ID != id:
			return &holdfast.StateLockedError{Lock: held}
		}
		return dropLock(ctx, q, location)
	})
	if err != nil {
		return fmt.Errorf("unlock state %q: %w", location, err)
	}
	return nil
}

func dropLock(ctx context.Context, q querier, location string) error {
	_, err := q.exec(ctx, `DELETE FROM state_locks WHERE location = ?`, location)
	return err
}

// ReleaseStateLock removes the state lock that ref's attempt left behind in
// Holdfast's own backend and reports whether the location is free now.
func (s *Store) ReleaseStateLock(ctx context.Context, location string, ref holdfast.AttemptRef) (free bool, err error) {
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		held, err := readLock(ctx, q, location)
		switch {
		case errors.Is(err, holdfast.ErrNotFound):
			free = true
			return nil
		case err != nil:
			return err
		case held.By.Run != ref.Run || held.By.Attempt != ref.Attempt:
			return nil
		}
		free = true
		return dropLock(ctx, q, location)
	})
	if err != nil {
		return false, fmt.Errorf("release lock of state %q: %w", location, err)
	}
	return free, nil
}
