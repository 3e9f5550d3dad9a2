package datastore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

const (
	unsavedColumns = `location, cluster, run, attempt, version, found_at, job, jobs`
	// earlierRefused counts what was refused of the run before that.
	earlierRefused = `(SELECT COUNT(*) FROM state_versions AS v WHERE v.location = unsaved_states.location
		AND v.run = unsaved_states.run AND v.quarantined = 1 AND v.version < unsaved_states.version)`
	// saidAll is true of an attempt e that has ended by its agent's word: that comes last. Not
	// if its unsaved state has not come at all: a full disk may have kept it back. An attempt
	// that others have ended, or an agent that found it dead, may be executed still.
	saidAll = `e.status NOT IN ('running', 'interrupted')
		AND e.reason NOT IN ('` + string(holdfast.ReasonAgentKilled) + `', '` + string(holdfast.ReasonLeaseLost) + `') AND NOT EXISTS (
		SELECT 1 FROM unsaved_states AS u WHERE u.run = e.run AND u.attempt = e.attempt AND u.version = 0 AND NOT EXISTS (
		SELECT 1 FROM artefacts AS f WHERE f.run = e.run AND f.attempt = e.attempt AND f.name = '` + protocol.ArtefactErrored + `'))`
	// inTime is true of a state, or file, v that its attempt may have left.
	inTime = `NOT EXISTS (SELECT 1 FROM attempts AS e WHERE e.run = v.run AND e.attempt = v.attempt AND e.ended_at <= v.created_at AND ` + saidAll + `)`
)

func scanUnsaved(row scanner) (holdfast.UnsavedState, error) {
	var u holdfast.UnsavedState
	var found int64
	err := row.Scan(&u.Location, &u.Cluster, &u.Run, &u.Attempt, &u.Version, &found, &u.Job, &u.Jobs, &u.Earlier)
	u.At = fromNanos(found)
	return u, err
}

// UnsavedStates returns the states that their backends do not have, those of one
// cluster, or all if it is empty, the oldest first.
func (s *StateStore) UnsavedStates(ctx context.Context, cluster string) ([]holdfast.UnsavedState, error) {
	var list []holdfast.UnsavedState
	err := s.db.reader().each(ctx, func(row scanner) error {
		u, err := scanUnsaved(row)
		list = append(list, u)
		return err
	}, `SELECT `+unsavedColumns+`, `+earlierRefused+` FROM unsaved_states WHERE ? = '' OR cluster = ? ORDER BY found_at, location`, cluster, cluster)
	if err != nil {
		return nil, fmt.Errorf("list unsaved states: %w", err)
	}
	return list, nil
}

// OpenUnsaved opens what an engine could not save; ErrNotFound if it has reached nobody.
func (s *StateStore) OpenUnsaved(ctx context.Context, u holdfast.UnsavedState) (io.ReadCloser, error) {
	if u.Version == 0 {
		return s.artefacts.Artefact(ctx, u.Run, protocol.ArtefactErrored)
	}
	data, _, err := s.StateAt(ctx, u.Location, u.Version)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// PushUnsaved stores run, of kind RunState, which is to push u, and notes it on
// u. It is an ErrConflict if u is no longer as it was read.
func (s *StateStore) PushUnsaved(ctx context.Context, u holdfast.UnsavedState, run holdfast.Run) error {
	return s.createRun(ctx, run, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, `UPDATE unsaved_states SET job = ?, jobs = jobs + 1
			WHERE location = ? AND run = ? AND attempt = ? AND version = ? AND job = ?`,
			run.ID, u.Location, u.Run, u.Attempt, u.Version, u.Job)
		if err == nil && n == 0 {
			err = holdfast.ErrConflict
		}
		return err
	})
}

