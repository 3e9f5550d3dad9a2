// Heartbeats, and whether an apply may begin.

package uplink

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// lease is an attempt's right to continue: it is renewed by heartbeats, and lost when
// they are not answered for too long or the server has fenced the attempt off. It
// cancels the execution when the server or the lease wants it. It is safe for
// concurrent use.
type lease struct {
	Claimed
	dir     string // of the attempt
	disk    Disk
	process string // of the agent
	client  *Client
	logger  *slog.Logger
	now     func() time.Time
	kick    chan struct{} // of one: beat now

	mu         sync.Mutex
	step       string
	beaten     time.Time // when the last beat was sent
	answered   time.Time // when the last beat that was answered was sent
	answeredAt time.Time // the same by the wall clock
	mayApply   bool      // as that answer says
	begun      bool      // MayApply has said true
	fenced     bool
	ending     bool                    // the result is on its way: to be fenced off is its outcome
	stop       context.CancelCauseFunc // of the execution; nil if there is none
	stopped    *failure.StopError
}

// executes notes how the execution is canceled; nil: there is none.
func (l *lease) executes(stop context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop = stop
}

// hasBegun reports whether the engine's apply may have begun.
func (l *lease) hasBegun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun
}

// wasFenced reports whether the server has given up the attempt.
func (l *lease) wasFenced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fenced
}

// end notes that the result is on its way, and reports whether the server had given
// the attempt up before.
func (l *lease) end() (fenced bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
	return l.fenced
}

// mayBegin reports whether the apply may begin: the lease is good and the
// server agrees. It is written down before it is said, and after all else that is to be
// there of an apply that has begun. The error is the disk's.
func (l *lease) mayBegin() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if good := l.isGood(); !good || l.begun {
		return good, nil
	}
	if err := WriteFile(filepath.Join(l.dir, applyingFile), nil, l.disk); err != nil {
		return false, err
	}
	l.begun = true
	return true, nil
}

// good reports whether the apply could begin now.
func (l *lease) good() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isGood()
}

// isGood is good. Callers hold mu.
func (l *lease) isGood() bool {
	if l.begun {
		return l.stopped == nil
	}
	if !l.Kind.Writes() || l.fenced || l.stopped != nil {
		return false
	}
	if !l.mayApply || l.lostLease() || l.timeJumped() {
		l.beatSoon()
		return false
	}
	return true
}

// lostLease reports whether another may hold the lease. Callers hold mu.
func (l *lease) lostLease() bool { return time.Since(l.answered) >= l.Lease*3/4 }

// timeJumped reports whether wall clock and monotonic clock disagree about the
// time since the last answered beat: the machine may have been suspended, which
// the latter does not see. It is not a reason to stop, but to ask the server before
// an apply begins. Callers hold mu.
func (l *lease) timeJumped() bool {
	wall := l.now().Round(0).Sub(l.answeredAt.Round(0))
	return (wall - time.Since(l.answered)).Abs() >= l.Lease/4
}

// beatSoon asks for a beat now unless one has just been sent. Callers hold mu.
func (l *lease) beatSoon() {
	if time.Since(l.beaten) < l.Lease/60 {
		return
	}
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// halt cancels the execution, if there is one; the first cause stays.
func (l *lease) halt(cause *failure.StopError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil || l.stopped != nil {
		return
	}
	l.stopped = cause
	l.stop(cause)
	l.logger.Warn("attempt has to stop", "reason", cause.Reason)
}

// beat sends heartbeats until ctx is done or the server fences the attempt
// off.
func (l *lease) beat(ctx context.Context) {
	every := l.Lease / 6
	for {
		l.mu.Lock()
		sent, sentAt := time.Now(), l.now()
		l.beaten = sent
		limit := 2 * every
		if left := l.Lease*3/4 - time.Since(l.answered); left > 0 {
			limit = min(limit, left)
		}
		step := l.step
		l.mu.Unlock()

		try, cancel := context.WithTimeout(ctx, limit)
		reply, err := l.client.heartbeat(try, l.AttemptRef, l.Token, protocol.Heartbeat{Step: step, Process: l.process})
		cancel()
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, holdfast.ErrFenced) {
			l.fence()
			return
		}
		wait := l.takeIn(sent, sentAt, reply, err)
		select {
		case <-time.After(wait):
		case <-l.kick:
		case <-ctx.Done():
			return
		}
	}
}

// takeIn acts on what came of a beat and returns when to send the next one.
func (l *lease) takeIn(sent, sentAt time.Time, reply protocol.HeartbeatReply, err error) time.Duration {
	every := l.Lease / 6
	l.mu.Lock()
	if err == nil {
		l.answered, l.answeredAt, l.mayApply = sent, sentAt, reply.MayApply
		l.mu.Unlock()
		if reply.Cancel != "" {
			l.halt(&failure.StopError{Reason: holdfast.ReasonCanceled, Detail: string(reply.Cancel)})
		}
		return every
	}
	lost := l.lostLease()
	left := l.Lease*3/4 - time.Since(l.answered)
	l.mu.Unlock()

	if !lost {
		l.logger.Debug("heartbeat was not answered", "err", err)
	}
	if lost && !l.Kind.Writes() {
		l.halt(&failure.StopError{Reason: holdfast.ReasonLeaseLost, Detail: "the server was out of reach for too long"})
	}
	if !lost {
		every = min(every, left)
	}
	return max(min(every, 2*time.Second), 10*time.Millisecond)
}

func (l *lease) fence() {
	l.mu.Lock()
	ending := l.ending
	if !ending {
		l.fenced = true
	}
	l.mu.Unlock()
	if ending {
		return
	}
	l.logger.Warn("attempt was fenced off")
	l.halt(&failure.StopError{Reason: holdfast.ReasonLeaseLost, Detail: "the server has given up the attempt"})
}

// noteStep notes the step and lets the server know soon.
func (l *lease) noteStep(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.step != name {
		l.step = name
		l.beatSoon()
	}
}
