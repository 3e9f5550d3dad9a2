package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // reads what the store has, without the store

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// rest stops the server and makes its records say that every cluster is as its
// document says: nothing waits, and nothing is to be executed. Then the server
// runs once, so that what it derives of that is on record as well.
func (w *fleetWorld) rest() {
	ctx := context.Background()
	key, err := seal.LoadKey(w.path("data", "key"))
	w.check(err)
	keys, err := seal.NewKeyring(key)
	w.check(err)
	store, err := datastore.Open(ctx, datastore.Options{Path: w.database(), Keys: keys})
	w.check(err)
	records, err := store.Clusters(ctx, holdfast.ClusterFilter{})
	w.check(err)
	now := time.Now()
	for _, rec := range records {
		runs, err := store.Runs(ctx, holdfast.RunFilter{Cluster: rec.Name, Limit: 1})
		w.check(err)
		run := adoption(rec, now)
		if len(runs) == 0 {
			w.check(store.CreateRun(ctx, run))
		} else { // the server was quick
			run.ID, run.Version = runs[0].ID, runs[0].Version
			_, err = store.UpdateRun(ctx, run)
			w.check(err)
		}
		_, err = store.SaveCluster(ctx, atRest(rec, run, now))
		w.check(err)
	}
	w.check(store.Close())
	w.startAll()
	w.stop()
}

// adoption is the run by which a cluster was found to be as its document says.
func adoption(rec holdfast.ClusterRecord, now time.Time) holdfast.Run {
	return holdfast.Run{
		ID: holdfast.NewID("run", now), Cluster: rec.Name, Kind: holdfast.RunPlan, Status: holdfast.RunNoChanges,
		CreatedAt: now, StartedAt: now, FinishedAt: now,
		RunSpec: holdfast.RunSpec{
			Repo:     rec.Owner,
			Revision: rec.Desired.Revision, SourceDigest: rec.Desired.SourceDigest, Bundle: "sha256:bundle",
			Dir: "root", Document: rec.Desired.Document, StateLocation: "clusters/" + rec.Name, Template: "kubernetes",
		},
		RunOutcome: holdfast.RunOutcome{
			InputDigest: "sha256:input",
			EngineName:  "terraform", EngineVersion: "1.11.4",
		},
	}
}

// atRest is what a record says of a cluster after that.
func atRest(rec holdfast.ClusterRecord, run holdfast.Run, now time.Time) holdfast.ClusterRecord {
	rec.Applied = holdfast.Applied{
		Run: run.ID, Revision: run.Revision, SourceDigest: run.SourceDigest, InputDigest: run.InputDigest,
		Bundle: run.Bundle, Dir: run.Dir, StateLocation: run.StateLocation, Template: run.Template,
		EngineName: run.EngineName, EngineVersion: run.EngineVersion, Document: run.Document, At: now,
	}
	rec.Phase, rec.Waiting, rec.WaitingDetail = holdfast.PhaseActive, "", ""
	rec.Drift = holdfast.DriftState{Status: holdfast.DriftNone, Applied: run.ID, CheckedAt: now, Since: now}
	return rec
}

func (w *fleetWorld) database() string { return filepath.Join(w.path("data"), "db", "holdfast.db") }

// floorOfRecords is how long it takes to read all rows of a table, some with a
// condition behind it, by plain SQL. The table is a constant.
func (w *fleetWorld) floorOfRecords(table string) time.Duration {
	db := w.records()
	defer db.Close()
	var took []time.Duration
	for range fleetLists {
		began := time.Now()
		rows, err := db.Query("SELECT * FROM " + table) //nolint:gosec // a constant
		w.check(err)
		columns, err := rows.Columns()
		w.check(err)
		row := make([]any, len(columns))
		for i := range row {
			row[i] = new(sql.RawBytes)
		}
		for rows.Next() {
			w.check(rows.Scan(row...))
		}
		w.check(rows.Err())
		w.check(rows.Close())
		took = append(took, time.Since(began))
	}
	return median(took)
}

// records opens what the server has on record, to be read.
func (w *fleetWorld) records() *sql.DB {
	db, err := sql.Open("sqlite", "file:"+w.database()+"?mode=ro")
	w.check(err)
	return db
}
