package statements

import (
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/holdfast-dev/holdfast"
)

// DiskError says that the disk of the database takes nothing, or gives nothing back.
type DiskError struct {
	problem string
	err     error
}

func (e *DiskError) Error() string { return e.problem + ": " + e.err.Error() }

func (e *DiskError) Unwrap() error { return e.err }

// DiskProblem is what is wrong with the disk, in words.
func (e *DiskError) DiskProblem() string { return e.problem }

// Explained returns err as a DiskError if SQLite has it of the disk, and as an
// ErrUnavailable if the database is busy for longer than a query waits. What is
// explained already stays as it is.
func Explained(err error) error {
	var failure *sqlite.Error
	if explained := new(DiskError); errors.As(err, &explained) || !errors.As(err, &failure) {
		return err
	}
	switch failure.Code() & 0xff { // the rest says more than this
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		if errors.Is(err, holdfast.ErrUnavailable) {
			return err
		}
		return fmt.Errorf("the server's database is busy: %w: %w", holdfast.ErrUnavailable, err)
	case sqlite3.SQLITE_FULL:
		return &DiskError{"the server's disk is full", err}
	case sqlite3.SQLITE_READONLY:
		return &DiskError{"the server's disk, or its database, is read-only", err}
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return &DiskError{"the server's disk cannot be read or written", err}
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return &DiskError{"the server's database is damaged", err}
	default:
		return err
	}
}

// Row is a row whose error is [Explained].
type Row struct{ *sql.Row }

// Scan is that of the row.
func (r Row) Scan(dest ...any) error { return Explained(r.Row.Scan(dest...)) }
