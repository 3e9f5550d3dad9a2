package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/statelock"
)

// ClaimRun makes a queued run (or a retrying one whose time has come) running for agent: next
// attempt, next fence of the fleet, a row in the attempts. It records what the world was then: the
// cluster's last applied run and the serial of its state. It is an ErrConflict if the run is no
// longer claimable, its state location has a running run, or limit runs are running already. A
// limit of zero means none. While there is a state that could not be saved, only a run that
// resolves it is claimable at its location. A state lock of an attempt that has ended is released.
func (s *RunStore) ClaimRun(ctx context.Context, id string, agent protocol.AgentRef, now time.Time, limit int) (holdfast.Run, error) {
	run, err := s.claimRun(ctx, id, agent, now, claimLimit{most: limit})
	if errors.Is(err, errCrowded) {
		run, err = s.claimRun(ctx, id, agent, now, claimLimit{most: limit, alone: true})
	}
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("claim run %q: %w", id, err)
	}
	s.wakers.wake(run.ID)
	return run, nil
}

func (s *RunStore) claimRun(ctx context.Context, id string, agent protocol.AgentRef, now time.Time, limit claimLimit) (run holdfast.Run, err error) {
	err = s.db.write(ctx, func(ctx context.Context, q querier) (err error) {
		if run, err = s.readRun(ctx, q, id, q.forUpdate); err != nil {
			return err
		}
		if err := q.alone(ctx, ofState(run.StateKey()), ofCluster(run.Cluster)); err != nil {
			return err
		}
		if err := limit.hold(ctx, q); err != nil {
			return err
		}
		if agent.Runner != "" && agent.Runner != run.RunnerName() {
			return fmt.Errorf("it is of runner %s by now: %w", run.RunnerName(), holdfast.ErrConflict)
		}
		if err := checkClaim(ctx, q, run, now, &limit); err != nil {
			return err
		}
		// Only now: at one location fences grow.
		var fence int64
		if err := q.row(ctx, q.nextFence).Scan(&fence); err != nil {
			return fmt.Errorf("next fence: %w", err)
		}
		lane := laneOf(run) // a retry has another one than the first attempt
		run.Status, run.Reason, run.Detail, run.Step = holdfast.RunRunning, "", "", ""
		run.Attempt++
		run.Fence, run.HeartbeatAt = fence, now.UTC()
		run.Agent, run.AgentProcess, run.AgentFolder = agent.ID, agent.Process, agent.Folder
		run.NotBefore, run.FinishedAt = time.Time{}, time.Time{}
		if run.StartedAt.IsZero() {
			run.StartedAt = now.UTC()
		}
		if run.AppliedRun, run.StateSerial, err = world(ctx, q, run); err != nil {
			return err
		}
		run.Version++
		if err := s.storeRun(ctx, q, run); err != nil {
			return err
		}
		if err := dropDeadLocks(ctx, q, run.StateKey()); err != nil {
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO attempts (run, attempt, fence, agent, status, reason, claimed_at, ended_at,
				log_size, log_received, log_capped)
			VALUES (?, ?, ?, ?, ?, '', ?, 0, 0, 0, 0)`,
			run.ID, run.Attempt, run.Fence, run.Agent, string(holdfast.RunRunning), nanos(now))
		if err != nil {
			return err
		}
		return takeTurn(ctx, q, lane, now)
	})
	return run, err
}

func checkClaim(ctx context.Context, q querier, run holdfast.Run, now time.Time, limit *claimLimit) error {
	switch {
	case run.Status == holdfast.RunQueued:
	case run.Status == holdfast.RunRetrying && (!run.NotBefore.After(now) || run.NotBefore.After(now.Add(longestPause))):
	default:
		return fmt.Errorf("it is %s: %w", run.Status, holdfast.ErrConflict)
	}
	if run.Kind.Plans() {
		if err := unsavedAt(ctx, q, run.StateKey()); err != nil {
			return fmt.Errorf("%w: %w", err, holdfast.ErrConflict)
		}
	}
	var running, here int
	key, other := namesOf(run.StateKey())
	err := q.row(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN state_location IN (?, ?) THEN 1 ELSE 0 END), 0) FROM runs WHERE status = 'running'`,
		key, other).Scan(&running, &here)
	switch {
	case err != nil:
		return fmt.Errorf("count running runs: %w", err)
	case here > 0:
		return fmt.Errorf("another run is running at %q: %w", run.StateKey(), holdfast.ErrConflict)
	}
	if moves, err := migrates(ctx, q, run); err != nil {
		return fmt.Errorf("look for runs of %q: %w", run.Cluster, err)
	} else if moves {
		return fmt.Errorf("the state of %q is being moved: %w", run.Cluster, holdfast.ErrConflict)
	}
	return limit.admit(running)
}

// world returns the last applied run of the run's cluster and the serial of its
// state; zero values if there are none.
func world(ctx context.Context, q querier, run holdfast.Run) (applied string, serial int64, err error) {
	err = q.row(ctx, `SELECT COALESCE((SELECT applied_run FROM summaries WHERE name = ?), ''), COALESCE((SELECT serial FROM states WHERE location = ?), 0)`,
		run.Cluster, run.StateKey()).Scan(&applied, &serial)
	if err != nil {
		return "", 0, fmt.Errorf("read cluster %q and state %q: %w", run.Cluster, run.StateKey(), err)
	}
	return applied, serial, nil
}

// EachRunning calls do for each running attempt, with its agent and the last sign of life
// that is stored. It decrypts nothing.
func (s *RunStore) EachRunning(ctx context.Context, do func(ref holdfast.AttemptRef, agent string, heartbeatAt time.Time)) error {
	err := s.db.reader().each(ctx, func(row scanner) error {
		var ref holdfast.AttemptRef
		var agent string
		var at int64
		err := row.Scan(&ref.Run, &ref.Attempt, &ref.Fence, &agent, &at)
		do(ref, agent, fromNanos(at))
		return err
	}, `SELECT r.id, r.attempt, r.fence, COALESCE(a.agent, ''), r.heartbeat_at
		FROM runs AS r LEFT JOIN attempts AS a ON a.run = r.id AND a.attempt = r.attempt WHERE r.status = 'running'`)
	if err != nil {
		return fmt.Errorf("list running attempts: %w", err)
	}
	return nil
}

// Beat records a sign of life and the step, and returns the run. An empty step
// leaves the step as it is. It leaves Version alone. ErrFenced if ref is not
// the run's running attempt.
func (s *RunStore) Beat(ctx context.Context, ref holdfast.AttemptRef, step string, now time.Time) (holdfast.Run, error) {
	var run holdfast.Run
	err := s.db.writeRelaxed(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, `UPDATE runs SET heartbeat_at = ?, step = COALESCE(NULLIF(?, ''), step)
			WHERE id = ? AND attempt = ? AND fence = ? AND status = 'running'`,
			nanos(now), step, ref.Run, ref.Attempt, ref.Fence)
		if err != nil {
			return err
		}
		if n == 0 {
			return holdfast.ErrFenced
		}
		run, err = s.readRun(ctx, q, ref.Run, "")
		return err
	})
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("beat for run %q attempt %d: %w", ref.Run, ref.Attempt, err)
	}
	return run, nil
}

