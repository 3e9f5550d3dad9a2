package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// Stopped reports whether a run may no longer begin since it was queued. Then
// it is canceled, and asked for again when that ends. It asks no code host: agents that
// want other runs wait meanwhile.
func (l *Loop) Stopped(ctx context.Context, run holdfast.Run) (bool, error) {
	if run.Kind == holdfast.RunPlan || !run.Kind.Plans() { // neither changes infrastructure
		return false, nil
	}
	rec, err := l.opts.Store.Cluster(ctx, run.Cluster)
	if errors.Is(err, holdfast.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read cluster %q: %w", run.Cluster, err)
	}
	scope, err := l.observer.suspension(ctx, rec)
	if err != nil {
		return false, err
	}
	if scope != "" {
		return true, l.Records.Cancel(ctx, run.ID, holdfast.ReasonSuspended)
	}
	if !run.Kind.Writes() { // a check of drift waits for nobody's word
		return false, nil
	}
	branch, err := history.Branch(ctx, l.opts.Store, rec.Name)
	if err != nil {
		return false, err
	}
	in := decision.Input{Now: l.opts.Now(), Cluster: rec, Runs: branch, Last: decision.LastApplied(rec, branch)}
	if decision.LookAtWindows(in).Closed {
		return true, l.Records.Cancel(ctx, run.ID, holdfast.ReasonWindowClosed)
	}
	if reason, err := l.observer.barred(ctx, in, run); err != nil {
		l.opts.Logger.WarnContext(ctx, "apply was held back", "run", run.ID, "cluster", run.Cluster, "err", err)
		return true, nil // it waits; other runs need not
	} else if reason != "" {
		return true, l.Records.Cancel(ctx, run.ID, reason)
	}
	if decision.IsRevert(run) && run.Actor == "" && run.Shown == rec.Drift.Run && !decision.Fresh(rec.Drift, in.Now) {
		return true, l.Records.Cancel(ctx, run.ID, holdfast.ReasonSuperseded) // it is looked at again first
	}
	if run.Kind != holdfast.RunDestroy {
		// What was merged while no server ran may have replaced it.
		return l.Intake.Awaited(rec.Owner), nil
	}
	spared, err := l.spares(ctx, run)
	if err != nil { // it waits; other runs need not
		l.opts.Logger.WarnContext(ctx, "destroy was held back", "run", run.ID, "cluster", run.Cluster, "err", err)
		return true, nil
	}
	return spared, nil
}

// spares reports whether a destroy may not begin: it has to be what would be
// decided now, by what is on record of the code host. If it is not, a decision is asked
// for, which asks the code host as well. What Git says may be on record as a former
// process has left it.
func (l *Loop) spares(ctx context.Context, run holdfast.Run) (bool, error) {
	req := holdfast.Request{Cluster: run.Cluster}
	in, err := l.observer.observe(ctx, req, recorded)
	if err != nil {
		return false, fmt.Errorf("observe cluster %q: %w", run.Cluster, err)
	}
	if decision.Newest(in.Runs).ID != run.ID { // two replicas have queued one each
		return true, l.Records.Cancel(ctx, run.ID, holdfast.ReasonSuperseded)
	}
	d := decision.Decide(in)
	same := run.SourceDigest.Equal(decision.Desired(in))
	asDecided := slices.Contains([]holdfast.Reason{
		holdfast.ReasonInProgress, holdfast.ReasonProviderThrottled, holdfast.ReasonNoAgent, holdfast.CauseStateLocked,
	}, d.Reason)
	if same && asDecided && len(d.Cancel) == 0 && !in.Unseen {
		return false, nil
	}
	if !in.Unseen {
		l.Agenda.Request(req)
	}
	return true, nil
}
