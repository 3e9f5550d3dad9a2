package verify

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	_ "modernc.org/sqlite" // the driver

	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/datastore/statements"
)

// kind is one of the tables that refer to blobs, and the folder that those are in.
type kind struct {
	purpose string
	query   string // blob, size, inline, what the record is called, and the origin of a state that has moved
}

// kinds are all of them. A test compares them with the schema.
func kinds() []kind {
	return []kind{
		{"artefact", `SELECT blob, size, inline, run || '/' || CAST(attempt AS TEXT) || '/' || name, NULL FROM artefacts`},
		{"bundle", `SELECT blob, size, inline, digest, NULL FROM bundles`},
		{"state", `SELECT blob, size, inline, location, origin FROM state_versions`},
	}
}

// content is what a record refers to.
type content struct {
	key    string
	size   int64 // of the plain text
	inline []byte
	record string // also what it was encrypted for
	origin []byte
}

// records are a store's, to be read.
type records struct {
	pool     *statements.Pool
	close    func() error
	identity string
}

func openRecords(ctx context.Context, opts Options) (*records, error) {
	r := &records{}
	if opts.Postgres.URL != "" {
		pools, err := postgres.Open(ctx, opts.Postgres)
		if err != nil {
			return nil, err
		}
		r.pool, r.close = statements.NewNumbered(pools.Readers), pools.Close
	} else {
		db, err := openSQLite(opts.Path)
		if err != nil {
			return nil, err
		}
		r.pool, r.close = statements.New(db), db.Close
	}
	if err := r.identify(ctx, opts.Keys); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func openSQLite(path string) (*sql.DB, error) {
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, errors.New("there are no records")
	} else if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"mode": {"ro"}, "_pragma": {"query_only(1)", "busy_timeout(30000)"}}.Encode()}
	return sql.Open("sqlite", dsn.String())
}

// identify reads what the store is called in its bucket, and refuses another one's keys.
func (r *records) identify(ctx context.Context, keys *seal.Keyring) error {
	var sealed []byte
	if err := r.pool.QueryRowContext(ctx, `SELECT store, doc FROM identity WHERE id = 1`).Scan(&r.identity, &sealed); err != nil {
		return fmt.Errorf("read the identity: %w", postgres.Explained(err))
	}
	if _, err := keys.Unseal("identity", r.identity, sealed); err != nil {
		return fmt.Errorf("it was written with another key: %w", err)
	}
	return nil
}

// inFolder are the contents of a kind whose blobs are in a folder of the bucket.
func (r *records) inFolder(ctx context.Context, k kind, folder string) (found []content, err error) {
	err = r.each(ctx, func(c content) error { found = append(found, c); return nil },
		k.query+` WHERE inline IS NULL AND blob >= ? AND blob < ?`, folder, folder[:len(folder)-1]+"0") // "0" follows "/"
	return found, err
}

// inRows calls visit for the contents of a kind that have no blob.
func (r *records) inRows(ctx context.Context, k kind, visit func(content) error) error {
	return r.each(ctx, visit, k.query+` WHERE inline IS NOT NULL`)
}

// refers reports whether a record refers to a blob.
func (r *records) refers(ctx context.Context, k kind, key string) (refers bool, err error) {
	err = r.each(ctx, func(content) error { refers = true; return nil }, k.query+` WHERE inline IS NULL AND blob = ?`, key)
	return refers, err
}

func (r *records) each(ctx context.Context, visit func(content) error, query string, args ...any) error {
	rows, err := r.pool.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read records: %w", postgres.Explained(err))
	}
	defer rows.Close()
	for rows.Next() {
		var c content
		if err := rows.Scan(&c.key, &c.size, &c.inline, &c.record, &c.origin); err != nil {
			return err
		}
		if err := visit(c); err != nil {
			return err
		}
	}
	return rows.Err()
}
