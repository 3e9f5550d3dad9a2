//go:build unix

package lobby

import (
	"math"
	"syscall"
)

// openFiles is how many files this process may have open.
func openFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt
	}
	return int(min(limit.Cur, math.MaxInt))
}
