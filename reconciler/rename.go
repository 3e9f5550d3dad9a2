package reconciler

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// former returns the record of the name that a document says its cluster had
// before, if that is what it goes on from: the cluster is not applied under the
// new name yet, and was under the old one, in the same repository. Otherwise the
// zero record.
func (r *Reconciler) former(ctx context.Context, rec holdfast.ClusterRecord, doc holdfast.Cluster) (holdfast.ClusterRecord, error) {
	none := holdfast.ClusterRecord{}
	if doc.RenamedFrom == "" || rec.Applied.Run != "" {
		return none, nil
	}
	old, err := r.opts.Store.Cluster(ctx, doc.RenamedFrom)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("read cluster %q: %w", doc.RenamedFrom, err)
	case old.Applied.Run == "" || old.Ending != nil || rec.Owner != "" && rec.Owner != old.Owner:
		return none, nil
	}
	return old, nil
}

// renamed returns the new name that a tree gives to a cluster which it does not
// define any more; empty if it gives none.
func (c *catalog) renamed(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.renames == nil {
		c.renames = make(map[string]string)
		for to := range c.renaming {
			if from := c.names.get(to)[0].doc.Cluster.RenamedFrom; len(c.names.get(from)) == 0 {
				c.renames[from] = to
			}
		}
	}
	return c.renames[name]
}

// renamedTwice is the fault of a document whose former name is still defined, or
// goes to another one.
func renamedTwice(cat *catalog, res *resolution) holdfast.Faults {
	c := res.doc.Cluster
	if c.RenamedFrom == "" {
		return nil
	}
	if still := cat.names.get(c.RenamedFrom); len(still) > 0 {
		at := still[0].doc.Fault("", "", "metadata", "name")
		return holdfast.Faults{res.doc.Fault(
			fmt.Sprintf("renamedFrom is %q, which is still defined at %s", c.RenamedFrom, at.Position()),
			"remove the one, or renamedFrom from the other", "metadata", "renamedFrom",
		)}
	}
	if to := cat.renamed(c.RenamedFrom); to != "" && to != c.Name {
		return holdfast.Faults{res.doc.Fault(
			fmt.Sprintf("renamedFrom is %q, and so it is of %q", c.RenamedFrom, to),
			"a cluster goes on under one name: remove renamedFrom from the other", "metadata", "renamedFrom",
		)}
	}
	return nil
}

// errBusy: something runs that has to end first. errTaken: there is something
// under the new name that must not be lost.
var (
	errBusy  = errors.New("a run is running")
	errTaken = errors.New("the new name is not free")
)

// rename gives the state and the history of a cluster to its new name, whose
// record rec is. ErrBusy if a run of either is running, errTaken if the new name
// has a state already.
func (r *Reconciler) rename(ctx context.Context, old, rec holdfast.ClusterRecord, head holdfast.Revision) error {
	runs, err := r.branchRuns(ctx, old.Name)
	if err != nil {
		return err
	}
	if err := r.cancelBeforeRename(ctx, old.Name, rec.Name); err != nil {
		return err
	}
	now := r.opts.Now()
	rec.Applied, rec.Drift, rec.Suspended = old.Applied, old.Drift, rec.Suspended || old.Suspended
	if location := "clusters/" + old.Name; rec.Applied.StateLocation == location || rec.Applied.StateLocation == "" && r.appliedAt(ctx, old) == location {
		rec.Applied.StateLocation = "clusters/" + rec.Name
	}
	rec.Ending, rec.UpdatedAt = nil, now
	rec.Phase, rec.Conditions = old.Phase, old.Conditions
	history := []holdfast.Transition{
		{Cluster: rec.Name, At: now, What: "name", From: old.Name, To: rec.Name, Reason: ReasonRenamed},
	}
	gone := old
	gone.Ending = &holdfast.Ending{At: now, Reason: ReasonRenamed, Revision: head, To: rec.Name}
	gone.Desired.Missing = ""
	gone.Desired.Removed, gone.Applied, gone.Drift = true, holdfast.Applied{}, holdfast.DriftState{}
	gone.Waiting, gone.WaitingDetail, gone.Phase, gone.Conditions = "", "", holdfast.PhaseDeleted, nil
	gone.Life, gone.UpdatedAt = newest(runs).ID, now
	err = r.opts.Store.RenameCluster(ctx, gone, rec, history...)
	if errors.Is(err, holdfast.ErrConflict) {
		return r.refusedRename(ctx, old, rec, err)
	} else if err != nil {
		return fmt.Errorf("rename %q to %q: %w", old.Name, rec.Name, err)
	}
	r.audit(ctx, "", "cluster.rename", rec.Name, "from "+old.Name)
	return nil
}

