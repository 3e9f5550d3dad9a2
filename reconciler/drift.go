package reconciler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/record"
)

const (
	// driftLease is for how long the replica that queues checks is believed in;
	// it says so again each time a third of that has passed.
	driftLease = 90 * time.Second

	driftSoonest = time.Second        // between two passes, whatever happens
	driftLatest  = record.DriftLatest // what no wake-up has told is seen then

	// driftDeferred is when a cluster is looked at again that is due and may not
	// be checked, for a reason that is not in its record.
	driftDeferred = 10 * time.Minute
	deferredMost  = 500 // in one pass
	// driftUnrecorded is the same for one whose check has just ended.
	driftUnrecorded = 10 * time.Second
)

// driftSchedule queues the checks for drift that are due, until ctx is done.
func (r *Reconciler) driftSchedule(ctx context.Context) error {
	var leased time.Time
	for {
		began := time.Now()
		due, freed := r.drifts.Wait(), r.dispatcher.Freed()
		wait, err := driftLatest, error(nil)
		if leased, err = r.leaseDrift(ctx, leased); err == nil && !leased.IsZero() {
			wait, err = r.driftPass(ctx)
		}
		if err != nil && ctx.Err() == nil {
			r.opts.Logger.ErrorContext(ctx, "checks for drift were not queued", "err", err)
		}
		timer := time.NewTimer(min(wait, driftLatest))
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
		case <-time.After(driftSoonest - time.Since(began)):
		}
	}
}

// leaseDrift makes this replica the one that queues checks, unless another is.
// It returns since when it is; the zero time if it is not.
func (r *Reconciler) leaseDrift(ctx context.Context, since time.Time) (time.Time, error) {
	if !since.IsZero() && time.Since(since) < driftLease/3 {
		return since, nil
	}
	ours, err := r.opts.Store.Lease(ctx, "drift", r.opts.Identity, r.opts.Now(), driftLease)
	if err != nil {
		return time.Time{}, fmt.Errorf("lease the schedule: %w", err)
	}
	if !ours {
		return time.Time{}, nil
	}
	return time.Now(), nil
}

// driftPass queues checks that are due, as many as may wait at once, and returns
// how long it may be until there is more to do. What does not fit stays due.
func (r *Reconciler) driftPass(ctx context.Context) (time.Duration, error) {
	now := r.opts.Now()
	suspensions, err := r.opts.Store.Suspensions(ctx)
	if err != nil {
		return driftLatest, fmt.Errorf("list suspensions: %w", err)
	}
	if slices.ContainsFunc(suspensions, func(s holdfast.Suspension) bool { return s.Project == "" }) {
		return driftLatest, nil
	}
	room, err := r.driftRoom(ctx)
	if err != nil {
		return driftLatest, err
	}
	deferred := 0
	for room > 0 && deferred < deferredMost {
		due, err := r.opts.Store.DriftDue(ctx, now, room)
		if err != nil {
			return driftLatest, fmt.Errorf("list clusters that are due: %w", err)
		}
		room -= len(due)
		for _, rec := range due {
			queued, err := r.checkDue(ctx, rec, suspensions, now)
			if err != nil {
				return driftLatest, err
			}
			if !queued {
				deferred++
				room++
			}
		}
		if len(due) == 0 {
			break
		}
	}
	if deferred >= deferredMost {
		return driftSoonest, nil // others are due behind those
	}
	next, err := r.opts.Store.NextDriftDue(ctx, now)
	if err != nil || next.IsZero() {
		return driftLatest, err
	}
	return next.Sub(now), nil
}

// driftRoom is how many checks may be queued. Those that wait for a cloud which
// has a break take nobody's place.
func (r *Reconciler) driftRoom(ctx context.Context) (int, error) {
	most, held := 2*r.opts.MaxDrift, r.dispatcher.Held()
	checks, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{
		Kinds: []holdfast.RunKind{holdfast.RunDrift}, Statuses: record.Unended(), Limit: most * (1 + len(held)),
	})
	if err != nil {
		return 0, fmt.Errorf("list checks for drift: %w", err)
	}
	for _, run := range checks {
		if run.Status == holdfast.RunRunning || !slices.Contains(held, run.Document.Provider) {
			most--
		}
	}
	return most, nil
}

// checkDue queues the check of a cluster that is due, or puts it off.
func (r *Reconciler) checkDue(
	ctx context.Context, rec holdfast.ClusterRecord, suspensions []holdfast.Suspension, now time.Time,
) (queued bool, err error) {
	unlock := r.deciding.Lock(holdfast.Request{Cluster: rec.Name})
	defer unlock()
	_, known := r.repos[rec.Owner]
	suspended := slices.ContainsFunc(suspensions, func(s holdfast.Suspension) bool {
		return s.Project == rec.Desired.Document.Project || s.Project == rec.Applied.Document.Project
	})
	fresh, ended, err := r.unrecorded(ctx, rec.Name)
	switch {
	case err != nil:
		fresh = rec
	case fresh.Drift.Due.IsZero() || fresh.Drift.Due.After(now):
		return false, nil // somebody else was here
	}
	held := r.dispatcher.HeldUntil(rec.Applied.Document.Provider)
	switch fresh.Drift.Due = now.Add(driftDeferred); {
	case ended:
		fresh.Drift.Due = now.Add(driftUnrecorded)
	case held.After(now):
		fresh.Drift.Due = held
	}
	// It is put off first, whatever follows: of two that come to it one continues.
	if _, saveErr := r.opts.Store.SaveCluster(ctx, fresh); errors.Is(saveErr, holdfast.ErrConflict) {
		return false, nil
	} else if saveErr != nil {
		return false, fmt.Errorf("put off the check of %q: %w", rec.Name, saveErr)
	}
	if err == nil && !ended && known && !suspended && held.IsZero() {
		if _, err = r.queueDrift(ctx, rec.Name, holdfast.ReasonSchedule, ""); err == nil {
			return true, nil
		}
	}
	if err != nil { // one that is in trouble must not keep all others waiting
		level := slog.LevelWarn
		if errors.Is(err, holdfast.ErrConflict) {
			level = slog.LevelDebug
		}
		r.opts.Logger.Log(ctx, level, "check for drift was put off", "cluster", rec.Name, "err", err)
	}
	return false, nil
}

