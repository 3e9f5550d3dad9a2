//go:build linux && !amd64 && !arm64

package stage

import "syscall"

// refuseLasting refuses nothing: the numbers of this architecture's calls are not known
// here.
func refuseLasting() syscall.Errno { return 0 }
