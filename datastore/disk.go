package datastore

import (
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// diskError says that the disk of the database takes nothing, or gives nothing back.
type diskError struct {
	problem string
	err     error
}

func (e *diskError) Error() string { return e.problem + ": " + e.err.Error() }

func (e *diskError) Unwrap() error { return e.err }

// DiskProblem is what is wrong with the disk, in words.
func (e *diskError) DiskProblem() string { return e.problem }

// ofDisk returns err as a diskError if SQLite has it of the disk.
func ofDisk(err error) error {
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return err
	}
	switch failure.Code() & 0xff { // the rest says more than this
	case sqlite3.SQLITE_FULL:
		return &diskError{"the server's disk is full", err}
	case sqlite3.SQLITE_READONLY:
		return &diskError{"the server's disk, or its database, is read-only", err}
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return &diskError{"the server's disk cannot be read or written", err}
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return &diskError{"the server's database is damaged", err}
	default:
		return err
	}
}

// note remembers what was wrong with the disk in the last write.
func (db *database) note(err error) {
	var disk *diskError
	if errors.As(err, &disk) {
		db.disk.Store(disk)
	} else if err == nil {
		db.disk.Store(nil)
	}
}

// DiskProblem is what was wrong with the disk when something was written last; empty if
// nothing was.
func (s *Store) DiskProblem() string {
	if s.db == nil {
		return ""
	}
	if disk := s.db.disk.Load(); disk != nil {
		return disk.problem
	}
	return ""
}
