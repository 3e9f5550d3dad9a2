package memory

import "golang.org/x/sys/unix"

// roomy reports whether a folder is in memory and has room for tests.
func roomy(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.TMPFS_MAGIC && fs.Bavail*uint64(fs.Bsize) >= least
}
