package datastore

import (
	"bytes"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// TestAnUpgradeLeavesNothingInPlainText: neither the log that is encrypted with it nor what
// was deleted before is in the files afterwards. Without room for that the start is as it
// was, says so, and the next one makes up for it.
func TestAnUpgradeLeavesNothingInPlainText(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	path := formerDatabase(t, secret)
	ring, err := seal.NewKeyring(bytes.Repeat([]byte{'k'}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	start := func(said string, free int64) (found bool) {
		t.Helper()
		logged.Reset()
		opts := Options{Path: path, Keys: ring, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
		if err := opts.complete(); err != nil {
			t.Fatal(err)
		}
		store := newStore(opts)
		store.free = func(string) (int64, bool) { return free, true }
		if err := store.open(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
		for _, closed := range []bool{false, true} { // with the write-ahead log, and without
			if closed {
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{path, path + "-wal"} {
				data, err := os.ReadFile(name)
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				found = found || bytes.Contains(data, []byte(secret))
			}
		}
		if !strings.Contains(logged.String(), said) {
			t.Errorf("the log does not say %q:\n%s", said, logged.String())
		}
		return found
	}
	if !start("keeps unencrypted what former versions have deleted", 1<<20) {
		t.Error("without room for a rewrite nothing is left of what was deleted")
	}
	if start("rewrote the database", 1<<40) {
		t.Error("the secret is in the files after the rewrite")
	}
	if start("", 1<<40) || strings.Contains(logged.String(), "rewr") {
		t.Errorf("it is rewritten again:\n%s", logged.String())
	}
}

// formerDatabase makes a database of the first version that has a secret in a log, and had
// it in others.
func formerDatabase(t *testing.T, secret string) (path string) {
	t.Helper()
	dump, err := os.ReadFile(filepath.Join("testdata", "schema1.sql"))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "holdfast.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	large := strings.Repeat(secret+" ", 1<<14)
	if _, err := db.Exec(string(dump)); err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{large, secret, large} {
		if _, err := db.Exec(`INSERT INTO log_chunks VALUES ('run-0001', 1, ?, ?)`, 100_000*(i+1), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(`DELETE FROM log_chunks WHERE run = 'run-0001' AND end_at IN (100000, 300000)`); err != nil {
		t.Fatal(err)
	}
	return path
}
