package datastore

import "errors"

// note remembers what was wrong with the disk, or the database, in the last write.
func (db *database) note(err error) {
	var disk interface{ DiskProblem() string }
	if errors.As(err, &disk) {
		problem := disk.DiskProblem()
		db.disk.Store(&problem)
	} else if err == nil {
		db.disk.Store(nil)
	}
}

// DiskProblem is what was wrong with the disk, or the database, when something was written last; empty if
// nothing was.
func (s *Store) DiskProblem() string {
	if s.db == nil {
		return ""
	}
	if disk := s.db.disk.Load(); disk != nil {
		return *disk
	}
	if s.db.server != nil && s.db.server.Silent() {
		return "the server's database does not answer"
	}
	return ""
}
