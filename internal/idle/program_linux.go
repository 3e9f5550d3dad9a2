package idle

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// unmapProgram takes the pages of the program out of this process's memory: its code, and the
// data that nobody can write. Most of them were needed once, by the packages that initialise
// themselves. They stay in the kernel's cache of the file, which has to find another use for
// their memory first, and come back one by one as they are executed.
func unmapProgram() {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return // without /proc they stay
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, m := range unchanged(smaps, program) {
		// What comes of it is seen in the memory alone.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED)
	}
}

// mapping is a part of the address space.
type mapping struct{ from, to uintptr }

// unchanged returns the mappings of files that nobody can write there, and nobody has: what a
// debugger or a probe has changed would come back as it is in the file.
func unchanged(smaps []byte, file string) []mapping {
	var all []mapping
	var at mapping
	for line := range bytes.Lines(smaps) {
		fields := strings.Fields(string(line))
		switch {
		case len(fields) >= 5 && !strings.HasSuffix(fields[0], ":"):
			at = mapping{}
			if mode := fields[1]; len(mode) == 4 && mode[0] == 'r' && mode[1] == '-' && mode[3] == 'p' && strings.Join(fields[5:], " ") == file {
				at = parseMapping(fields[0])
			}
		case len(fields) >= 2 && fields[0] == "Anonymous:" && fields[1] == "0" && at.to > at.from:
			all = append(all, at)
		}
	}
	return all
}

// parseMapping reads what smaps says of an address; the zero value if it cannot.
func parseMapping(span string) mapping {
	low, high, _ := strings.Cut(span, "-")
	from, err := strconv.ParseUint(low, 16, 64)
	if err != nil {
		return mapping{}
	}
	to, err := strconv.ParseUint(high, 16, 64)
	if err != nil {
		return mapping{}
	}
	return mapping{uintptr(from), uintptr(to)}
}