// cancelBeforeRename ends what waits for its turn under either name: it would
// look for the state where that is no more.
func (r *Reconciler) cancelBeforeRename(ctx context.Context, names ...string) error {
	for _, name := range names {
		runs, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{Cluster: name, Statuses: unended(), Limit: 1000})
		if err != nil {
			return fmt.Errorf("list runs of %q: %w", name, err)
		}
		for _, id := range pending(runs) {
			if err := r.cancel(ctx, id, ReasonRenamed); err != nil {
				return err
			}
		}
	}
	return nil
}

// refusedRename tells why the store did not rename: a run is running, somebody
// has written one of the records (then conflict stands), or the new name is taken.
func (r *Reconciler) refusedRename(ctx context.Context, old, rec holdfast.ClusterRecord, conflict error) error {
	for _, before := range []holdfast.ClusterRecord{old, rec} {
		running, err := r.runningOf(ctx, before.Name)
		if err != nil {
			return err
		}
		if running != nil {
			return fmt.Errorf("run %s of %q: %w", running.ID, before.Name, errBusy)
		}
		now, err := r.opts.Store.Cluster(ctx, before.Name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("read cluster %q: %w", before.Name, err)
		}
		if now.Version != before.Version {
			return conflict
		}
	}
	return fmt.Errorf("%w: %s", errTaken, conflict.Error())
}

// Transfer gives a cluster to another repository, which defines it already.
// ErrConflict if it does not, or if a run is running.
func (r *Reconciler) Transfer(ctx context.Context, cluster, repo, actor string) error {
	to, ok := r.repos[repo]
	if !ok {
		return fmt.Errorf("repository %q is not watched: %w", repo, holdfast.ErrNotFound)
	}
	for {
		rec, err := r.opts.Store.Cluster(ctx, cluster)
		if err != nil {
			return fmt.Errorf("read cluster %q: %w", cluster, err)
		}
		from := rec.Owner
		if err := r.transferable(ctx, rec, to); err != nil {
			return err
		}
		rec.Owner, rec.UpdatedAt = repo, r.opts.Now()
		// What the new repository says is taken in anew.
		rec.Desired.Removed, rec.Desired.Missing, rec.Desired.RemovedWith = false, "", 0
		rec.Desired.Revision = ""
		_, err = r.opts.Store.SaveCluster(ctx, rec)
		if errors.Is(err, holdfast.ErrConflict) {
			continue
		} else if err != nil {
			return fmt.Errorf("record cluster %q: %w", cluster, err)
		}
		r.audit(ctx, actor, "cluster.transfer", cluster, fmt.Sprintf("from %s to %s", from, repo))
		r.lookAgain(repo, cluster)
		r.lookAgain(from, cluster)
		r.issues.add(issueKey{repo: from, cluster: cluster})
		return nil
	}
}

// transferable is a reason why a cluster cannot be given to a repository; nil if
// it can.
func (r *Reconciler) transferable(ctx context.Context, rec holdfast.ClusterRecord, to Repository) error {
	if rec.Owner == to.Name {
		return fmt.Errorf("cluster %q belongs to %q already: %w", rec.Name, to.Name, holdfast.ErrConflict)
	}
	running, err := r.runningOf(ctx, rec.Name)
	if err != nil {
		return err
	}
	if running != nil {
		return fmt.Errorf("run %s of cluster %q is running, wait for it or cancel it: %w", running.ID, rec.Name, holdfast.ErrConflict)
	}
	source, err := r.opts.Store.Source(ctx, to.Name)
	if err != nil {
		return fmt.Errorf("read source %q: %w", to.Name, err)
	}
	cat, err := r.catalog(ctx, to, string(source.Head))
	if err != nil {
		return err
	}
	if len(cat.names.get(rec.Name)) != 1 {
		return fmt.Errorf("%q does not define cluster %q on %s yet, merge its document there first: %w",
			to.Name, rec.Name, to.Branch, holdfast.ErrConflict)
	}
	return nil
}

// lookAgain has one cluster of a repository looked at although its head has not
// moved.
func (r *Reconciler) lookAgain(repo, cluster string) {
	r.mu.Lock()
	if r.doubtful[repo] == nil {
		r.doubtful[repo] = make(map[string]bool)
	}
	r.doubtful[repo][cluster] = true
	r.mu.Unlock()
	r.setRelook(repo)
	r.sources.add(sourceKey{repo: repo})
}