// WaiveUnsaved gives u up, and writes the entry to the audit trail. It is an
// ErrConflict if u is no longer as it was read. The state itself stays
// for as long as what holds it.
func (s *StateStore) WaiveUnsaved(ctx context.Context, u holdfast.UnsavedState, entry holdfast.AuditEntry) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofState(u.Location)); err != nil {
			return err
		}
		if err := takeUnsaved(ctx, q, u, false); err != nil {
			return err
		}
		if err := s.noteNext(ctx, q, u); err != nil {
			return err
		}
		return s.audit(ctx, q, entry)
	})
	if err != nil {
		return fmt.Errorf("give up the unsaved state %q: %w", u.Location, err)
	}
	return nil
}

// takeUnsaved ends u; ErrConflict if another is in its place, or none. Unless it was pushed,
// also if a push of it was queued since it was read.
func takeUnsaved(ctx context.Context, q querier, u holdfast.UnsavedState, pushed bool) error {
	n, err := q.exec(ctx, `DELETE FROM unsaved_states WHERE location = ? AND run = ? AND attempt = ? AND version = ? AND (job = ? OR ? = 1)`,
		u.Location, u.Run, u.Attempt, u.Version, u.Job, boolInt(pushed))
	if err == nil && n == 0 {
		err = holdfast.ErrConflict
	}
	return err
}

// ReplaceUnsaved keeps data, in quarantine, as what is to be pushed in place of
// u. What is not a state is an error; ErrConflict if u is no longer as it was read.
func (s *StateStore) ReplaceUnsaved(ctx context.Context, u holdfast.UnsavedState, by string, data []byte) (holdfast.UnsavedState, error) {
	serial, lineage, err := parseState(data)
	if err != nil {
		return u, fmt.Errorf("state %q: %w", u.Location, err)
	}
	c, err := s.put(ctx, "state", u.Location, bytes.NewReader(data))
	if err != nil {
		return u, fmt.Errorf("store state %q: %w", u.Location, err)
	}
	v := holdfast.StateVersion{
		Location: u.Location, Serial: serial, Lineage: lineage, Size: int64(len(data)), Run: by,
		CreatedAt: s.now(), Quarantined: true,
	}
	next := u
	var unused []content
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		err := q.alone(ctx, ofState(u.Location))
		if err != nil {
			return err
		}
		if err := takeUnsaved(ctx, q, u, false); err != nil {
			return err
		}
		if unused, err = s.insertState(ctx, q, &v, holdfast.AttemptRef{Run: by}, s.stateDigest(data), c); err != nil {
			return err
		}
		next.Version, next.Job, next.Jobs = v.Version, "", 0
		return putUnsaved(ctx, q, next)
	})
	if errors.Is(err, holdfast.ErrConflict) { // after any other error it may have been committed
		s.drop(ctx, c)
	}
	if err != nil {
		return u, fmt.Errorf("replace the unsaved state %q: %w", u.Location, err)
	}
	s.drop(ctx, unused...)
	return next, nil
}

// namesOf are the names of a state in rows: a former version treated two of them that
// have one key as different.
func namesOf(location string) (key, other string) {
	key = holdfast.StateKey(location)
	return key, key + holdfast.StoreOfEnvironment
}

