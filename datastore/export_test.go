package datastore

import "context"

// SetQuarantine bounds the bytes that an attempt keeps in quarantine.
func SetQuarantine(store *Store, size int64) { store.quarantine = size }

// RefuseDurable has each commit fail that waits for the disk.
func RefuseDurable(ctx context.Context, store *Store) error {
	_, err := store.db.durable.DB.ExecContext(ctx, `PRAGMA query_only = 1`)
	return err
}
