package datastore

import (
	"errors"

	"github.com/holdfast-dev/holdfast/datastore/statements"
)

// note remembers what was wrong with the disk in the last write.
func (db *database) note(err error) {
	var disk *statements.DiskError
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
		return disk.DiskProblem()
	}
	return ""
}
