package initcache

import "syscall"

// changed returns a file's change time in nanoseconds.
func changed(stat *syscall.Stat_t) int64 { return stat.Ctim.Nano() }