func putUnsaved(ctx context.Context, q querier, u holdfast.UnsavedState) error {
	key, other := namesOf(u.Location)
	if _, err := q.exec(ctx, `DELETE FROM unsaved_states WHERE location IN (?, ?) AND location <> ?`, key, other, u.Location); err != nil {
		return err
	}
	_, err := q.exec(ctx, `INSERT INTO unsaved_states (`+unsavedColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (location) DO UPDATE SET cluster = excluded.cluster, run = excluded.run, attempt = excluded.attempt,
			version = excluded.version, found_at = excluded.found_at, job = excluded.job, jobs = excluded.jobs`,
		u.Location, u.Cluster, u.Run, u.Attempt, u.Version, nanos(u.At), u.Job, u.Jobs)
	return err
}

// noteUnsaved records with the end of an attempt what it has left of the state:
// one that could not be saved, or the push of such a one.
func (s *records) noteUnsaved(ctx context.Context, q querier, run holdfast.Run) error {
	if run.Kind == holdfast.RunState {
		if run.Status != holdfast.RunApplied || run.State == nil || run.State.Action != holdfast.StatePush {
			return nil
		}
		if arrived, err := s.arrived(ctx, q, run.State.Unsaved); err != nil || !arrived {
			return err
		}
		err := takeUnsaved(ctx, q, run.State.Unsaved, true)
		if errors.Is(err, holdfast.ErrConflict) {
			return nil // another one came meanwhile, and is unsaved
		} else if err != nil {
			return err
		}
		return s.noteNext(ctx, q, run.State.Unsaved)
	}
	if !run.Kind.Applies() {
		return nil
	}
	unsaved := run.Failure != nil && run.Failure.Cause == holdfast.CauseStateUnsaved
	if !unsaved && !holdfast.OwnState(run.StateKey()) {
		var n int
		if err := q.row(ctx, `SELECT COUNT(*) FROM artefacts WHERE run = ? AND attempt = ? AND name = ?`,
			run.ID, run.Attempt, protocol.ArtefactErrored).Scan(&n); err != nil {
			return err
		}
		unsaved = n > 0
	}
	if !unsaved {
		return superseded(ctx, q, run)
	}
	return putUnsaved(ctx, q, holdfast.UnsavedState{
		Location: run.StateKey(), Cluster: run.Cluster, Run: run.ID, Attempt: run.Attempt, At: s.now(),
	})
}

// superseded ends what is left of the uploads of an apply that has ended well and were
// refused, if one of its later uploads was taken: that is what its engine has saved, and
// whatever was sent before is older, or was never the engine's. A push that a person has
// asked for stays.
func superseded(ctx context.Context, q querier, run holdfast.Run) error {
	if !run.Status.Good() {
		return nil
	}
	_, err := q.exec(ctx, `DELETE FROM unsaved_states WHERE location = ? AND run = ? AND attempt = ? AND version > 0 AND job = '' AND EXISTS (
		SELECT 1 FROM state_versions AS v WHERE v.location = unsaved_states.location AND v.run = unsaved_states.run
			AND v.attempt = unsaved_states.attempt AND v.quarantined = 0 AND v.version > unsaved_states.version)`,
		run.StateKey(), run.ID, run.Attempt)
	return err
}

// noteLate records that a state which could not be saved has come from an attempt that
// was over by then, as when somebody had taken its lock away. With our own backend such
// a state comes as an upload that is refused as well, if the engine got as far: before
// the first state of a cluster it asks whether there is one, and that is refused, too.
func (s *records) noteLate(ctx context.Context, q querier, ref holdfast.AttemptRef) error {
	run, err := s.readRun(ctx, q, ref.Run, "")
	if err != nil || run.Status == holdfast.RunRunning && run.Ref() == ref || !run.Kind.Applies() {
		return err
	}
	if holdfast.OwnState(run.StateKey()) {
		var uploads int
		err := q.row(ctx, `SELECT COUNT(*) FROM state_versions WHERE location = ? AND run = ? AND attempt = ? AND quarantined = 1`,
			run.StateKey(), ref.Run, ref.Attempt).Scan(&uploads)
		if err != nil || uploads > 0 {
			return err
		}
	}
	return putLate(ctx, q, holdfast.UnsavedState{
		Location: run.StateKey(), Cluster: run.Cluster, Run: ref.Run, Attempt: ref.Attempt, At: s.now(),
	})
}

// putLate is putUnsaved for a state of an attempt that is over. The unsaved state of
// another run is newer, as nothing is executed while there is one: it is not displaced.
// Once that has ended, noteNext looks for what has come meanwhile.
func putLate(ctx context.Context, q querier, u holdfast.UnsavedState) error {
	var n int
	key, other := namesOf(u.Location)
	err := q.row(ctx, `SELECT COUNT(*) FROM unsaved_states WHERE location IN (?, ?) AND run <> ?`, key, other, u.Run).Scan(&n)
	if err != nil || n > 0 {
		return err
	}
	return putUnsaved(ctx, q, u)
}

// noteNext records, of the states of other runs that came while u stood and were not noted
// therefore, the newest upload that was refused, or the newest file.
func (s *records) noteNext(ctx context.Context, q querier, u holdfast.UnsavedState) error {
	v, by, at := holdfast.StateVersion{Location: u.Location}, holdfast.AttemptRef{}, int64(0)
	err := q.row(ctx, `SELECT version, serial, lineage, created_at, run, attempt FROM state_versions AS v WHERE location = ?
		AND quarantined = 1 AND lineage <> '' AND run <> ? AND created_at > ? AND `+inTime+` ORDER BY version DESC LIMIT 1`,
		u.Location, u.Run, nanos(u.At)).Scan(&v.Version, &v.Serial, &v.Lineage, &at, &by.Run, &by.Attempt)
	if err == nil {
		v.CreatedAt = fromNanos(at)
		return noteRefused(ctx, q, v, by)
	} else if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	key, other := namesOf(u.Location)
	err = q.row(ctx, `SELECT v.run, v.attempt FROM artefacts AS v JOIN runs AS r ON r.id = v.run WHERE r.state_location IN (?, ?)
		AND v.name = ? AND v.run <> ? AND v.created_at > ? AND `+inTime+` ORDER BY v.created_at DESC LIMIT 1`,
		key, other, protocol.ArtefactErrored, u.Run, nanos(u.At)).Scan(&by.Run, &by.Attempt)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	return s.noteLate(ctx, q, by)
}

// arrived reports whether what a run has pushed is the newest version in our own
// backend, which may have refused it after the engine had ended. For another backend
// the engine's word counts.
func (s *records) arrived(ctx context.Context, q querier, u holdfast.UnsavedState) (bool, error) {
	if !holdfast.OwnState(u.Location) {
		return true, nil
	}
	var digest, kind string
	var at int64
	err := q.row(ctx, `SELECT v.digest, v.created_at, COALESCE(r.kind, '') FROM state_versions AS v LEFT JOIN runs AS r ON r.id = v.run
		WHERE v.location = ? AND v.quarantined = 0 ORDER BY v.version DESC LIMIT 1`, u.Location).Scan(&digest, &at, &kind)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	pushed := kind == string(holdfast.RunState) && at >= nanos(u.At)
	if err != nil || pushed || u.Version == 0 {
		return pushed, err
	}
	var rescued string
	err = q.row(ctx, `SELECT digest FROM state_versions WHERE location = ? AND version = ?`, u.Location, u.Version).Scan(&rescued)
	return err == nil && rescued == digest, notFound(err, "state", u.Location)
}

// noteRefused records that an upload of an apply, which is in quarantine now and came in
// time, is newer than what its backend has.
func noteRefused(ctx context.Context, q querier, v holdfast.StateVersion, by holdfast.AttemptRef) error {
	var kind holdfast.RunKind
	var cluster string
	err := q.row(ctx, `SELECT r.kind, r.cluster FROM runs AS r JOIN state_versions AS v ON v.run = r.id
		WHERE v.location = ? AND v.version = ? AND `+inTime, v.Location, v.Version).Scan(&kind, &cluster)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !kind.Applies() {
		return nil
	}
	if err != nil {
		return err
	}
	var serial int64
	var lineage string
	err = q.row(ctx, `SELECT serial, lineage FROM state_versions WHERE location = ? AND quarantined = 0
		ORDER BY version DESC LIMIT 1`, v.Location).Scan(&serial, &lineage)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err == nil && lineage == v.Lineage && v.Serial <= serial {
		return nil
	}
	return putLate(ctx, q, holdfast.UnsavedState{
		Location: v.Location, Cluster: cluster, Run: by.Run, Attempt: by.Attempt, Version: v.Version, At: v.CreatedAt,
	})
}

// unsavedAt is an ErrUnsaved if there is a state that the location's backend does not
// have.
func unsavedAt(ctx context.Context, q querier, location string) error {
	var run string
	key, other := namesOf(location)
	err := q.row(ctx, `SELECT run FROM unsaved_states WHERE location IN (?, ?) LIMIT 1`, key, other).Scan(&run)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for an unsaved state: %w", err)
	}
	return fmt.Errorf("the state of run %s at %q: %w", run, location, holdfast.ErrUnsaved)
}
