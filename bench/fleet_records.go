package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // reads what the store has, without the store

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
)

// rest stops the server and makes its records say that every cluster is as its
// document says: nothing waits, and nothing is to be executed. Then the server
// runs once, so that what it derives of that is on record as well.
func (w *fleetWorld) rest() {
	w.stop()
	ctx := context.Background()
	key, err := datastore.LoadKey(w.path("data", "key"))
	w.check(err)
	keys, err := datastore.NewKeyring(key)
	w.check(err)
	store, err := datastore.Open(ctx, datastore.Options{Path: w.database(), Keys: keys})
	w.check(err)
	records, err := store.Clusters(ctx, holdfast.ClusterFilter{})
	w.check(err)
	now := time.Now()
	for _, rec := range records {
		runs, err := store.Runs(ctx, holdfast.RunFilter{Cluster: rec.Name, Limit: 1})
		w.check(err)
		if len(runs) == 0 {
			w.Fatalf("cluster %s was not planned", rec.Name)
		}
		run := runs[0]
		run.Status, run.Reason, run.InputDigest, run.FinishedAt = holdfast.RunNoChanges, "", "sha256:input", now
		run, err = store.UpdateRun(ctx, run)
		w.check(err)
		_, err = store.SaveCluster(ctx, atRest(rec, run, now))
		w.check(err)
	}
	w.check(store.Close())
	w.startAll()
	w.stop()
}

func (w *fleetWorld) database() string { return filepath.Join(w.path("data"), "db", "holdfast.db") }

// floorOfRecords is how long it takes to read all rows of a table, some with a
// condition behind it, by plain SQL. The table is a constant.
func (w *fleetWorld) floorOfRecords(table string) time.Duration {
	db, err := sql.Open("sqlite", "file:"+w.database()+"?mode=ro")
	w.check(err)
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
