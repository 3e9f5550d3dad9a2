package drift

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/record"
)

// queue queues a drift check of a cluster, whose decisions the caller has locked. If
// one is queued or running already that is returned. The caller wakes the agents,
// without that lock.
func (k *Keeper) queue(ctx context.Context, cluster string, reason holdfast.Reason, actor string) (holdfast.Run, error) {
	newest, err := k.opts.Store.NewestRun(ctx, holdfast.Request{Cluster: cluster}) // before all else is read
	if err != nil {
		return holdfast.Run{}, err
	}
	rec, err := k.opts.Store.Cluster(ctx, cluster)
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	if reason, why := decision.Uncheckable(rec); why != "" {
		return holdfast.Run{}, &holdfast.RefusedError{Reason: reason, Text: why}
	}
	others, err := k.opts.Store.Runs(ctx, holdfast.RunFilter{Cluster: cluster, Statuses: record.Unended()})
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("list runs of %q: %w", cluster, err)
	}
	for _, other := range others {
		switch {
		case other.Kind == holdfast.RunDrift && other.Cancel == "":
			return other, nil
		case other.Kind.Writes():
			return other, &holdfast.RefusedError{
				Reason: holdfast.ReasonInProgress, Command: "holdfast logs --follow " + other.ID,
				Text: fmt.Sprintf("its %s %s is %s: check again when that has ended", other.Kind, other.ID, other.Status),
			}
		case actor == "":
			return other, &holdfast.RefusedError{Reason: holdfast.ReasonInProgress, Text: "a run is " + string(other.Status)}
		}
	}
	now, err := k.Records.Moment(ctx, cluster)
	if err != nil {
		return holdfast.Run{}, err
	}
	run := holdfast.Run{
		ID: holdfast.NewID("run", now), Cluster: cluster, Kind: holdfast.RunDrift,
		Status: holdfast.RunQueued, Reason: reason, CreatedAt: now,
		RunSpec: holdfast.RunSpec{Actor: actor},
	}
	record.FillApplied(rec, &run)
	var trail []holdfast.AuditEntry
	if actor != "" {
		trail = append(trail, k.Records.Entry(actor, "run.queue", run.ID, fmt.Sprintf("drift of %s: %s", cluster, reason)))
	}
	if err := k.opts.Store.CreateRunAfter(ctx, run, newest, trail...); errors.Is(err, holdfast.ErrConflict) {
		return run, fmt.Errorf("queue drift: %w: %w", errOvertaken, err)
	} else if err != nil {
		return run, fmt.Errorf("queue drift: %w", err)
	}
	return run, nil
}

// Check queues a drift check of a cluster and returns its run; the one
// that is queued or running already, if there is one. It is an ErrConflict, with
// the reason in its text, if the cluster cannot be checked now.
func (k *Keeper) Check(ctx context.Context, cluster, actor string) (holdfast.Run, error) {
	var run holdfast.Run
	var err error
	for range overtakenMost {
		if run, err = k.check(ctx, cluster, actor); !errors.Is(err, errOvertaken) {
			break
		}
	}
	if err == nil {
		k.Dispatcher.Queued(ctx)
	}
	return run, err
}

// overtakenMost is how often a person's check is tried again, as somebody else has queued a run
// of the cluster meanwhile.
const overtakenMost = 5

var errOvertaken = errors.New("a run was queued in the meantime")

func (k *Keeper) check(ctx context.Context, cluster, actor string) (holdfast.Run, error) {
	unlock := k.Deciding.Lock(holdfast.Request{Cluster: cluster})
	defer unlock()
	rec, err := k.opts.Store.Cluster(ctx, cluster)
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	scope, err := k.Decider.Suspension(ctx, rec)
	if err != nil {
		return holdfast.Run{}, err
	}
	if scope != "" {
		return holdfast.Run{}, &holdfast.RefusedError{
			Reason: holdfast.ReasonSuspended,
			Text:   "it is suspended (" + scope + "): run `holdfast resume " + resumed(scope, cluster, rec) + "` first",
		}
	}
	if actor == "" {
		actor = "holdfast"
	}
	return k.queue(ctx, cluster, holdfast.ReasonRequested, actor)
}

// resumed is what ends a suspension of that scope, as `holdfast resume` takes it.
func resumed(scope, cluster string, rec holdfast.ClusterRecord) string {
	switch scope {
	case decision.SuspendedFleet:
		return "--all"
	case decision.SuspendedProject:
		return "--project " + rec.Desired.Document.Project
	}
	return cluster
}

// CheckAgain queues a drift check before something follows from the last one.
func (k *Keeper) CheckAgain(ctx context.Context, in decision.Input, d decision.Decision) error {
	var busy *holdfast.RefusedError
	_, err := k.queue(ctx, in.Cluster.Name, d.Reason, "")
	if errors.As(err, &busy) {
		return nil // the end of what it is busy with asks again
	}
	if err == nil {
		k.Dispatcher.Queued(ctx)
	}
	return err
}

// ShownPlan returns the plan that people see of a cluster on its tracked branch:
// the newest of its runs, or, if nothing but drift is left to be applied, that of a
// later check.
func (k *Keeper) ShownPlan(ctx context.Context, cluster string, runs []holdfast.Run) (holdfast.Run, error) {
	last := decision.Newest(runs)
	rec, err := k.opts.Store.Cluster(ctx, cluster)
	if err != nil {
		return last, fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	if !decision.AsGitSays(decision.Input{Cluster: rec, Runs: runs}) {
		return last, nil
	}
	check, err := history.LastCheck(ctx, k.opts.Store, rec)
	if err != nil || check == nil || check.ID != rec.Drift.Run || check.ID < last.ID || rec.Drift.Status != holdfast.DriftFound {
		return last, err
	}
	return *check, nil
}