// EndAttempt stores run, whose running attempt ref ends with it, as UpdateRun
// does, closes the attempt's row, and releases the state lock that the attempt
// holds in Holdfast's own backend. ErrFenced if ref is not the run's running
// attempt; ErrUnsaved, and nothing is stored, if it has planned well with a state
// that a newer one could not be saved over. Resources, unless nil, are stored with it as
// SaveResources does.
func (s *RunStore) EndAttempt(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource) (holdfast.Run, error) {
	return s.endAttempt(ctx, ref, run, resources, func(context.Context, querier, holdfast.Run) error { return nil })
}

// EndSilent is EndAttempt for an attempt whose last sign of life was at heard, by the records:
// an ErrHeard, and nothing is stored, if another one has come since, which another server may
// have stored. If it writes it may still be executed: then it is EndUnlocked.
func (s *RunStore) EndSilent(
	ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource, heard time.Time,
) (holdfast.Run, error) {
	return s.endAttempt(ctx, ref, run, resources, func(ctx context.Context, q querier, old holdfast.Run) error {
		switch {
		case !old.HeartbeatAt.Equal(heard):
			return holdfast.ErrHeard
		case run.Kind.Writes():
			return unlocked(ctx, q, ref, run.StateKey())
		}
		return nil
	})
}

// EndUnlocked is EndAttempt for an attempt that may still be executed: a
// *statelock.StateLockedError, and nothing is stored, if it holds the state's
// lock in Holdfast's own backend.
func (s *RunStore) EndUnlocked(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource) (holdfast.Run, error) {
	return s.endAttempt(ctx, ref, run, resources, func(ctx context.Context, q querier, _ holdfast.Run) error {
		return unlocked(ctx, q, ref, run.StateKey())
	})
}

