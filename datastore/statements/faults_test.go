package statements_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/statements"
)

func open(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	return db
}

// TestBusyDatabase: that others hold the database is worth a retry, and is said once.
func TestBusyDatabase(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "busy.db")
	holder, other := open(t, file), open(t, file)
	for _, query := range []string{`CREATE TABLE t (a)`, `BEGIN EXCLUSIVE`} {
		if _, err := holder.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	row := statements.Row{Row: other.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM t`)}
	err := statements.Explained(row.Scan(&n))
	if !errors.Is(err, holdfast.ErrUnavailable) || strings.Count(err.Error(), "the server's database is busy") != 1 {
		t.Errorf("a read of a database that somebody else holds = %v", err)
	}
	if _, err := holder.ExecContext(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	row = statements.Row{Row: other.QueryRowContext(t.Context(), `SELECT a FROM t`)}
	if err := row.Scan(&n); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a read of an empty table = %v", err)
	}
}

// TestDiskIsExplainedOnce: what is explained already stays as it is.
func TestDiskIsExplainedOnce(t *testing.T) {
	t.Parallel()
	_, err := open(t, filepath.Join(t.TempDir(), "nowhere", "none.db")).ExecContext(t.Context(), `SELECT 1`)
	once := statements.Explained(err)
	var disk *statements.DiskError
	if !errors.As(once, &disk) || disk.DiskProblem() != "the server's disk cannot be read or written" {
		t.Fatalf("a database that cannot be opened = %v", once)
	}
	if twice := statements.Explained(once); twice.Error() != once.Error() {
		t.Errorf("explained again it is %q", twice)
	}
}
