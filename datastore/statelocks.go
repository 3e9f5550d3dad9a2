package datastore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/statelock"
)

func readLock(ctx context.Context, q querier, location string) (statelock.StateLock, error) {
	var l statelock.StateLock
	var created int64
	err := q.row(ctx, `SELECT lock_id, operation, who, engine, created_at, info, run, attempt, fence FROM state_locks WHERE location = ?`+q.forUpdate, location).
		Scan(&l.ID, &l.Operation, &l.Who, &l.Version, &created, &l.Info, &l.By.Run, &l.By.Attempt, &l.By.Fence)
	l.Created = fromNanos(created)
	return l, notFound(err, "state lock", location)
}

// StateLock returns the engine's lock on a state; ErrNotFound if it is free.
func (s *StateStore) StateLock(ctx context.Context, location string) (statelock.StateLock, error) {
	return readLock(ctx, s.db.reader(), location)
}

// LockState gives the state's lock to the attempt lock.By; the same lock again
// is not an error, and a lock whose attempt is over is free. A
// *statelock.StateLockedError says who has it, ErrFenced that the attempt is
// over, ErrForbidden that the state is another run's. The lock of a run that does not write
// may be lost with the machine's power: the claim keeps others out, and nobody misses it.
func (s *StateStore) LockState(ctx context.Context, location string, lock statelock.StateLock) error {
	if lock.ID == "" {
		return fmt.Errorf("lock state %q: the lock has no id", location)
	}
	err := s.commitFor(ctx, lock.By.Run)(ctx, func(ctx context.Context, q querier) error {
		own, err := running(ctx, q, lock.By, q.forUpdate)
		if err != nil {
			return err
		}
		if own != location {
			return fmt.Errorf("it is not the state of run %q: %w", lock.By.Run, holdfast.ErrForbidden)
		}
		if err := dropDeadLocks(ctx, q, location); err != nil {
			return err
		}
		held, err := readLock(ctx, q, location)
		switch {
		case err == nil && held.ID == lock.ID && held.By == lock.By:
			return nil
		case err == nil:
			return &statelock.StateLockedError{Lock: held}
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

// UnlockState releases the lock with that id, if it is that of by's attempt. A
// state that nobody holds is not an error; a *statelock.StateLockedError if the lock
// has another id or is another's. A lock that is there again after a power cut keeps out no
// other run, as the claim does that already, and ends with its attempt: what the attempt still
// begins may be refused by it, which is a transient failure.
func (s *StateStore) UnlockState(ctx context.Context, location, id string, by holdfast.AttemptRef) error {
	err := s.db.writeRelaxed(ctx, func(ctx context.Context, q querier) error {
		held, err := readLock(ctx, q, location)
		switch {
		case errors.Is(err, holdfast.ErrNotFound):
			return nil
		case err != nil:
			return err
		case held.ID != id || held.By != by:
			return &statelock.StateLockedError{Lock: held}
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

// deadLocks are the locks whose attempts are over. They exclude nobody.
const deadLocks = ` FROM state_locks WHERE NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.id = state_locks.run
	AND r.attempt = state_locks.attempt AND r.fence = state_locks.fence AND r.status = 'running')`

// dropDeadLocks releases a location's lock if its attempt is over.
func dropDeadLocks(ctx context.Context, q querier, location string) error {
	if _, err := q.exec(ctx, `DELETE`+deadLocks+` AND location = ?`, location); err != nil {
		return fmt.Errorf("release the lock of state %q: %w", location, err)
	}
	return nil
}

// releaseDeadLocks does so for all locations. Locks end with their attempts; this
// is for those that an older version left behind.
func (s *StateStore) releaseDeadLocks(ctx context.Context) error {
	var dead int64
	err := s.db.write(ctx, func(ctx context.Context, q querier) (err error) {
		dead, err = q.exec(ctx, `DELETE`+deadLocks)
		return err
	})
	if err != nil {
		return fmt.Errorf("release state locks of attempts that are over: %w", err)
	}
	if dead > 0 {
		s.log.WarnContext(ctx, "released state locks of attempts that are over", "locks", dead)
	}
	return nil
}

// ReleaseStateLock removes a lock of Holdfast's own backend whose attempt is
// over. It reports whether there was one.
func (s *StateStore) ReleaseStateLock(ctx context.Context, location string) (released bool, err error) {
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, `DELETE`+deadLocks+` AND location = ?`, location)
		released = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("release lock of state %q: %w", location, err)
	}
	return released, nil
}
