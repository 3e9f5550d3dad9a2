//go:build linux && (amd64 || arm64)

package stage

import (
	"syscall"
	"unsafe"
)

// What linux/seccomp.h and linux/bpf_common.h call these.
const (
	prSetSeccomp      = 22
	seccompModeFilter = 2
	seccompRetAllow   = 0x7fff0000
	seccompRetErrno   = 0x00050000

	bpfLoad   = 0x20 // BPF_LD | BPF_W | BPF_ABS: load a word of seccomp_data
	bpfEqual  = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	bpfAtMost = 0x35 // BPF_JMP | BPF_JGE | BPF_K
	bpfReturn = 0x06 // BPF_RET | BPF_K

	dataNumber, dataArch = 0, 4 // offsets in seccomp_data

	x32 = 0x40000000 // set in the numbers of amd64's third kind of calls, whose arch is amd64's
)

// calls are numbers of system calls, of programs of one architecture.
type calls struct {
	arch    uint32 // AUDIT_ARCH_* of linux/audit.h
	numbers [4]uint32
}

// refuseLasting refuses the system calls with which an engine could leave something for
// the next one of its user that neither its own namespace nor a look for files and
// processes ends: keys, which the kernel keeps by user, and POSIX message queues. Docker's
// default profile refuses the former, too. Other filters stay in force.
func refuseLasting() syscall.Errno {
	program := make([]syscall.SockFilter, 0, 32)
	add := func(code uint16, k uint32, yes, no uint8) {
		program = append(program, syscall.SockFilter{Code: code, K: k, Jt: yes, Jf: no})
	}
	const refusal = seccompRetErrno | uint32(syscall.EPERM)
	for _, c := range lasting {
		add(bpfLoad, dataArch, 0, 0)
		add(bpfEqual, c.arch, 0, uint8(4+2*len(c.numbers))) // else on to the next architecture
		add(bpfLoad, dataNumber, 0, 0)
		add(bpfAtMost, x32, 0, 1)
		add(bpfReturn, refusal, 0, 0)
		for _, number := range c.numbers {
			add(bpfEqual, number, 0, 1)
			add(bpfReturn, refusal, 0, 0)
		}
		add(bpfReturn, seccompRetAllow, 0, 0)
	}
	add(bpfReturn, seccompRetAllow, 0, 0)
	filter := syscall.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return prctl(prSetSeccomp, seccompModeFilter, uintptr(unsafe.Pointer(&filter)))
}
