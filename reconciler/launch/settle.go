package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// settle looks at one attempt, and at what was started for it, if there is anything. Others:
// of this runner, some are being executed.
func (l *Launcher) settle(ctx context.Context, a protocol.Ticket, one protocol.Launched, some, others bool) error {
	if a.ExchangedAt.IsZero() {
		return l.settleWaiting(ctx, a, one, some, others)
	}
	return l.settleExecuted(ctx, a, one, some)
}

// settleWaiting is about an attempt whose agent has not called yet. Nothing of it has begun:
// the server keeps its lease, up to a deadline.
func (l *Launcher) settleWaiting(ctx context.Context, a protocol.Ticket, one protocol.Launched, some, others bool) error {
	k := l.knownOf(a.AttemptRef)
	reply, err := l.opts.Dispatcher.Heartbeat(ctx, a.AttemptRef, protocol.Heartbeat{Fence: a.Fence})
	switch {
	case errors.Is(err, holdfast.ErrFenced):
		return nil // it has ended
	case err != nil:
		return err
	case reply.Cancel != "":
		return l.endAndStop(ctx, a.AttemptRef, holdfast.ReasonCanceled, string(reply.Cancel), true)
	case some && (one.Over || one.Dead):
		cause, detail := one.Reason, one.Detail
		if cause == "" {
			cause, detail = holdfast.CauseStartTimeout, "it ended without having called the server"
		}
		return l.endAndStop(ctx, a.AttemptRef, cause, detail, false)
	}
	waits := some && one.Waits || !some && k.waits
	l.blocked = l.blocked || waits
	if waits && others {
		k.since, k.held = time.Now(), true // it starts when one of those has ended
	}
	waited := time.Since(k.since)
	if !k.held && !a.CreatedAt.IsZero() {
		waited = max(waited, l.opts.Now().Sub(a.CreatedAt)) // a former process may have seen it
	}
	if waited > l.opts.Settings.Start {
		return l.late(ctx, a, one)
	}
	switch {
	case l.asked != nil:
		return l.opts.Dispatcher.NoteLaunch(ctx, a.AttemptRef, l.trouble, l.asked.Error())
	case some && (k.started || !k.tried): // else why its start has failed says more
		return l.opts.Dispatcher.NoteLaunch(ctx, a.AttemptRef, one.Reason, one.Detail)
	}
	return nil
}

// late ends an attempt that did not start in time.
func (l *Launcher) late(ctx context.Context, a protocol.Ticket, one protocol.Launched) error {
	cause, detail := one.Reason, one.Detail
	if cause == "" {
		run, err := l.opts.Runs.Run(ctx, a.Run)
		if err != nil {
			return err
		}
		if cause, detail = run.Reason, run.Detail; !cause.IsCause() { // such as that it could not even be asked for
			cause, detail = holdfast.CauseStartTimeout, one.Place
		}
	}
	detail = fmt.Sprintf("it did not start within %s: %s", l.opts.Settings.Start, detail)
	return l.endAndStop(ctx, a.AttemptRef, cause, detail, false)
}

// endAndStop ends an attempt that nobody executes, and stops what was started for it. If
// somebody began to execute it just now, its agent is not stopped in the middle of its work.
func (l *Launcher) endAndStop(ctx context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, detail string, final bool) error {
	err := l.opts.Dispatcher.EndUnstarted(ctx, ref, cause, detail, final)
	switch {
	case errors.Is(err, holdfast.ErrLocked):
		return nil // the next look treats it as any that is executed
	case err != nil && !errors.Is(err, holdfast.ErrFenced):
		return err // it is tried again, and not stopped before: somebody may have begun
	}
	l.knownOf(ref).stopped = true
	return l.stop(ctx, ref)
}

// end ends an attempt that nobody executes, unless somebody began to just now.
func (l *Launcher) end(ctx context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, detail string, final bool) error {
	err := l.opts.Dispatcher.EndUnstarted(ctx, ref, cause, detail, final)
	if errors.Is(err, holdfast.ErrLocked) || errors.Is(err, holdfast.ErrFenced) {
		return nil
	}
	return err
}