// unlocked is a *statelock.StateLockedError if an attempt holds a state's lock.
func unlocked(ctx context.Context, q querier, ref holdfast.AttemptRef, location string) error {
	held, err := readLock(ctx, q, location)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && held.By != ref {
		return nil // nobody's, or another's, who is dead
	} else if err != nil {
		return err
	}
	return &statelock.StateLockedError{Lock: held}
}

func (s *RunStore) endAttempt(
	ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource,
	allowed func(ctx context.Context, q querier, old holdfast.Run) error,
) (holdfast.Run, error) {
	switch {
	case run.ID != ref.Run:
		return holdfast.Run{}, fmt.Errorf("end attempt %d of run %q: the record is of run %q", ref.Attempt, ref.Run, run.ID)
	case run.Status == holdfast.RunRunning:
		return holdfast.Run{}, fmt.Errorf("end attempt %d of run %q: its status is still running", ref.Attempt, ref.Run)
	}
	var stored holdfast.Run
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		old, err := s.readRun(ctx, q, run.ID, q.forUpdate)
		if errors.Is(err, holdfast.ErrNotFound) {
			return holdfast.ErrFenced
		} else if err != nil {
			return err
		}
		if old.Status != holdfast.RunRunning || old.Ref() != ref {
			return holdfast.ErrFenced
		}
		if err := q.alone(ctx, ofState(old.StateKey()), ofState(run.StateKey())); err != nil {
			return err
		}
		if err := allowed(ctx, q, old); err != nil {
			return err
		}
		if run.Kind.OnlyPlans() && run.Status.Good() {
			if err := unsavedAt(ctx, q, run.StateKey()); err != nil {
				return err
			}
		}
		if stored, err = s.replaceRun(ctx, q, old, run); err != nil || resources == nil {
			return err
		}
		return storeResources(ctx, q, run.Cluster, resources)
	})
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("end attempt %d of run %q: %w", ref.Attempt, ref.Run, err)
	}
	s.wakers.wake(run.ID)
	return stored, nil
}

// closeAttempt ends the row of a run's attempt. If the run continues, the attempt
// failed or died.
func (s *RunStore) closeAttempt(ctx context.Context, q querier, run holdfast.Run) error {
	status := run.Status
	switch {
	case status.Done():
	case run.Failure != nil:
		status = holdfast.RunErrored
	default:
		status = holdfast.RunInterrupted
	}
	ended := run.FinishedAt
	if ended.IsZero() {
		ended = s.now()
	}
	_, err := q.exec(ctx, `UPDATE attempts SET status = ?, reason = ?, ended_at = ? WHERE run = ? AND attempt = ?`,
		string(status), run.Reason, nanos(ended), run.ID, run.Attempt)
	return err
}

// Attempts returns a run's attempts, the first one first.
func (s *RunStore) Attempts(ctx context.Context, run string) ([]holdfast.Attempt, error) {
	var attempts []holdfast.Attempt
	err := s.db.reader().each(ctx, func(row scanner) error {
		a := holdfast.Attempt{Run: run}
		var claimed, ended int64
		if err := row.Scan(&a.Attempt, &a.Fence, &a.Agent, &a.Status, &a.Reason, &claimed, &ended); err != nil {
			return err
		}
		a.ClaimedAt, a.EndedAt = fromNanos(claimed), fromNanos(ended)
		attempts = append(attempts, a)
		return nil
	}, `SELECT attempt, fence, agent, status, reason, claimed_at, ended_at FROM attempts WHERE run = ? ORDER BY attempt`, run)
	if err != nil {
		return nil, fmt.Errorf("list attempts of run %q: %w", run, err)
	}
	return attempts, nil
}

// running is an ErrFenced unless ref is a running attempt. It returns the state
// location that the attempt may write.
func running(ctx context.Context, q querier, ref holdfast.AttemptRef, suffix string) (location string, err error) {
	err = q.row(ctx, `SELECT state_location FROM runs WHERE id = ? AND attempt = ? AND fence = ? AND status = 'running'`+suffix,
		ref.Run, ref.Attempt, ref.Fence).Scan(&location)
	if errors.Is(err, sql.ErrNoRows) {
		return "", holdfast.ErrFenced
	}
	return location, err
}
