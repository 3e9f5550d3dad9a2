package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is the processor time of a server and its agents until now. What agents start,
// sandboxes and engines, is apart.
type usage struct{ server, agents, started time.Duration }

func (u usage) since(before usage) usage {
	return usage{u.server - before.server, u.agents - before.agents, u.started - before.started}
}

// usage reads the processor time of the server and its local agents. It counts in
// hundredths of a second, so that a single cluster tells little.
func (w *world) usage() usage {
	var u usage
	u.server, _ = w.processorTime(w.cmd.Process.Pid)
	for _, pid := range w.agents() {
		own, children := w.processorTime(pid)
		u.agents, u.started = u.agents+own, u.started+children
	}
	return u
}

// agents returns the processes of the local agents, by the locks on their folders.
func (w *world) agents() []int {
	locks, err := filepath.Glob(w.path("data", "agent*", "agent.lock"))
	w.check(err)
	var pids []int
	for _, lock := range locks {
		data, err := os.ReadFile(lock)
		w.check(err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		w.check(err)
		pids = append(pids, pid)
	}
	return pids
}

// processorTime returns what a process, and its children that have ended, took.
func (s *stage) processorTime(pid int) (own, children time.Duration) {
	const perSecond = 100 // USER_HZ, the same on all that Linux runs on
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	s.check(err)
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest) // the first is the third field of the file
	var ticks [4]time.Duration     // utime, stime, cutime, cstime
	for i := range ticks {
		n, err := strconv.Atoi(fields[11+i])
		s.check(err)
		ticks[i] = time.Duration(n) * time.Second / perSecond
	}
	return ticks[0] + ticks[1], ticks[2] + ticks[3]
}

// perCluster returns the processor time that n clusters took, for each of them.
func perCluster(what string, n int, rounds []usage) []figure {
	share := func(name string, of func(usage) time.Duration) figure {
		var values []float64
		for _, u := range rounds {
			values = append(values, of(u).Seconds()*1000/float64(n))
		}
		return figure{Name: what + ": " + name, N: n, Unit: "ms", Value: median(values)}
	}
	return []figure{
		share("processor time of the server per cluster", func(u usage) time.Duration { return u.server }),
		share("of the agents", func(u usage) time.Duration { return u.agents }),
		share("of sandboxes and engines", func(u usage) time.Duration { return u.started }),
	}
}
