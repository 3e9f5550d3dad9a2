package datastore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-dev/holdfast/datastore/postgres"
)

// SetQuarantine bounds the bytes that an attempt keeps in quarantine.
func SetQuarantine(store *Store, size int64) { store.quarantine = size }

// RefuseDurable has each commit fail that waits for the disk.
func RefuseDurable(ctx context.Context, store *Store) error {
	_, err := store.db.durable.DB.ExecContext(ctx, `PRAGMA query_only = 1`)
	return err
}

// Rehearse has each transaction rolled back once, and made again.
func Rehearse(store *Store) { store.db.rehearsed = true }

// RemoveRun removes a run that nothing needs, as a sweep does.
func RemoveRun(ctx context.Context, store *Store, id string) error {
	_, err := store.removeRuns(ctx, []string{id})
	return err
}

// CountTwice counts the runs twice on one snapshot, and does something in between.
func CountTwice(ctx context.Context, store *Store, between func()) (before, after int, err error) {
	err = store.db.read(ctx, func(ctx context.Context, q querier) error {
		err := q.row(ctx, `SELECT COUNT(*) FROM runs`).Scan(&before)
		between()
		return errors.Join(err, q.row(ctx, `SELECT COUNT(*) FROM runs`).Scan(&after))
	})
	return before, after, err
}

// Vacant waits until another server than a store's own could change the schema.
func Vacant(ctx context.Context, store *Store, current, oldest int64) error {
	return store.db.server.Vacant(ctx, postgres.Server{Identity: "new"}, current, oldest, store.log)
}

// PlaceOf is what a store's data folder is called in the lease of a server.
func PlaceOf(store *Store) string { return store.home.Place() }

// DemoteSessions has all sessions that write be those of a server that has become a standby.
func DemoteSessions(ctx context.Context, store *Store) {
	pool := store.db.server.Writers
	var conns []*sql.Conn
	for range postgres.Connections {
		conn, err := pool.Conn(ctx)
		if err == nil {
			_, err = conn.ExecContext(ctx, `SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY`)
			conns = append(conns, conn)
		}
		if err != nil {
			panic(err)
		}
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// RenewSessions has all sessions opened again.
func RenewSessions(store *Store) { store.db.server.Renew() }