// settleExecuted is about an attempt whose agent has called. Its own heartbeats count, and it
// is ended only if its processes are proven to be dead.
func (l *Launcher) settleExecuted(ctx context.Context, a protocol.Ticket, one protocol.Launched, some bool) error {
	k, now := l.knownOf(a.AttemptRef), time.Now()
	if some && one.Dead && l.executes(ctx, a, one) {
		if k.deadAt.IsZero() {
			k.deadAt = now
		}
		if now.Sub(k.deadAt) < lastWord {
			return nil
		}
		detail := one.Detail
		if detail == "" {
			detail = "its container ended without having sent a result"
		}
		err := l.opts.Dispatcher.EndDead(ctx, a.AttemptRef, one.Reason, detail)
		if errors.Is(err, holdfast.ErrFenced) {
			return nil
		}
		return err
	}
	if now.Sub(k.readAt) < max(recordEvery, 10*l.opts.Settings.Every) {
		return nil
	}
	k.readAt = now
	run, err := l.opts.Runs.Run(ctx, a.Run)
	switch {
	case err != nil:
		return err
	case run.Cancel == "" || run.Ref() != a.AttemptRef || k.stopped:
		return nil
	case k.cancel.IsZero():
		k.cancel = now // the answer to the next heartbeat tells the agent
		return nil
	case now.Sub(k.cancel) < l.opts.Settings.Grace:
		return nil
	}
	k.stopped = true
	return l.stop(ctx, a.AttemptRef)
}

// executes reports whether what was started is what has called for an attempt: two launchers
// in two places start something for it each, and the end of one says nothing of the other.
func (l *Launcher) executes(ctx context.Context, a protocol.Ticket, one protocol.Launched) bool {
	if one.Host == "" || a.Host == "" || one.Host == a.Host {
		return true
	}
	if k := l.knownOf(a.AttemptRef); !k.elsewhere {
		k.elsewhere = true
		l.opts.Logger.WarnContext(ctx, "the run is executed by something that was not started here: is there another launcher for this runner?",
			"runner", l.opts.Runner.Name, "run", a.Run, "attempt", a.Attempt, "host", a.Host, "here", one.Host)
	}
	return false
}

// orphan is what still exists although its attempt is over.
type orphan struct {
	since   time.Time
	stopped time.Time // it was last asked to end
}

// clearOrphans stops what exists although its attempt is over; at the runner's current
// place only if the list is complete.
func (l *Launcher) clearOrphans(ctx context.Context, launched []protocol.Launched, sure bool, running map[holdfast.AttemptRef]bool) error {
	kept := map[string]orphan{}
	var errs []error
	if sure {
		for _, one := range launched {
			errs = append(errs, l.clearOrphan(ctx, left{one, l.opts.Jobs}, "", running, kept))
		}
	} else {
		kept = l.orphans
	}
	for _, past := range l.past {
		errs = append(errs, l.clearOrphan(ctx, past, "former ", running, kept))
	}
	l.orphans = kept
	return errors.Join(errs...)
}

// clearOrphan stops one if it has been left over for a while. If it does not end, it is not
// asked again at once.
func (l *Launcher) clearOrphan(ctx context.Context, one left, where string, running map[holdfast.AttemptRef]bool, kept map[string]orphan) error {
	if running[one.Ref()] || one.Over {
		return nil
	}
	name := where + one.Name
	o, known := l.orphans[name]
	if !known {
		o.since = time.Now()
	}
	kept[name] = o
	if time.Since(o.since) < leftAlone || !o.stopped.IsZero() && time.Since(o.stopped) < leftAlone {
		return nil
	}
	run, err := l.opts.Runs.Run(ctx, one.Run)
	switch {
	case err == nil && run.Status == holdfast.RunRunning && run.Attempt == one.Attempt:
		return nil // it was claimed just now
	case err != nil && !errors.Is(err, holdfast.ErrNotFound):
		return err
	}
	o.stopped = time.Now()
	kept[name] = o
	l.opts.Logger.InfoContext(ctx, "what was left over is stopped", "runner", l.opts.Runner.Name, "job", name, "run", one.Run)
	return one.at.Stop(ctx, one.Ref())
}

func (l *Launcher) knownOf(ref holdfast.AttemptRef) *attempt {
	k := l.known[key(ref)]
	if k == nil {
		k = &attempt{since: time.Now()}
		l.known[key(ref)] = k
	}
	return k
}

// forget drops what is known of attempts that are over.
func (l *Launcher) forget(running map[holdfast.AttemptRef]bool) {
	for ref := range l.known {
		if !running[ref] {
			delete(l.known, ref)
		}
	}
}
