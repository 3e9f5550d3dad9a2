package local

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// stopped watches for an agent that is alive and does nothing, since somebody
// has sent it a SIGSTOP.
type stopped struct {
	pid     int
	seen    int       // polls in a row
	resumed time.Time // when it was last continued; zero: not yet
}

// stoppedPolls is for how many polls in a row an agent may be stopped.
const stoppedPolls = 2

// mind has a stopped agent continue: nothing that it executes is lost. One that is
// stopped again soon after is killed, and so replaced; its runs end by the rules
// for a dead agent's.
func (p *Process) mind(ctx context.Context, s *stopped) {
	pid := p.PID()
	if pid != s.pid {
		*s = stopped{pid: pid}
	}
	if pid <= 1 || !isStopped(pid) {
		s.seen = 0
		return
	}
	if s.seen++; s.seen < stoppedPolls {
		return
	}
	s.seen = 0
	sig := syscall.SIGCONT
	if !s.resumed.IsZero() && time.Since(s.resumed) < settledAfter {
		sig = syscall.SIGKILL
		p.opts.Logger.WarnContext(ctx, "agent was stopped again and is replaced", "agent", pid)
	} else {
		p.opts.Logger.WarnContext(ctx, "agent was stopped and is continued", "agent", pid)
	}
	s.resumed = time.Now()
	if err := p.signal(pid, sig); err != nil {
		p.opts.Logger.ErrorContext(ctx, "stopped agent could not be signalled", "agent", pid, "err", err)
	}
}

// isStopped reports whether a process is stopped by a signal or by a tracer.
func isStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	i := strings.LastIndexByte(string(stat), ')') // its name may have any character in it
	rest := strings.TrimSpace(string(stat[i+1:]))
	return strings.HasPrefix(rest, "T") || strings.HasPrefix(rest, "t")
}
