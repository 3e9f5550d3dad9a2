package reconciler

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// Assignment records on a run the world in which its attempt starts, and returns
// what the attempt needs to know of it.
func (f fleet) Assignment(ctx context.Context, run holdfast.Run) (holdfast.Assignment, holdfast.Run, error) {
	r := f.Reconciler
	rec, err := r.opts.Store.Cluster(ctx, run.Cluster)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return holdfast.Assignment{}, run, fmt.Errorf("read cluster %q: %w", run.Cluster, err)
	}
	last, err := r.lastApply(ctx, run.Cluster)
	if err != nil {
		return holdfast.Assignment{}, run, err
	}
	former, err := r.former(ctx, run.Repo, rec, run.Document)
	if err != nil {
		return holdfast.Assignment{}, run, err
	}
	if former.Name != "" && !decision.Destroys(run) {
		rec.StateSerial = former.StateSerial // it is planned with the state that the former name has
	}
	for run.AppliedRun != last || run.StateSerial != rec.StateSerial {
		seen := run
		seen.AppliedRun, seen.StateSerial = last, rec.StateSerial
		seen, err = r.opts.Store.UpdateRun(ctx, seen)
		if errors.Is(err, holdfast.ErrConflict) { // it was cancelled just now
			seen, err = r.opts.Store.Run(ctx, run.ID)
		}
		if err != nil {
			return holdfast.Assignment{}, run, fmt.Errorf("record run %s: %w", run.ID, err)
		}
		run = seen
	}
	env, secrets, err := r.opts.Credentials(run.Document, run.Kind)
	if err != nil {
		return holdfast.Assignment{}, run, fmt.Errorf("read credentials: %w", err)
	}
	pin, err := r.pinned(ctx, run, rec, former)
	if err != nil {
		return holdfast.Assignment{}, run, err
	}
	a := holdfast.Assignment{
		Kind: run.Kind, Cluster: run.Cluster,
		Bundle: run.Bundle, Dir: run.Dir, SourceDigest: run.SourceDigest,
		Engine: run.Document.Engine, PinName: pin.EngineName, PinVersion: pin.EngineVersion,
		Exact: run.Exact && pin.EngineVersion != "", Destroy: run.Destroy,
		Env: env, Secrets: secrets,
		OwnState: holdfast.OwnState(run.StateLocation), StateLocation: run.StateLocation,
		Resume: run.Resume, Reviews: comparedWith(run),
		FingerprintKey: r.opts.FingerprintKey, TraceParent: run.TraceParent,
	}
	if r.opts.Limits != nil {
		a.Limits = r.opts.Limits(run.Document)
	}
	if r.opts.SecretSources != nil {
		a.SecretDirs, a.SecretStores = r.opts.SecretSources(run.Document, run.Kind)
	}
	a.LockFile, err = r.lockFile(ctx, run, pin)
	return a, run, err
}

// pinned is what a run takes its engine and its provider lock file from: what
// was last applied, under the cluster's former name if it has that no more.
func (r *Reconciler) pinned(ctx context.Context, run holdfast.Run, rec, former holdfast.ClusterRecord) (holdfast.Applied, error) {
	switch {
	case decision.Destroys(run):
		runs, err := history.Branch(ctx, r.opts.Store, run.Cluster)
		return lastApplied(rec, runs), err
	case former.Name != "":
		return former.Applied, nil
	default:
		return rec.Applied, nil
	}
}

// comparedWith are the plans of which one must be what an apply finds: the one
// that was shown to whoever asked for it, or any that was reviewed.
func comparedWith(run holdfast.Run) []holdfast.Review {
	var out []holdfast.Review
	for _, review := range run.Reviews {
		if review.Run != "" && (run.Shown == "" || review.Run == run.Shown) {
			out = append(out, review)
		}
	}
	return out
}

// lockFile returns the provider lock file that a run starts from: that of the
// plan that it shall repeat, else that of the last apply.
func (r *Reconciler) lockFile(ctx context.Context, run holdfast.Run, pin holdfast.Applied) ([]byte, error) {
	from := []string{run.Shown}
	for _, review := range run.Reviews {
		from = append(from, review.Run)
	}
	for _, id := range append(from, pin.Run) {
		if id == "" {
			continue
		}
		file, err := dispatch.ReadArtefact(ctx, r.opts.Store, id, holdfast.ArtefactLockFile)
		if errors.Is(err, holdfast.ErrNotFound) {
			continue
		}
		return file, err
	}
	return nil, nil
}

// summary reads the plan that a run made.
func (r *Reconciler) summary(ctx context.Context, run string) (holdfast.Plan, error) {
	return dispatch.ReadPlan(ctx, r.opts.Store, run)
}

// lastApply returns the newest apply of the cluster that had begun.
func (r *Reconciler) lastApply(ctx context.Context, cluster string) (string, error) {
	runs, err := history.Branch(ctx, r.opts.Store, cluster)
	if err != nil {
		return "", err
	}
	return decision.LastBegun(runs), nil
}
