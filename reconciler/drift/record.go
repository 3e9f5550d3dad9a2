package drift

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// readPatience is how long after a check its plan may not be readable: an object store
// may be unavailable. Then the check has failed, as the cluster has other things to do.
const readPatience = time.Minute

// Record makes the cluster's record say what a check has found.
func (k *Keeper) Record(ctx context.Context, in decision.Input) error {
	run := *in.Drift
	found, why, err := k.finding(ctx, in.Cluster, run, in.Now)
	if err != nil {
		return err
	}
	rec := in.Cluster
	rec.Drift = checkedDrift(in, run, found, why)
	if err := k.Outputs.Refresh(ctx, &rec, run); err != nil {
		return err
	}
	if _, err := k.Records.Save(ctx, in.Cluster, rec, in.Runs); err != nil {
		return fmt.Errorf("record run %s: %w", run.ID, err)
	}
	k.opts.Logger.InfoContext(ctx, "drift was checked", "cluster", rec.Name, "run", run.ID, "status", rec.Drift.Status)
	k.Agenda.Request(in.Request)
	k.Publisher.Drifted(rec)
	return nil
}

// finding judges what a check has found; nil, and why, if it failed.
func (k *Keeper) finding(
	ctx context.Context, rec holdfast.ClusterRecord, run holdfast.Run, now time.Time,
) (found *decision.Finding, why string, err error) {
	switch {
	case run.Status == holdfast.RunCanceled:
		return nil, "it was canceled", nil
	case run.Failure != nil && !run.Status.Good():
		return nil, run.Failure.Summary, nil
	case !run.Status.Good():
		return nil, "it ended " + string(run.Status), nil
	}
	plan, err := history.Plan(ctx, k.opts.Store, run.ID)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		if run.Status == holdfast.RunPlanned {
			return nil, "its plan was not kept", nil
		}
	case err != nil && now.Sub(run.FinishedAt) > readPatience:
		k.opts.Logger.WarnContext(ctx, "plan of a check was not read", "cluster", rec.Name, "run", run.ID, "err", err)
		return nil, "its plan cannot be read", nil
	case err != nil:
		return nil, "", fmt.Errorf("read plan of run %s: %w", run.ID, err)
	}
	f := decision.Judge(plan, decision.DriftSettings(rec).Ignore, now)
	return &f, "", nil
}

// checkedDrift is what is remembered of drift after a check, or after a change of the
// ignore rules.
func checkedDrift(in decision.Input, run holdfast.Run, found *decision.Finding, why string) holdfast.DriftState {
	rec, was := in.Cluster, in.Cluster.Drift
	at := run.FinishedAt
	if run.ID == was.Run {
		at = in.Now
	}
	s := was
	s.Run, s.Applied, s.CheckedAt, s.Detail, s.Hold = run.ID, rec.Applied.Run, run.FinishedAt, why, ""
	if found == nil {
		if run.ID != was.Run {
			s.Failures++
		}
		if run.Status.Good() { // no other rules make its plan appear
			s.Rules = decision.RulesDigest(decision.DriftSettings(rec).Ignore, in.Now)
		}
		if s.Status = holdfast.DriftFailed; was.Status != s.Status && was.Fingerprint == "" {
			s.Since = at
		}
		return s
	}
	s.Failures, s.Fingerprint, s.Counts = 0, found.Fingerprint, found.Counts
	s.Destroys, s.Hides, s.Causes = found.Destroys, found.Hides, found.Causes
	s.Rules = decision.RulesDigest(decision.DriftSettings(rec).Ignore, in.Now)
	s.Status = holdfast.DriftNone
	if found.Fingerprint != "" {
		s.Status = holdfast.DriftFound
	}
	if stood := was.Fingerprint != ""; stood != (s.Fingerprint != "") || was.Status == holdfast.DriftUnchecked ||
		!stood && was.Status == holdfast.DriftFailed {
		s.Since = at
	}
	s.Revert = revertedBy(in, s)
	return s
}

// revertedBy is the apply that reverted the drift on record, or tried to; empty if now
// has other drift.
func revertedBy(in decision.Input, now holdfast.DriftState) string {
	was := in.Cluster.Drift
	switch {
	case was.Fingerprint == "" && now.Fingerprint == "":
		return was.Revert
	case was.Fingerprint == "", now.Fingerprint != "" && now.Fingerprint != was.Fingerprint && !isBack(in, now):
		return ""
	}
	if run, ok := decision.RevertOf(in.Cluster, in.Runs); ok {
		return run.ID
	}
	for _, run := range in.Runs { // one that was for something else
		if run.ID == now.Applied && run.Kind == holdfast.RunApply && was.Applied != now.Applied && now.Fingerprint == "" {
			return run.ID
		}
	}
	return ""
}

// isBack reports whether something that the last apply has reverted has drifted again,
// to whatever value: Holdfast does not fight with whatever sets a value again and
// again.
func isBack(in decision.Input, now holdfast.DriftState) bool {
	run, ok := decision.RevertOf(in.Cluster, in.Runs)
	return ok && run.ID == in.Cluster.Applied.Run && slices.ContainsFunc(now.Causes, func(cause string) bool {
		return slices.Contains(in.Cluster.Drift.Causes, cause)
	})
}

// Reserve names the apply that is about to revert a cluster's drift in its record: of
// several replicas that try at once, one succeeds.
func (k *Keeper) Reserve(ctx context.Context, in decision.Input) (holdfast.ClusterRecord, string, error) {
	now, err := k.Records.Moment(ctx, in.Cluster.Name)
	if err != nil {
		return in.Cluster, "", err
	}
	rec := in.Cluster
	rec.Drift.Revert, rec.UpdatedAt = holdfast.NewID("run", now), now
	rec, err = k.opts.Store.SaveCluster(ctx, rec)
	if err != nil {
		return in.Cluster, "", fmt.Errorf("announce the apply: %w", err)
	}
	return rec, rec.Drift.Revert, nil
}
