package dispatch

// The queue as people see it.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Queue returns runs that wait to be handed out, in the order in which they are if
// nothing else comes, with what is ahead of each and what holds it back: those that match,
// whose Now and Turns it fills in. It changes nothing.
func (d *Dispatcher) Queue(ctx context.Context, filter holdfast.QueueFilter) ([]holdfast.QueuedRun, error) {
	now, projects := d.opts.Now(), filter.Projects
	served, lately, err := d.opts.Store.Served(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("list running runs: %w", err)
	}
	running, err := d.running(ctx)
	if err != nil {
		return nil, err
	}
	filter.Now, filter.Turns = now, decision.NewTurns(now, served, lately)
	queue, err := d.opts.Store.Queue(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("list queue: %w", err)
	}
	holders := make(map[string]holdfast.Run, len(running))
	for _, run := range running {
		holders[run.StateKey()] = run
	}
	load := loadOf(served)
	share, err := d.shares.of(ctx, served)
	if err != nil {
		return nil, err
	}
	for i := range queue {
		entry := &queue[i]
		holder, held := holders[entry.Run.StateKey()]
		switch {
		case held && (len(projects) == 0 || slices.Contains(projects, holder.Document.Project)):
			entry.Reason, entry.Detail = holdfast.ReasonLocked, fmt.Sprintf("%s (%s) is running on its state", holder.ID, holder.Kind)
		case held:
			entry.Reason, entry.Detail = holdfast.ReasonLocked, "another run is running on its state"
		default:
			entry.Reason, entry.Detail = d.heldBack(entry.Run, load, now)
			if entry.Reason == "" {
				entry.Reason, entry.Detail = d.opts.Limits.firstWaits(entry.Run, lately, now)
			}
			if entry.Reason == "" {
				if entry.Reason, entry.Detail, err = d.places.waits(ctx, entry.Run, load); err != nil {
					return nil, err
				}
			}
			if entry.Reason == "" {
				entry.Reason, entry.Detail = share.waits(entry.Run)
			}
			if entry.Reason == "" {
				if entry.Reason, entry.Detail, err = d.unread(ctx, entry.Run); err != nil {
					return nil, err
				}
			}
		}
	}
	return queue, nil
}

// unread is why what changes infrastructure is not handed out after a start: nothing says
// yet that Git still wants it.
func (d *Dispatcher) unread(ctx context.Context, run holdfast.Run) (reason holdfast.Reason, detail string, err error) {
	if !run.Kind.Applies() {
		return "", "", nil
	}
	unseen, err := d.opts.Fleet.Unseen(ctx, run)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && !unseen {
		return "", "", nil
	} else if err != nil {
		return "", "", err
	}
	return holdfast.ReasonRepositoryUnread, "its repository was not read since the server was started", nil
}

// heldBack is what keeps a run waiting besides its turn and its state; empty if nothing
// does.
func (d *Dispatcher) heldBack(run holdfast.Run, load load, now time.Time) (reason holdfast.Reason, detail string) {
	provider := run.Document.Provider
	switch {
	case run.Status == holdfast.RunRetrying && run.NotBefore.After(now):
		if reason = run.Reason; run.Failure != nil {
			reason = run.Failure.Cause
		}
		return reason, "it is retried at " + run.NotBefore.UTC().Format(time.TimeOnly) + " UTC"
	case run.Reason == holdfast.ReasonNoAgent:
		return run.Reason, run.Detail
	}
	if until := d.HeldUntil(provider); provider != "" && !until.IsZero() {
		return holdfast.ReasonProviderThrottled, decision.ThrottledText(provider, until)
	}
	return d.capOf(load, run.Document)
}
