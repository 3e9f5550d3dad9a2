package datastore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/datastore/statements"
)

// A disk that is full is told in words, until something can be written again.
func TestDiskProblem(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := openSQLite(ctx, filepath.Join(t.TempDir(), "full.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.close() })
	store := &Store{records: &records{db: db}}
	write := func(query string) error {
		return db.write(ctx, func(ctx context.Context, q querier) error {
			_, err := q.exec(ctx, query)
			return err
		})
	}
	problem := func(err error) string {
		var disk interface{ DiskProblem() string }
		errors.As(err, &disk)
		if disk == nil {
			return ""
		}
		return disk.DiskProblem()
	}
	if err := write(`CREATE TABLE t (a BLOB)`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.durable.DB.ExecContext(ctx, `PRAGMA max_page_count = 3`); err != nil {
		t.Fatal(err)
	}
	err = write(`INSERT INTO t VALUES (zeroblob(100000))`)
	if got := problem(err); got != "the server's disk is full" || store.DiskProblem() != got {
		t.Errorf("a write to a full disk = %v, known as %q", err, store.DiskProblem())
	}
	if err := write(`nonsense`); problem(err) != "" || store.DiskProblem() == "" {
		t.Errorf("another error = %v, the disk is %q", err, store.DiskProblem())
	}
	if err := write(`INSERT INTO t VALUES (1)`); err != nil || store.DiskProblem() != "" {
		t.Errorf("a write that succeeds = %v, the disk is %q", err, store.DiskProblem())
	}
	if _, err := db.durable.DB.ExecContext(ctx, `PRAGMA query_only = 1`); err != nil {
		t.Fatal(err)
	}
	if err := write(`INSERT INTO t VALUES (2)`); problem(err) != "the server's disk, or its database, is read-only" {
		t.Errorf("a write that may not = %v", err)
	}
}

// What cannot be read is told in the same words.
func TestDiskProblemOfARead(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), filepath.Join(t.TempDir(), "damaged.db")
	db, err := openSQLite(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.close() })
	for _, query := range []string{`CREATE TABLE t (a BLOB)`, `INSERT INTO t VALUES (zeroblob(100000))`, `PRAGMA wal_checkpoint(TRUNCATE)`} {
		if _, err := db.durable.DB.ExecContext(ctx, query); err != nil {
			t.Fatal(err)
		}
	}
	pages, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pages.WriteAt(bytes.Repeat([]byte("damaged "), 12800), 4096); err != nil { // all but the schema
		t.Fatal(err)
	}
	if err := pages.Close(); err != nil {
		t.Fatal(err)
	}
	all := func(ctx context.Context, q querier) error {
		return q.each(ctx, func(scanner) error { return nil }, `SELECT a FROM t`)
	}
	var a []byte
	for name, err := range map[string]error{
		"a snapshot": db.read(ctx, all),
		"a list":     all(ctx, db.reader()),
		"a row":      db.reader().row(ctx, `SELECT a FROM t`).Scan(&a),
	} {
		var disk *statements.DiskError
		if !errors.As(err, &disk) || disk.DiskProblem() != "the server's database is damaged" {
			t.Errorf("%s of a damaged database = %v", name, err)
		}
	}
}
