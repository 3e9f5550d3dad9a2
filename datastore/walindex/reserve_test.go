//go:build linux

package walindex_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/holdfast-dev/holdfast/datastore/walindex"
)

// What SQLite maps has its blocks, and SQLite goes on with a file of that size.
func TestReserve(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	index, err := walindex.Reserve(path)
	if err != nil {
		t.Fatal(err)
	}
	var stat syscall.Stat_t
	if err := syscall.Stat(path+"-shm", &stat); err != nil {
		t.Fatal(err)
	}
	if got := stat.Blocks * 512; got < walindex.Bytes && allocates(t) {
		t.Errorf("%d bytes of the index are allocated, want %d", got, walindex.Bytes)
	}
	var n int
	if _, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (7)"); err != nil {
		t.Error(err)
	}
	if err := db.QueryRowContext(t.Context(), "SELECT n FROM t").Scan(&n); err != nil || n != 7 {
		t.Errorf("SELECT = %d, %v, want 7", n, err)
	}
	if err := errors.Join(db.Close(), index.Close()); err != nil {
		t.Error(err)
	}
}

func TestReserveNeedsTheIndex(t *testing.T) {
	t.Parallel()
	if _, err := walindex.Reserve(filepath.Join(t.TempDir(), "test.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Reserve() = %v, want that there is no index", err)
	}
}

// allocates reports whether the file system of the tests allocates beforehand: not all do.
func allocates(t *testing.T) bool {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return syscall.Fallocate(int(f.Fd()), 0, 0, walindex.Bytes) == nil
}
