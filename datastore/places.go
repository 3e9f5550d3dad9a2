package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// PlaceStore keeps where the states of clusters are since their first applies.
type PlaceStore struct{ placing }

// placing keeps places in step with what else is written.
type placing struct{ *records }

// StatePlace returns where the state of a cluster is; ErrNotFound if nothing of it is applied.
func (s *PlaceStore) StatePlace(ctx context.Context, cluster string) (holdfast.StatePlace, error) {
	return s.statePlace(ctx, s.db.reader(), cluster, "")
}

func (s placing) statePlace(ctx context.Context, q querier, cluster, suffix string) (place holdfast.StatePlace, err error) {
	var doc []byte
	err = q.row(ctx, `SELECT doc FROM state_places WHERE cluster = ?`+suffix, cluster).Scan(&doc)
	if err := notFound(err, "state place", cluster); err != nil {
		return place, err
	}
	return place, s.unseal(ctx, "state place", cluster, doc, &place)
}

// StatePlacesAt returns the names of the clusters whose states have a location.
func (s *PlaceStore) StatePlacesAt(ctx context.Context, location string) ([]string, error) {
	names, err := texts(ctx, s.db.reader(), `SELECT cluster FROM state_places WHERE location = ? ORDER BY cluster`, location)
	if err != nil {
		return nil, fmt.Errorf("list clusters with the state %q: %w", location, err)
	}
	return names, nil
}

// fixPlace records where the state of a cluster is, unless that is on record.
func (s placing) fixPlace(ctx context.Context, q querier, place holdfast.StatePlace) error {
	if place.Location == "" {
		return nil
	}
	var known int
	err := q.row(ctx, `SELECT COUNT(*) FROM state_places WHERE cluster = ?`, place.Cluster).Scan(&known)
	if err != nil || known > 0 {
		return err
	}
	return s.putPlace(ctx, q, place)
}

func (s placing) putPlace(ctx context.Context, q querier, place holdfast.StatePlace) error {
	doc, err := s.keys.SealJSON("state place", place.Cluster, place)
	if err != nil {
		return err
	}
	former := holdfast.StateKey(place.Former)
	if former == holdfast.StateKey(place.Location) { // the environment leads to another store
		former = ""
	}
	_, err = q.exec(ctx, `INSERT INTO state_places (cluster, location, former, run, doc) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (cluster) DO UPDATE SET location = excluded.location, former = excluded.former, run = excluded.run, doc = excluded.doc`,
		place.Cluster, place.Location, former, place.Run, doc)
	if err != nil {
		return fmt.Errorf("record where the state of %q is: %w", place.Cluster, err)
	}
	return nil
}

// placeOf is where a run that has applied, or may have, has left the state.
func (s placing) placeOf(run holdfast.Run) holdfast.StatePlace {
	return holdfast.StatePlace{Cluster: run.Cluster, Location: run.StateLocation, Stored: run.Stored, Run: run.ID, At: s.now().UTC()}
}

// notePlace keeps where the state of a cluster is in step with its record: it has a place from
// its first apply, or adoption, to its end.
func (s placing) notePlace(ctx context.Context, q querier, c holdfast.ClusterRecord) error {
	if c.Applied.Run != "" {
		return s.fixPlace(ctx, q, holdfast.StatePlace{
			Cluster: c.Name, Location: c.Applied.StateLocation, Stored: c.Applied.Stored, Run: c.Applied.Run, At: s.now().UTC(),
		})
	}
	if c.Life == "" {
		return nil
	}
	_, err := q.exec(ctx, `DELETE FROM state_places WHERE cluster = ? AND run <= ?`, c.Name, c.Life)
	return err
}

// noteMoved records, with the end of a run that has moved a state and proven that it has, that
// the state counts where it is now and nowhere else: for the cluster, for what was applied of
// it, and for runs that wait, which were made for the place before.
func (s placing) noteMoved(ctx context.Context, q querier, run holdfast.Run) error {
	if !run.State.Migrates() || run.Status != holdfast.RunApplied {
		return nil
	}
	move, at := run.State.Move, s.now().UTC()
	var doc []byte
	var c holdfast.ClusterRecord
	if err := q.row(ctx, `SELECT doc FROM clusters WHERE name = ?`+q.forUpdate, run.Cluster).Scan(&doc); err != nil {
		return notFound(err, "cluster", run.Cluster)
	}
	if err := s.unseal(ctx, "cluster", run.Cluster, doc, &c); err != nil {
		return err
	}
	if c.Applied.Run != run.State.From {
		return nil // it is not what was moved: the place before counts
	}
	c.Applied.StateLocation, c.Applied.Stored, c.Applied.Bundle, c.Applied.Migrated = move.To, move.Stored, run.Bundle, true
	c.Applied.Document.Project, c.Applied.Document.Environment = run.Document.Project, run.Document.Environment
	c.UpdatedAt = at
	next, doc, err := (&ClusterStore{s.records}).sealCluster(c)
	if err != nil {
		return err
	}
	if err := storeCluster(ctx, q, next, doc); err != nil {
		return err
	}
	if err := s.putPlace(ctx, q, holdfast.StatePlace{
		Cluster: run.Cluster, Location: move.To, Stored: move.Stored, Run: run.ID, Former: move.From, At: at,
	}); err != nil {
		return err
	}
	if err := s.endWaiting(ctx, q, run); err != nil {
		return err
	}
	return s.audit(ctx, q, holdfast.NewAuditEntry(at, run.Actor, "state.migrated", run.Cluster, fmt.Sprintf("%s: from %s to %s", run.ID, move.From, move.To)))
}

