package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// sweep is how a Dispatcher deals with attempts that nobody reports.
type sweep struct{ *Dispatcher }

// Sweep looks for running attempts whose leases have ended silently, and deals with
// them, and for queued runs that nobody executes. It is to be called several times
// within a lease, and by one goroutine.
func (d *Dispatcher) Sweep(ctx context.Context) error {
	d.results.recordOwed(ctx)
	running, err := sweep{d}.attempts(ctx)
	if err != nil {
		return err
	}
	errs := []error{roll{d}.refresh(ctx), d.seeBreakers(ctx)}
	switch sweeps := d.opts.Fleet.Sweeps(); {
	case !sweeps:
		d.idle = true
		return errors.Join(errs...)
	case d.idle: // perhaps no sign of life could be recorded until now
		d.idle, d.waiting = false, true
		d.signs.missed()
	}
	for _, a := range running {
		silence, _ := d.signs.unheard(a.ref)
		if silence <= d.opts.Limits.Lease {
			continue
		}
		run, some, err := sweep{d}.stillRunning(ctx, a.ref)
		if some {
			err = sweep{d}.silent(ctx, d.LastSign(run), a.heartbeatAt)
		}
		errs = append(errs, err)
	}
	errs = append(errs, sweep{d}.unserved(ctx))
	return errors.Join(errs...)
}

// attempt is a running one, as the records list it without decoding any run.
type attempt struct {
	ref         holdfast.AttemptRef
	agent       string
	heartbeatAt time.Time
}

// attempts lists the running ones and records their signs of life.
func (d sweep) attempts(ctx context.Context) (running []attempt, err error) {
	err = d.opts.Store.EachRunning(ctx, func(ref holdfast.AttemptRef, agent string, heartbeatAt time.Time) {
		running = append(running, attempt{ref, agent, heartbeatAt})
	})
	if err != nil {
		if ctx.Err() == nil {
			d.signs.missed()
		}
		return nil, fmt.Errorf("list running attempts: %w", err)
	}
	d.signs.observe(running)
	return running, nil
}

// stillRunning reads the run of an attempt; it is false if the attempt is over.
func (d sweep) stillRunning(ctx context.Context, ref holdfast.AttemptRef) (holdfast.Run, bool, error) {
	run, err := d.opts.Store.Run(ctx, ref.Run)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return run, false, nil
	case err != nil:
		return run, false, fmt.Errorf("read run %s: %w", ref.Run, err)
	}
	return run, run.Status == holdfast.RunRunning && run.Ref() == ref, nil
}

