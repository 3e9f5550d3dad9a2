package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// Reconcile asks for another look: at a repository, at a cluster, or, with
// neither, at everything.
func (r *Reconciler) Reconcile(ctx context.Context, repo, cluster string) error {
	if cluster != "" {
		rec, err := r.opts.Store.Cluster(ctx, cluster)
		if err != nil {
			return fmt.Errorf("read cluster %q: %w", cluster, err)
		}
		r.agenda.RequestCluster(cluster)
		repo = rec.Owner
	}
	if repo == "" {
		for name := range r.repos {
			if err := r.publish.Retry(ctx, holdfast.PullRequestRef{Repo: name}); err != nil {
				return err
			}
			r.intake.LookAgain(name)
		}
		return nil
	}
	if _, ok := r.repos[repo]; !ok {
		return fmt.Errorf("repository %q: %w", repo, holdfast.ErrNotFound)
	}
	if err := r.publish.Retry(ctx, holdfast.PullRequestRef{Repo: repo}); err != nil {
		return err
	}
	r.intake.LookAgain(repo) // what is wrong there may have been mended elsewhere
	return nil
}

// watched refuses what nothing can come of: the repository that says what a
// cluster shall be is no longer in the configuration.
func (r *Reconciler) watched(ctx context.Context, req holdfast.Request) error {
	rec, err := r.opts.Store.Cluster(ctx, req.Cluster)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && rec.Owner == "" {
		return nil
	} else if err != nil {
		return fmt.Errorf("read cluster %q: %w", req.Cluster, err)
	}
	if _, ok := r.repos[rec.Owner]; !ok && req.PullRequest.IsZero() {
		return refusal(fmt.Sprintf("its repository, %s, is no longer watched: configure it again, or `holdfast transfer` the cluster", rec.Owner))
	}
	return nil
}

// Lock tells who holds a cluster's lock, with the run and whether it is alive;
// ErrNotFound if nobody does.
func (r *Reconciler) Lock(ctx context.Context, cluster string) (
	holder holdfast.LockHolder, run holdfast.Run, alive bool, err error,
) {
	running, err := r.records.Running(ctx, cluster)
	if err != nil {
		return holder, run, false, err
	}
	location := "clusters/" + cluster
	if running != nil {
		run, location = *running, running.StateLocation
		alive = r.opts.Now().Sub(run.HeartbeatAt) <= r.opts.Lease
	} else if last, err := history.Branch(ctx, r.opts.Store, cluster); err == nil && len(last) > 0 {
		location = last[0].StateLocation
	}
	holder, err = r.opts.Locker.Holder(ctx, location)
	if running == nil && errors.Is(err, holdfast.ErrNotFound) {
		return r.leftBehind(ctx, location)
	}
	if running != nil && err != nil {
		// The records are the truth, whatever Redis remembers.
		return holdfast.LockHolder{
			Owner: run.Ref().Owner(), Since: run.StartedAt, Expires: run.HeartbeatAt.Add(r.opts.Lease),
		}, run, alive, nil
	}
	return holder, run, alive, err
}

// leftBehind tells of a state lock in Holdfast's own backend whose attempt is
// over; ErrNotFound if there is none.
func (r *Reconciler) leftBehind(ctx context.Context, location string) (
	holder holdfast.LockHolder, run holdfast.Run, alive bool, err error,
) {
	left, err := r.opts.Store.StateLock(ctx, location)
	if err != nil {
		return holder, run, false, err
	}
	run, err = r.opts.Store.Run(ctx, left.By.Run)
	if errors.Is(err, holdfast.ErrNotFound) {
		run, err = holdfast.Run{ID: left.By.Run, RunSpec: holdfast.RunSpec{StateLocation: location}}, nil
	}
	return holdfast.LockHolder{Owner: left.By.Owner(), Since: left.Created}, run, false, err
}

// unlockFor is Unlock for a command.
func (r *Reconciler) unlockFor(ctx context.Context, c holdfast.Command, t target) (string, error) {
	err := r.Unlock(ctx, t.cluster, c.Author, c.Force)
	switch locked := (*holdfast.LockedError)(nil); {
	case errors.Is(err, holdfast.ErrNotFound):
		return "", refusal("nobody holds the lock")
	case errors.As(err, &locked):
		return "", refusal(fmt.Sprintf("%s holds it since %s UTC and is alive: `/holdfast cancel` it, or add --force",
			locked.Holder.Owner, locked.Holder.Since.UTC().Format(time.DateTime)))
	case err != nil:
		return "", err
	}
	return "unlocked", nil
}

// Unlock takes a cluster's lock from a run that is dead, or, with force, from a
// living one, whose writes are refused from then on. ErrNotFound if nobody
// holds it, a *holdfast.LockedError if its holder is alive.
func (r *Reconciler) Unlock(ctx context.Context, cluster, actor string, force bool) error {
	holder, run, alive, err := r.Lock(ctx, cluster)
	if err != nil {
		return fmt.Errorf("look at the lock of %q: %w", cluster, err)
	}
	if run.ID == "" || alive && !force { // a lock without a run expires soon
		return &holdfast.LockedError{Holder: holder}
	}
	r.records.Audit(ctx, actor, "lock.release", cluster, fmt.Sprintf("%s, alive %t, force %t", holder.Owner, alive, force))
	if run.Status != holdfast.RunRunning { // its state lock has outlived it
		if _, err := r.opts.Store.ReleaseStateLock(ctx, run.StateLocation); err != nil {
			return fmt.Errorf("release the state lock of run %s: %w", run.ID, err)
		}
		return nil
	}
	if err := r.dispatcher.Kill(ctx, run, "its lock was taken away by "+actor); err != nil {
		return fmt.Errorf("end run %s: %w", run.ID, err)
	}
	return nil
}