// endWaiting ends the runs of a cluster that wait, with the reason that something newer has
// taken their place.
func (s placing) endWaiting(ctx context.Context, q querier, by holdfast.Run) error {
	ids, err := texts(ctx, q, `SELECT id FROM runs WHERE cluster = ? AND claim_at IS NOT NULL AND id <> ? ORDER BY id`+q.forUpdate, by.Cluster, by.ID)
	if err != nil {
		return err
	}
	for _, id := range ids {
		run, err := s.readRun(ctx, q, id, "")
		if errors.Is(err, holdfast.ErrDamaged) {
			continue // nobody can claim it
		} else if err != nil {
			return err
		}
		run.Status, run.Reason, run.FinishedAt, run.NotBefore = holdfast.RunCanceled, holdfast.ReasonSuperseded, s.now().UTC(), by.NotBefore
		run.Version++
		if err := s.storeRun(ctx, q, run); err != nil {
			return err
		}
	}
	return nil
}

// inPlace is an ErrConflict if a run was made for the place from where the state of its cluster
// has moved meanwhile.
func inPlace(ctx context.Context, q querier, run holdfast.Run) error {
	if !run.Kind.Plans() {
		return nil
	}
	var former string
	err := q.row(ctx, `SELECT former FROM state_places WHERE cluster = ?`, run.Cluster).Scan(&former)
	if errors.Is(err, sql.ErrNoRows) || err == nil && (former == "" || former != run.StateKey()) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look where the state of %q is: %w", run.Cluster, err)
	}
	return fmt.Errorf("the state of %s is no longer at %s: %w", run.Cluster, former, holdfast.ErrConflict)
}

// migrates reports whether a run that moves the state of a cluster is running, or any is if
// the one that asks moves it: both places are its own.
func migrates(ctx context.Context, q querier, run holdfast.Run) (bool, error) {
	var others int
	err := q.row(ctx, `SELECT COUNT(*) FROM runs WHERE cluster = ? AND status = 'running' AND (kind = ? OR ? = 1)`,
		run.Cluster, string(holdfast.RunState), boolInt(run.State.Migrates())).Scan(&others)
	return others > 0, err
}

// rebuildPlaces records where the states are of clusters that were applied before that was on
// record: where they were applied, or an apply was begun.
func (s *rebuilder) rebuildPlaces(ctx context.Context, q querier) error {
	err := batches(ctx, q, "clusters", "name", func(keys []string) error {
		for _, name := range keys {
			var doc []byte
			var c holdfast.ClusterRecord
			if err := q.row(ctx, `SELECT doc FROM clusters WHERE name = ?`, name).Scan(&doc); err != nil {
				return err
			}
			if err := s.unseal(ctx, "cluster", name, doc, &c); skipped(err) {
				continue
			} else if err != nil {
				return err
			}
			if err := s.rebuildPlace(ctx, q, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record where states are: %w", err)
	}
	return nil
}

// rebuildPlace records where the state of a cluster is: where it was applied last, or where an
// apply since the beginning of its life may have left something.
func (s *rebuilder) rebuildPlace(ctx context.Context, q querier, c holdfast.ClusterRecord) error {
	if c.Applied.Run != "" {
		return placing{s.records}.notePlace(ctx, q, c)
	}
	ids, err := texts(ctx, q, `SELECT id FROM runs WHERE cluster = ? AND kind = ? AND id > ? ORDER BY id DESC`,
		c.Name, string(holdfast.RunApply), c.Life)
	if err != nil {
		return err
	}
	for _, id := range ids {
		run, err := s.readRun(ctx, q, id, "")
		switch {
		case skipped(err):
		case err != nil:
			return err
		case run.Begun:
			return placing{s.records}.fixPlace(ctx, q, placing{s.records}.placeOf(run))
		}
	}
	return nil
}
