package datastore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// RenameCluster saves both records, each at its Version, and gives the state in our own backend
// with its versions and its lock, the resources and the history of from to to, all of it or
// nothing. It is an ErrConflict if a run is running for either, or to has its own state that is
// not empty. A transition without a cluster is of to.
func (s *ClusterStore) RenameCluster(ctx context.Context, from, to holdfast.ClusterRecord, history ...holdfast.Transition) error {
	err := s.renameCluster(ctx, from, to, history)
	if err != nil {
		return fmt.Errorf("rename cluster %q to %q: %w", from.Name, to.Name, err)
	}
	return nil
}

func (s *ClusterStore) renameCluster(ctx context.Context, from, to holdfast.ClusterRecord, history []holdfast.Transition) error {
	if from.Name == to.Name {
		return errors.New("it is the same name")
	}
	from, fromDoc, err := s.sealCluster(from)
	if err != nil {
		return err
	}
	to, toDoc, err := s.sealCluster(to)
	if err != nil {
		return err
	}
	return s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofCluster(from.Name), ofCluster(to.Name), ofState(locationOf(from.Name)), ofState(locationOf(to.Name))); err != nil {
			return err
		}
		if err := storeCluster(ctx, q, from, fromDoc); err != nil {
			return fmt.Errorf("save %q at version %d: %w", from.Name, from.Version-1, err)
		}
		if err := storeCluster(ctx, q, to, toDoc); err != nil {
			return fmt.Errorf("save %q at version %d: %w", to.Name, to.Version-1, err)
		}
		if err := nobodyRuns(ctx, q, from.Name, to.Name); err != nil {
			return err
		}
		if err := s.moveState(ctx, q, locationOf(from.Name), locationOf(to.Name)); err != nil {
			return fmt.Errorf("move the state: %w", err)
		}
		if err := moveBelongings(ctx, q, from.Name, to.Name); err != nil {
			return err
		}
		if err := s.renamePlace(ctx, q, from.Name, to.Name); err != nil {
			return err
		}
		if err := s.addHistory(ctx, q, to.Name, history); err != nil {
			return err
		}
		return trimHistory(ctx, q, to.Name)
	})
}

func nobodyRuns(ctx context.Context, q querier, from, to string) error {
	locations, err := texts(ctx, q, `SELECT location FROM unsaved_states WHERE cluster IN (?, ?)`, from, to)
	if err != nil {
		return fmt.Errorf("look for unsaved states: %w", err)
	}
	for _, location := range append(locations, locationOf(from), locationOf(to)) {
		if err := unsavedAt(ctx, q, location); err != nil {
			return fmt.Errorf("%w: %w", err, holdfast.ErrConflict)
		}
	}
	var id string
	err = q.row(ctx, `SELECT id FROM runs WHERE status = 'running' AND (cluster IN (?, ?) OR state_location IN (?, ?)) LIMIT 1`,
		from, to, locationOf(from), locationOf(to)).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look for running runs: %w", err)
	}
	return fmt.Errorf("run %q is running: %w", id, holdfast.ErrConflict)
}

// moveState gives what is at one location to another one, where nothing may be
// but the empty states that a destroyed cluster of that name has left: the
// versions continue to count after those.
func (s *ClusterStore) moveState(ctx context.Context, q querier, from, to string) error {
	// Nobody runs at either place: what is locked there was left behind.
	if _, err := q.exec(ctx, `DELETE FROM state_locks WHERE location IN (?, ?)`, from, to); err != nil {
		return err
	}
	there, err := readCounters(ctx, q, to)
	if err != nil {
		return err
	}
	if there.last > 0 {
		if empty, err := s.emptyState(ctx, q, to, there.current); err != nil {
			return err
		} else if !empty {
			return fmt.Errorf("there is a state at %q: %w", to, holdfast.ErrConflict)
		}
	}
	if err := s.moveVersions(ctx, q, from, to, there.last); err != nil {
		return err
	}
	here, err := readCounters(ctx, q, from)
	if err != nil {
		return err
	}
	if here.last > 0 {
		if here.current > 0 {
			there.current, there.serial = there.last+here.current, here.serial
		}
		there.last += here.last
		if _, err := q.exec(ctx, `DELETE FROM states WHERE location = ?`, from); err != nil {
			return err
		}
		if _, err := q.exec(ctx, `INSERT INTO states (location, last_version, current, serial) VALUES (?, ?, ?, ?)
			ON CONFLICT (location) DO UPDATE SET last_version = excluded.last_version, current = excluded.current, serial = excluded.serial`,
			to, there.last, there.current, there.serial); err != nil {
			return err
		}
	}
	return nil
}

