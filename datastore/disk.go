package datastore

import "cmp"

// DiskProblem is what was wrong with the disk, or the database, when something was written lately; empty if
// nothing was.
func (s *Store) DiskProblem() string {
	if s.db == nil {
		return ""
	}
	silent := ""
	if s.db.server != nil && s.db.server.Silent() {
		silent = "the server's database does not answer"
	}
	return cmp.Or(s.db.disk.Problem(), silent)
}
