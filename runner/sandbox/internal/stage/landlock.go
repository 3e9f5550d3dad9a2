//go:build linux

package stage

import (
	"syscall"
	"unsafe"
)

const (
	sysLandlockCreate   = 444
	sysLandlockAddRule  = 445
	sysLandlockRestrict = 446

	landlockVersion = 1 // flag of landlock_create_ruleset: return the ABI

	scopeAbstractSockets = 1
	scopeSignals         = 2

	// Rights on files, by bit.
	accessExecute   = 1 << 0
	accessWriteFile = 1 << 1
	accessReadFile  = 1 << 2
	accessReadDir   = 1 << 3
	accessMakeChar  = 1 << 6
	accessMakeBlock = 1 << 11
	accessTruncate  = 1 << 14
	accessIoctl     = 1 << 15
	accessAll       = 1<<16 - 1

	accessFiles = accessExecute | accessWriteFile | accessReadFile | accessTruncate | accessIoctl
)

// LandlockScope is the first version of Landlock that scopes signals. Below
// it, an engine of the agent's user could end the agent, and nothing could end
// what the engine left.
const LandlockScope = 6

// LandlockABI returns the version of Landlock, 0 if there is none.
func LandlockABI() int {
	abi, _, errno := syscall.RawSyscall(sysLandlockCreate, 0, 0, landlockVersion)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

type ruleset struct{ files, network, scoped uint64 }

// ScopeSignals puts the calling thread, and what it starts, into a domain
// whose signals reach nothing outside of it. The thread can be used for
// nothing else afterwards.
func ScopeSignals() syscall.Errno {
	if errno := prctl(prSetNoNewPrivs, 1, 0); errno != 0 {
		return errno
	}
	fd, errno := createRuleset(ruleset{scoped: scopeSignals})
	if errno != 0 {
		return errno
	}
	defer syscall.Close(fd)
	_, _, errno = syscall.RawSyscall(sysLandlockRestrict, uintptr(fd), 0, 0)
	return errno
}

func createRuleset(r ruleset) (int, syscall.Errno) {
	fd, _, errno := syscall.RawSyscall(sysLandlockCreate, uintptr(unsafe.Pointer(&r)), unsafe.Sizeof(r), 0)
	return int(fd), errno
}

// landlock puts the calling thread into a domain that reaches the mounts of
// spec, and no processes outside of it.
func landlock(spec *Spec) (string, syscall.Errno) {
	rules, errno := createRuleset(ruleset{files: accessAll, scoped: scopeAbstractSockets | scopeSignals})
	if errno != 0 {
		return "make a Landlock domain", errno
	}
	defer syscall.Close(rules)
	for _, m := range spec.Mount {
		fd, err := syscall.Open(m.Source, oPath|syscall.O_CLOEXEC, 0)
		if err == syscall.ENOENT && m.Optional {
			continue
		}
		if err != nil {
			return "open " + m.Source, toErrno(err)
		}
		errno := allow(rules, fd, m.Kind)
		_ = syscall.Close(fd)
		if errno != 0 {
			return "allow " + m.Source, errno
		}
	}
	_, _, errno = syscall.RawSyscall(sysLandlockRestrict, uintptr(rules), 0, 0)
	return "enter a Landlock domain", errno
}

const oPath = 0x200000

// allow adds what a mount of kind allows below the file of fd.
func allow(rules, fd, kind int) syscall.Errno {
	var access uint64
	switch kind {
	case ReadWrite:
		access = accessAll &^ (accessMakeChar | accessMakeBlock | accessIoctl)
	case Device:
		access = accessReadFile | accessWriteFile | accessTruncate
	default:
		access = accessExecute | accessReadFile | accessReadDir
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		return toErrno(err)
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		access &= accessFiles
	}
	// The structure is packed: 64 bits of rights, then the descriptor.
	var rule [12]byte
	for i := range 8 {
		rule[i] = byte(access >> (8 * i))
	}
	for i := range 4 {
		rule[8+i] = byte(uint32(fd) >> (8 * i))
	}
	const pathBeneath = 1
	_, _, errno := syscall.RawSyscall6(sysLandlockAddRule, uintptr(rules), pathBeneath,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	return errno
}
