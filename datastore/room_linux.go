package datastore

import "syscall"

// freeBytes is how much room a folder has for our files; false if that is not known.
func freeBytes(dir string) (int64, bool) {
	var files syscall.Statfs_t
	if syscall.Statfs(dir, &files) != nil {
		return 0, false
	}
	return int64(files.Bavail) * files.Bsize, true
}
