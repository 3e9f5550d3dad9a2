package drift

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// Found returns what the last check of a cluster has found. ErrNotFound if there
// is no such cluster.
func (k *Keeper) Found(ctx context.Context, cluster string) (holdfast.DriftReport, error) {
	rec, err := k.opts.Store.Cluster(ctx, cluster)
	if err != nil {
		return holdfast.DriftReport{}, fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	check, err := history.LastCheck(ctx, k.opts.Store, rec)
	if err != nil {
		return holdfast.DriftReport{}, err
	}
	if check != nil && check.ID > rec.Drift.Run {
		// Who has waited for its end need not wait for its turn as well.
		if err := k.Decider.Once(ctx, holdfast.Request{Cluster: cluster}); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return holdfast.DriftReport{}, err
		}
		if rec, err = k.opts.Store.Cluster(ctx, cluster); err != nil {
			return holdfast.DriftReport{}, fmt.Errorf("read cluster %q: %w", cluster, err)
		}
	}
	report, err := k.Report(ctx, rec)
	if err != nil {
		return report, err
	}
	branch, err := history.Branch(ctx, k.opts.Store, rec.Name)
	if err != nil {
		return report, err
	}
	now := decision.Input{Now: k.opts.Now(), Cluster: rec, Last: decision.LastApplied(rec, branch)}
	report.Windows = decision.WindowText(now)
	return report, nil
}

// Report is everything that is known of a cluster's drift.
func (k *Keeper) Report(ctx context.Context, rec holdfast.ClusterRecord) (holdfast.DriftReport, error) {
	report := decision.DriftOutline(rec)
	if rec.Drift.Run == "" {
		return report, nil
	}
	run, err := k.opts.Store.Run(ctx, rec.Drift.Run)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return report, fmt.Errorf("read run %s: %w", rec.Drift.Run, err)
	}
	if err == nil && !run.Status.Good() {
		report.Failure = run.Failure
		if run, err = k.lastFinding(ctx, rec); err != nil {
			return report, err
		}
	}
	if run.ID != "" {
		found, _, err := k.finding(ctx, rec, run, k.opts.Now())
		if err != nil {
			return report, err
		}
		if found != nil {
			report.Items = found.Items
		}
	}
	if rec.Drift.Revert == "" {
		return report, nil
	}
	revert, err := k.opts.Store.Run(ctx, rec.Drift.Revert)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return report, fmt.Errorf("read run %s: %w", rec.Drift.Revert, err)
	} else if err == nil {
		report.Revert = &revert
	}
	return report, nil
}

// lastFinding returns the last check that has found what the record still tells;
// the zero Run if it is no longer kept.
func (k *Keeper) lastFinding(ctx context.Context, rec holdfast.ClusterRecord) (holdfast.Run, error) {
	if rec.Drift.Fingerprint == "" {
		return holdfast.Run{}, nil
	}
	runs, err := k.opts.Store.Runs(ctx, holdfast.RunFilter{
		Cluster: rec.Name, Kinds: []holdfast.RunKind{holdfast.RunDrift},
		Statuses: []holdfast.RunStatus{holdfast.RunPlanned}, Limit: 1,
	})
	if err != nil || len(runs) == 0 {
		return holdfast.Run{}, err
	}
	return runs[0], nil
}
