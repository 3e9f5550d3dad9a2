package drift

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/record"
)

const (
	soonest = time.Second        // between two passes, whatever happens
	latest  = record.DriftLatest // what no wake-up announced is seen then

	// deferredFor is how long a cluster that is due is put off if it may not be
	// checked, for a reason that is not in its record.
	deferredFor  = 10 * time.Minute
	deferredMost = 500 // in one pass
	// unrecordedFor is the same for a cluster whose check has just ended, or about
	// which a decision is being made.
	unrecordedFor = 10 * time.Second
)

// Run queues the drift checks that are due, until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		began := time.Now()
		due, freed := k.due.Wait(), k.Dispatcher.Freed()
		wait, err := latest, error(nil)
		if k.opts.Settings.Leads() {
			wait, err = k.pass(ctx)
		}
		if err != nil && ctx.Err() == nil {
			k.opts.Logger.ErrorContext(ctx, "drift checks were not queued", "err", err)
		}
		timer := time.NewTimer(min(wait, latest))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-due:
		case <-freed:
		}
		timer.Stop()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(soonest - time.Since(began)):
		}
	}
}

// pass queues checks that are due, as many as may wait at once, and returns
// how long it may be until there is more to do. What does not fit stays due.
func (k *Keeper) pass(ctx context.Context) (time.Duration, error) {
	now := k.opts.Now()
	suspensions, err := k.opts.Store.Suspensions(ctx)
	if err != nil {
		return latest, fmt.Errorf("list suspensions: %w", err)
	}
	if slices.ContainsFunc(suspensions, func(s holdfast.Suspension) bool { return s.Project == "" }) {
		return latest, nil
	}
	room, err := k.room(ctx)
	if err != nil {
		return latest, err
	}
	deferred := 0
	for room > 0 && deferred < deferredMost {
		due, err := k.opts.Store.DriftDue(ctx, now, room)
		if err != nil {
			return latest, fmt.Errorf("list clusters that are due: %w", err)
		}
		room -= len(due)
		for _, rec := range due {
			queued, err := k.checkDue(ctx, rec, suspensions, now)
			if err != nil {
				return latest, err
			}
			if queued {
				k.Dispatcher.Queued(ctx)
			} else {
				deferred++
				room++
			}
		}
		if len(due) == 0 {
			break
		}
	}
	if deferred >= deferredMost {
		return soonest, nil // others are due behind those
	}
	next, err := k.opts.Store.NextDriftDue(ctx, now)
	if err != nil || next.IsZero() {
		return latest, err
	}
	return next.Sub(now), nil
}

// room is how many checks may be queued. Those that wait for a provider whose runs are
// held back are not counted.
func (k *Keeper) room(ctx context.Context) (int, error) {
	most, held := 2*k.opts.Settings.Checks, k.Dispatcher.Held()
	checks, err := k.opts.Store.Runs(ctx, holdfast.RunFilter{
		Kinds: []holdfast.RunKind{holdfast.RunDrift}, Statuses: record.Unended(), Limit: most * (1 + len(held)),
	})
	if err != nil {
		return 0, fmt.Errorf("list drift checks: %w", err)
	}
	for _, run := range checks {
		if run.Status == holdfast.RunRunning || !slices.Contains(held, run.Document.Provider) {
			most--
		}
	}
	return most, nil
}

// checkDue queues the check of a cluster that is due, or puts it off.
func (k *Keeper) checkDue(
	ctx context.Context, rec holdfast.ClusterRecord, suspensions []holdfast.Suspension, now time.Time,
) (queued bool, err error) {
	unlock, free := k.Deciding.TryLock(holdfast.Request{Cluster: rec.Name})
	if !free { // that may wait for its code host, which the others have nothing to do with
		rec.Drift.Due = now.Add(unrecordedFor)
		if _, err := k.opts.Store.SaveCluster(ctx, rec); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return false, fmt.Errorf("put off the check of %q: %w", rec.Name, err)
		}
		return false, nil
	}
	defer unlock()
	known := k.opts.Settings.Watched(rec.Owner)
	suspended := slices.ContainsFunc(suspensions, func(s holdfast.Suspension) bool {
		return s.Project == rec.Desired.Document.Project || s.Project == rec.Applied.Document.Project
	})
	fresh, ended, err := k.unrecorded(ctx, rec.Name)
	switch {
	case err != nil:
		fresh = rec
	case fresh.Drift.Due.IsZero() || fresh.Drift.Due.After(now):
		return false, nil // somebody else was here
	}
	held := k.Dispatcher.HeldUntil(rec.Applied.Document.Provider)
	switch fresh.Drift.Due = now.Add(deferredFor); {
	case ended:
		fresh.Drift.Due = now.Add(unrecordedFor)
	case held.After(now):
		fresh.Drift.Due = held
	}
	// It is put off first, whatever follows: of two that try, one continues.
	if _, saveErr := k.opts.Store.SaveCluster(ctx, fresh); errors.Is(saveErr, holdfast.ErrConflict) {
		return false, nil
	} else if saveErr != nil {
		return false, fmt.Errorf("put off the check of %q: %w", rec.Name, saveErr)
	}
	if err == nil && !ended && known && !suspended && held.IsZero() {
		if _, err = k.queue(ctx, rec.Name, holdfast.ReasonSchedule, ""); err == nil {
			return true, nil
		}
	}
	if err != nil { // one with trouble must not keep all others waiting
		level := slog.LevelWarn
		if errors.Is(err, holdfast.ErrConflict) {
			level = slog.LevelDebug
		}
		k.opts.Logger.Log(ctx, level, "drift check was put off", "cluster", rec.Name, "err", err)
	}
	return false, nil
}

// unrecorded returns a cluster's record, and whether a run has ended of which it
// is still to say so. It asks for that: what is due may no longer be.
func (k *Keeper) unrecorded(ctx context.Context, cluster string) (fresh holdfast.ClusterRecord, ended bool, err error) {
	req := holdfast.Request{Cluster: cluster}
	in, err := k.Decider.Observe(ctx, req)
	if err != nil {
		return in.Cluster, false, fmt.Errorf("observe cluster %q: %w", cluster, err)
	}
	_, check := decision.DriftChecked(in)
	if run := in.Drift; run != nil && run.ID > in.Cluster.Drift.Run && decision.NewerThanApplied(in, *run) {
		check = check || in.Now.Sub(run.FinishedAt) < deferredFor // whatever the reason, the next one may not count either
	}
	_, apply := decision.RecordOutcome(in)
	if check || apply {
		k.Agenda.Request(req)
	}
	return in.Cluster, check || apply, nil
}