// unserved says on queued runs, for people to see, that no living agent executes
// them, and takes it back when one does. It reads the queue only if a kind of runs of a
// runner with some is executed by nobody, or was.
func (d sweep) unserved(ctx context.Context) error {
	types, err := d.places.types(ctx)
	if err != nil {
		return err
	}
	if served, err := d.allServed(ctx, types); err != nil || served && !d.waiting {
		return err
	}
	queued, err := d.opts.Store.Runs(ctx, holdfast.RunFilter{
		Statuses: []holdfast.RunStatus{holdfast.RunQueued}, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list queued runs: %w", err)
	}
	d.waiting = false
	told := false
	known, now := d.known(), d.opts.Now()
	for _, run := range queued {
		said, why := run.Reason == holdfast.ReasonNoAgent, d.nobodyFor(run, types)
		switch {
		case said && why == "":
			run.Reason, run.Detail = "", ""
		case !said && why != "" && known && now.Sub(run.CreatedAt).Abs() > agentSilence:
			run.Reason, run.Detail = holdfast.ReasonNoAgent, why
			d.waiting = true
			if !told { // the others are in the records
				told = true
				d.opts.Logger.WarnContext(ctx, "runs wait for an agent", "run", run.ID, "cluster", run.Cluster, "kind", run.Kind,
					"detail", run.Detail)
			}
		default:
			d.waiting = d.waiting || said
			continue
		}
		if run, err = d.opts.Store.UpdateRun(ctx, run); errors.Is(err, holdfast.ErrConflict) {
			d.waiting = true // it has changed; the next sweep looks again
			continue
		} else if err != nil {
			return fmt.Errorf("record that run %s waits for an agent: %w", run.ID, err)
		}
		d.opts.Fleet.Changed(ctx, run)
	}
	return nil
}

// silent deals with an attempt whose lease has ended silently: heard is its last sign of life
// that the records had. What cannot write is queued again. What can write is released only if
// it certainly writes no more: in our own backend, when nothing holds the state's lock (the
// attempt's credential ends with the attempt). Elsewhere we wait for its agent, or for a
// person who unlocks. Another replica may have heard of it, or have ended it, meanwhile.
func (d sweep) silent(ctx context.Context, run holdfast.Run, heard time.Time) error {
	if run.Kind.Writes() && !holdfast.OwnState(run.StateLocation) {
		return d.markSilent(ctx, run)
	}
	why := "its agent has been silent since " + run.HeartbeatAt.UTC().Format(time.TimeOnly) + " UTC"
	_, err := d.end(ctx, run.Ref(), run, killed(run, why), func(
		ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource,
	) (holdfast.Run, error) {
		return d.opts.Store.EndSilent(ctx, ref, run, resources, heard)
	})
	switch {
	case errors.Is(err, holdfast.ErrLocked):
		return d.markSilent(ctx, run)
	case errors.Is(err, holdfast.ErrHeard), errors.Is(err, holdfast.ErrFenced):
		return nil
	}
	return err
}

// markSilent says on a run, for people to see, that it is silent and that only its
// agent or a person may end it.
func (d sweep) markSilent(ctx context.Context, run holdfast.Run) error {
	if run.Reason == holdfast.ReasonAgentSilent {
		return nil
	}
	run.Reason = holdfast.ReasonAgentSilent
	run.Detail = "its agent has not responded since " + run.HeartbeatAt.UTC().Format(time.DateTime) + " UTC"
	_, err := d.opts.Store.UpdateRun(ctx, run)
	if errors.Is(err, holdfast.ErrConflict) {
		return nil // it was heard of, or the next sweep says it
	} else if err != nil {
		return fmt.Errorf("record the silence of run %s: %w", run.ID, err)
	}
	d.opts.Logger.WarnContext(ctx, "agent is silent", "run", run.ID, "cluster", run.Cluster, "agent", run.Agent)
	d.opts.Fleet.Look(holdfast.Request{Cluster: run.Cluster, PullRequest: run.PullRequest})
	return nil
}

// heard takes that back.
func (d *Dispatcher) heard(ctx context.Context, run holdfast.Run) error {
	run.Reason, run.Detail = "", ""
	_, err := d.opts.Store.UpdateRun(ctx, run)
	if err != nil && !errors.Is(err, holdfast.ErrConflict) {
		return fmt.Errorf("record that run %s responds: %w", run.ID, err)
	}
	d.opts.Fleet.Look(holdfast.Request{Cluster: run.Cluster, PullRequest: run.PullRequest})
	return nil
}

// reap ends the attempts that the server believes to be with an agent which does not know
// them: they died with its former process, or their assignment never arrived. One that
// was handed to this process ends at once. One of a former process in the same folder
// ends only when it no longer sends heartbeats, as folders can be copied: doubtful says
// that this happened. One that was handed to a process with another folder, or of a kind
// or a project that the agent's token has nothing to do with, is not this agent's to end,
// whatever its id. Nor is one of a former process that writes and holds its state's lock:
// an engine has begun there, and whoever has that folder now would know of it. Sweep ends
// all those, if they are silent and certainly write no more. Only runs of this agent that
// it does not know are read.
func (d *Dispatcher) reap(ctx context.Context, req protocol.ClaimRequest) (doubtful bool, err error) {
	running, err := sweep{d}.attempts(ctx)
	if err != nil {
		return false, err
	}
	for _, a := range running {
		if a.agent != req.Agent || slices.Contains(req.Executing, a.ref) {
			continue
		}
		run, some, err := sweep{d}.stillRunning(ctx, a.ref)
		if err != nil {
			return doubtful, err
		}
		if !some || run.AgentFolder != req.Folder || !req.MayHave(run) {
			continue
		}
		store := d.opts.Store.EndAttempt
		if run.AgentProcess != req.Process {
			if (sweep{d}).mayLive(a.ref) {
				doubtful = true
				continue
			}
			if run.Kind.Writes() {
				store = d.opts.Store.EndUnlocked
			}
		}
		_, err = d.end(ctx, a.ref, run, unknown(d.LastSign(run), req), store)
		switch {
		case errors.Is(err, holdfast.ErrLocked) || errors.Is(err, holdfast.ErrFenced) || errors.Is(err, holdfast.ErrConflict):
		case err != nil:
			return doubtful, err
		}
	}
	return doubtful, nil
}

// mayLive reports whether an attempt of a process that has been replaced may still be
// executed, by a copy of its folder: no beats are missing yet, or this replica has not
// listened for a lease.
func (d sweep) mayLive(ref holdfast.AttemptRef) bool {
	silence, known := d.signs.unheard(ref)
	if !known {
		return silence <= d.opts.Limits.Lease
	}
	return silence <= d.opts.Limits.Lease/2
}

// unknown is the result of an attempt that its agent does not execute. The process that
// it was given to is alive: if that never mentioned it, it was not accepted.
func unknown(run holdfast.Run, req protocol.ClaimRequest) protocol.Result {
	result := killed(run, "its agent no longer knows it")
	if run.AgentProcess == req.Process && run.Step == "" {
		result.Detail = "its agent did not take it"
		result.Failure.Summary, result.Failure.Detail = result.Detail, ""
		result.Failure.Hint = "look at the agent's log, and whether its disk has free space"
	}
	return result
}

// killed is the result that a dead attempt did not send.
func killed(run holdfast.Run, why string) protocol.Result {
	return protocol.Result{
		Status: holdfast.RunInterrupted, Reason: holdfast.ReasonAgentKilled, Detail: why,
		Applying: run.Kind.Applies(),
		Failure: &holdfast.Failure{
			Step: run.Step, Summary: "the agent died, or cannot reach the server", Detail: why,
			Cause: holdfast.ReasonAgentKilled, Transient: true,
			Hint: "look at the agent's log; resources that were being changed may be missing from the state",
		},
	}
}

// Age makes all signs of life that were seen older by ago. It is for tests of what
// happens when a lease ends.
func (d *Dispatcher) Age(ago time.Duration) {
	d.age(ago)
	d.signs.age(ago)
}