// counters are of the versions at a location; zero if there is none.
type counters struct{ last, current, serial int64 }

func readCounters(ctx context.Context, q querier, location string) (counters, error) {
	var c counters
	err := q.row(ctx, `SELECT last_version, current, serial FROM states WHERE location = ?`, location).Scan(&c.last, &c.current, &c.serial)
	if errors.Is(err, sql.ErrNoRows) {
		return c, nil
	}
	return c, err
}

// emptyState reports whether a version is certainly empty.
func (s *ClusterStore) emptyState(ctx context.Context, q querier, location string, version int64) (bool, error) {
	_, c, err := scanVersion(q.row(ctx, `SELECT `+versionColumns+` FROM state_versions WHERE location = ? AND version = ?`, location, version))
	if errors.Is(err, sql.ErrNoRows) || err == nil && c.inline == nil {
		return false, nil // all in quarantine; too large to be empty
	}
	if err != nil {
		return false, err
	}
	sealed, err := s.sealedFor(location, c)
	if err != nil {
		return false, nil // nobody knows what is in it
	}
	data, err := s.getAll(ctx, "state", sealed, c)
	if err != nil {
		return false, nil
	}
	var state struct {
		Resources *[]json.RawMessage `json:"resources"`
	}
	err = json.Unmarshal(data, &state)
	return err == nil && state.Resources != nil && len(*state.Resources) == 0, nil
}

// moveVersions gives all versions at a location to another one, after the last one there.
func (s *ClusterStore) moveVersions(ctx context.Context, q querier, from, to string, after int64) error {
	origins := map[int64][]byte{}
	err := q.each(ctx, func(row scanner) error {
		v, c, err := scanVersion(row)
		if err != nil {
			return err
		}
		origins[v.Version], err = s.moveOrigin(c, from, to)
		return err
	}, `SELECT `+versionColumns+` FROM state_versions WHERE location = ?`, from)
	if err != nil {
		return err
	}
	for version, origin := range origins {
		if _, err := q.exec(ctx, `UPDATE state_versions SET location = ?, version = ?, origin = ? WHERE location = ? AND version = ?`,
			to, after+version, origin, from, version); err != nil {
			return err
		}
	}
	return nil
}

// A state is encrypted for its location. One that moves stays as it is, large as it may
// be, and its row gets an origin: the location it was encrypted for, itself encrypted
// for the new one. Somebody who can write to the database, but has no keys, cannot move
// a state unseen.
const originPurpose = "state origin"

func (s *ClusterStore) moveOrigin(c content, from, to string) ([]byte, error) {
	sealed, err := s.sealedFor(from, c)
	if err != nil {
		return c.origin, nil // it cannot be read under the new name either
	}
	return s.keys.Seal(originPurpose, contentName(to, c.key), []byte(sealed))
}

// sealedFor is the location that the state c at location was encrypted for.
func (s *records) sealedFor(location string, c content) (string, error) {
	if c.origin == nil {
		return location, nil
	}
	origin, err := s.keys.Unseal(originPurpose, contentName(location, c.key), c.origin)
	return string(origin), err
}

// renamePlace gives another name where the state is. It stays there, but in our own backend.
func (s *ClusterStore) renamePlace(ctx context.Context, q querier, from, to string) error {
	places := placing{s.records}
	place, err := places.statePlace(ctx, q, from, q.forUpdate)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	if place.Cluster = to; place.Location == locationOf(from) {
		place.Location = locationOf(to)
	}
	if _, err := q.exec(ctx, `DELETE FROM state_places WHERE cluster = ?`, from); err != nil {
		return fmt.Errorf("move where the state is: %w", err)
	}
	return places.putPlace(ctx, q, place)
}

// moveBelongings gives resources and history to another name. What is left of a
// former life of that name is distinguished by its time.
func moveBelongings(ctx context.Context, q querier, from, to string) error {
	if _, err := q.exec(ctx, `DELETE FROM resources WHERE cluster = ?`, to); err != nil {
		return fmt.Errorf("move resources: %w", err)
	}
	if _, err := q.exec(ctx, `UPDATE resources SET cluster = ? WHERE cluster = ?`, to, from); err != nil {
		return fmt.Errorf("move resources: %w", err)
	}
	if _, err := q.exec(ctx, `UPDATE transitions SET cluster = ? WHERE cluster = ?`, to, from); err != nil {
		return fmt.Errorf("move history: %w", err)
	}
	return nil
}
