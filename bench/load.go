package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// quiet is the share of the processors that others may use while a part is measured.
const quiet = 0.05

// ticksPerSecond is USER_HZ, the same on all that Linux runs on.
const ticksPerSecond = 100

// load is how much processor time the machine had and used since it started, in ticks.
type load struct {
	capacity int64 // of all processors, idle or not
	busy     int64 // used by processes, or taken by other machines on the same processors
	own      int64 // of this process and its descendants, also of those that have ended
	kernel   int64 // of the kernel's own threads
}

// machineLoad reads the load of this machine.
func machineLoad() (load, error) { return readLoad(os.DirFS("/proc"), os.Getpid()) }

// readLoad reads the load from a /proc. Time of a process that has ended is its parent's
// once that has waited for it. Orphans are descendants as well, see adoptOrphans.
func readLoad(proc fs.FS, self int) (load, error) {
	data, err := fs.ReadFile(proc, "stat")
	if err != nil {
		return load{}, fmt.Errorf("read the load: %w", err)
	}
	l, err := parseLoad(string(data))
	if err != nil {
		return load{}, err
	}
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return load{}, fmt.Errorf("read the load: %w", err)
	}
	all := make(map[int]process)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		data, err := fs.ReadFile(proc, entry.Name()+"/stat")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended, and is a part of its parent's time
		}
		if err != nil {
			return load{}, fmt.Errorf("read the load: %w", err)
		}
		if all[pid], err = parseProcess(string(data)); err != nil {
			return load{}, fmt.Errorf("read the load: process %d: %w", pid, err)
		}
	}
	for pid, p := range all {
		switch {
		case p.kernel:
			l.kernel += p.own
		case descends(all, pid, self):
			l.own += p.own + p.children
		}
	}
	return l, nil
}

// descends reports whether a process is from, or below it.
func descends(all map[int]process, pid, from int) bool {
	for range len(all) { // a table that changes while it is read could have a circle
		if pid == from || pid == 0 {
			break
		}
		pid = all[pid].parent
	}
	return pid == from
}

// parseLoad reads the first line of /proc/stat. Interrupts are nobody's: the kernel counts
// them apart from the processes that they were for.
func parseLoad(text string) (load, error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return load{}, fmt.Errorf("read the load: %q is not the time of all processors", line)
	}
	var l load
	for i, name := range []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"} {
		ticks, err := strconv.ParseInt(fields[1+i], 10, 64)
		if err != nil {
			return load{}, fmt.Errorf("read the load: %s: %w", name, err)
		}
		l.capacity += ticks
		switch name {
		case "user", "nice", "system", "steal":
			l.busy += ticks
		}
	}
	return l, nil
}

func (l load) since(before load) load {
	return load{l.capacity - before.capacity, l.busy - before.busy, l.own - before.own, l.kernel - before.kernel}
}

// others is the share of the processors that others used. The kernel's threads write what
// we have written: they are not counted as others.
func (l load) others() float64 {
	if l.capacity <= 0 {
		return 0
	}
	return max(0, float64(l.busy-l.own-l.kernel)/float64(l.capacity))
}

// process is what /proc/PID/stat says of a process. Times are in ticks.
type process struct {
	parent        int
	kernel        bool // a thread of the kernel
	own, children int64
}

// parseProcess reads a /proc/PID/stat. The name of the program, in brackets, can have spaces
// and brackets in it.
func parseProcess(text string) (process, error) {
	const kernelThread = 0x00200000 // PF_KTHREAD
	end := strings.LastIndex(text, ")")
	fields := strings.Fields(text[end+1:]) // the first is the third field of the file
	if end < 0 || len(fields) < 15 {
		return process{}, fmt.Errorf("%q has too few fields", text)
	}
	number := func(field int) (n int64) {
		var err error
		if n, err = strconv.ParseInt(fields[field-3], 10, 64); err != nil {
			end = -1
		}
		return n
	}
	p := process{
		parent: int(number(4)), kernel: number(9)&kernelThread != 0,
		own: number(14) + number(15), children: number(16) + number(17),
	}
	if end < 0 {
		return process{}, fmt.Errorf("%q: not the times of a process", text)
	}
	return p, nil
}

// ticks are a time that the kernel has counted.
func ticks(n int64) time.Duration { return time.Duration(n) * time.Second / ticksPerSecond }