// unrecorded returns a cluster's record, and whether a run has ended of which it
// is still to say so. It asks for that: what is due may no longer be.
func (r *Reconciler) unrecorded(ctx context.Context, cluster string) (fresh holdfast.ClusterRecord, ended bool, err error) {
	req := holdfast.Request{Cluster: cluster}
	in, err := r.observe(ctx, req)
	if err != nil {
		return in.Cluster, false, fmt.Errorf("observe cluster %q: %w", cluster, err)
	}
	_, check := decision.DriftChecked(in)
	if run := in.Drift; run != nil && run.ID > in.Cluster.Drift.Run && decision.NewerThanApplied(in, *run) {
		check = check || in.Now.Sub(run.FinishedAt) < driftDeferred // whyever it does not count, the next one may not either
	}
	_, apply := decision.RecordOutcome(in)
	if check || apply {
		r.agenda.Request(req)
	}
	return in.Cluster, check || apply, nil
}

// checkRefusal is why a cluster cannot be checked now. It is an ErrConflict.
type checkRefusal string

func (c checkRefusal) Error() string { return string(c) }

// Is makes errors.Is(err, ErrConflict) true.
func (c checkRefusal) Is(target error) bool { return target == holdfast.ErrConflict }

// queueDrift queues a check for drift of a cluster, whose decisions the caller
// has locked. If one is queued or running already that is returned.
func (r *Reconciler) queueDrift(ctx context.Context, cluster string, reason holdfast.Reason, actor string) (holdfast.Run, error) {
	rec, err := r.opts.Store.Cluster(ctx, cluster)
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	if why := decision.Uncheckable(rec); why != "" {
		return holdfast.Run{}, checkRefusal(why)
	}
	others, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{Cluster: cluster, Statuses: record.Unended()})
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("list runs of %q: %w", cluster, err)
	}
	for _, other := range others {
		switch {
		case other.Kind == holdfast.RunDrift && other.Cancel == "":
			return other, nil
		case other.Kind.Writes():
			return other, checkRefusal(fmt.Sprintf("its %s %s is %s: check again when that has ended", other.Kind, other.ID, other.Status))
		case actor == "":
			return other, checkRefusal("a run is " + string(other.Status))
		}
	}
	now, err := r.records.Moment(ctx, cluster)
	if err != nil {
		return holdfast.Run{}, err
	}
	run := holdfast.Run{
		ID: holdfast.NewID("run", now), Cluster: cluster, Kind: holdfast.RunDrift,
		Status: holdfast.RunQueued, Reason: reason, CreatedAt: now,
		RunSpec: holdfast.RunSpec{Actor: actor},
	}
	record.FillApplied(rec, &run)
	if err := r.opts.Store.CreateRun(ctx, run); err != nil {
		return run, fmt.Errorf("queue drift: %w", err)
	}
	if actor != "" {
		r.records.Audit(ctx, actor, "run.queue", run.ID, fmt.Sprintf("drift of %s: %s", cluster, reason))
	}
	r.dispatcher.Queued(ctx)
	return run, nil
}

// CheckDrift queues a check for drift of a cluster and returns its run; the one
// that is queued or running already, if there is one. It is an ErrConflict, with
// the reason in its text, if the cluster cannot be checked now.
func (r *Reconciler) CheckDrift(ctx context.Context, cluster, actor string) (holdfast.Run, error) {
	unlock := r.deciding.Lock(holdfast.Request{Cluster: cluster})
	defer unlock()
	rec, err := r.opts.Store.Cluster(ctx, cluster)
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	scope, err := r.suspension(ctx, rec)
	if err != nil {
		return holdfast.Run{}, err
	}
	if scope != "" {
		return holdfast.Run{}, checkRefusal(fmt.Sprintf("it is suspended (%s): `holdfast resume` first", scope))
	}
	if actor == "" {
		actor = "holdfast"
	}
	return r.queueDrift(ctx, cluster, holdfast.ReasonRequested, actor)
}

// checkAgain queues a check for drift before something follows from the last one.
func (r *Reconciler) checkAgain(ctx context.Context, in decision.Input, d decision.Decision) error {
	var busy checkRefusal
	_, err := r.queueDrift(ctx, in.Cluster.Name, d.Reason, "")
	if errors.As(err, &busy) {
		return nil // the end of what it is busy with asks again
	}
	return err
}

// shownPlan returns the plan that people see of a cluster on its tracked branch:
// the newest of its runs, or, if nothing but drift is left to be applied, that of a
// later check.
func (r *Reconciler) shownPlan(ctx context.Context, cluster string, runs []holdfast.Run) (holdfast.Run, error) {
	last := decision.Newest(runs)
	rec, err := r.opts.Store.Cluster(ctx, cluster)
	if err != nil {
		return last, fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	if !decision.AsGitSays(decision.Input{Cluster: rec, Runs: runs}) {
		return last, nil
	}
	check, err := history.LastCheck(ctx, r.opts.Store, rec)
	if err != nil || check == nil || check.ID != rec.Drift.Run || check.ID < last.ID || rec.Drift.Status != holdfast.DriftFound {
		return last, err
	}
	return *check, nil
}
