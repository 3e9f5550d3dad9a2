//go:build linux

package stage

import "syscall"

// lasting are the calls of refuseLasting: add_key, request_key, keyctl, mq_open.
var lasting = [...]calls{
	{arch: 0xc000003e, numbers: [...]uint32{syscall.SYS_ADD_KEY, syscall.SYS_REQUEST_KEY, syscall.SYS_KEYCTL, syscall.SYS_MQ_OPEN}},
	{arch: 0x40000003, numbers: [...]uint32{286, 287, 288, 277}}, // of 32-bit programs
}
