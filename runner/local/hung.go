package local

import (
	"context"
	"syscall"
	"time"
)

// hung watches for an agent that runs, as far as the kernel knows, and does nothing.
type hung struct {
	pid   int
	alive time.Time // of its lock file: an agent that is well moves it on
	signs uint64    // that the server has heard
	quiet int       // polls in a row in which neither has changed
}

// ping looks whether the agent has given a sign of life since the last poll: to us,
// in its folder, or to the server, by claims, by saying that it is there and by the
// heartbeats of its runs. A busy one does all three. One without any is killed, and
// so replaced. Polls are counted, not time: if this process was held up itself, or
// the disk of the folder, nobody was silent.
func (p *Process) ping(ctx context.Context, h *hung) {
	if p.opts.Signs == nil {
		return
	}
	now, pid, signs := time.Now(), p.PID(), p.opts.Signs()
	if pid <= 1 || !p.lives() || p.root.Chtimes(".", now, now) != nil {
		h.quiet = 0 // it starts, has ended, or cannot show anything
		return
	}
	info, err := p.root.Lstat(lockFile)
	if err != nil {
		h.quiet = 0
		return
	}
	if pid != h.pid || signs != h.signs || !info.ModTime().Equal(h.alive) {
		*h = hung{pid: pid, signs: signs, alive: info.ModTime()}
		return
	}
	if h.quiet++; h.quiet < int(p.opts.Silence/pollEvery) {
		return
	}
	h.quiet = 0
	p.opts.Logger.WarnContext(ctx, "agent has stopped working and is replaced", "agent", pid, "duration", p.opts.Silence)
	if err := p.signal(pid, syscall.SIGKILL); err != nil {
		p.opts.Logger.ErrorContext(ctx, "hung agent could not be killed", "agent", pid, "err", err)
	}
}
