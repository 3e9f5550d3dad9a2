package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// errBusy: something runs that has to end first. errTaken: there is something
// under the new name that must not be lost.
var (
	errBusy  = errors.New("a run is running")
	errTaken = errors.New("the new name is not free")
)

// takeOver renames a cluster, once nothing runs under its former name and that
// is proven to be gone.
func (r *Reconciler) takeOver(
	ctx context.Context, repo Repository, now branchHead, old, rec holdfast.ClusterRecord,
) (taken, error) {
	why, err := r.missing(ctx, repo, now, old)
	if err != nil {
		return taken{}, err
	}
	if why == "" {
		err = r.rename(ctx, old, rec, now.revision)
	}
	switch {
	case errors.Is(err, errBusy):
		r.setRelook(repo.Name)
		r.agenda.LookAfter(agenda.Look{Repo: repo.Name}, renameRetry)
	case errors.Is(err, errTaken):
		before, readErr := r.opts.Store.Cluster(ctx, old.Name)
		if readErr != nil {
			return taken{}, fmt.Errorf("read cluster %q: %w", old.Name, readErr)
		}
		waits := before
		waits.Desired.Missing = fmt.Sprintf("its new name, %s, cannot take over: %v", rec.Name, err)
		if err := r.saveDesired(ctx, before, waits); err != nil {
			return taken{}, err
		}
		r.agenda.RequestCluster(old.Name)
	case why == "":
		if err == nil { // a merge that has brought the new name and nothing else says so
			r.publish.Waited(ctx, rec)
		}
		return taken{ask: true}, err
	}
	// Until then it must not begin with an empty state of its own.
	r.opts.Logger.InfoContext(ctx, "rename waits", "cluster", rec.Name, "reason", why, "err", err)
	return taken{doubt: true}, nil
}

// renameRetry is how long a rename waits for a run to end.
const renameRetry = 2 * time.Second

// rename gives the state and the history of a cluster to its new name, whose
// record rec is. ErrBusy if a run of either is running, errTaken if the new name
// has a state already.
func (r *Reconciler) rename(ctx context.Context, old, rec holdfast.ClusterRecord, head holdfast.Revision) error {
	runs, err := history.Branch(ctx, r.opts.Store, old.Name)
	if err != nil {
		return err
	}
	if err := r.allRecorded(ctx, old.Name, runs); err != nil {
		return err
	}
	if err := r.cancelBeforeRename(ctx, old.Name, rec.Name); err != nil {
		return err
	}
	now := r.opts.Now()
	rec.Applied, rec.Drift, rec.Suspended = old.Applied, old.Drift, rec.Suspended || old.Suspended
	if location := "clusters/" + old.Name; rec.Applied.StateLocation == location {
		rec.Applied.StateLocation = "clusters/" + rec.Name
	}
	rec.Applied.Document.Name, rec.Applied.Document.RenamedFrom = rec.Name, old.Name
	rec.Ending, rec.UpdatedAt = nil, now
	rec.Phase, rec.Conditions = old.Phase, old.Conditions
	history := []holdfast.Transition{
		{Cluster: rec.Name, At: now, What: "name", From: old.Name, To: rec.Name, Reason: holdfast.ReasonRenamed},
	}
	gone := old
	gone.Ending = &holdfast.Ending{At: now, Reason: holdfast.ReasonRenamed, Revision: head, To: rec.Name}
	gone.Desired.Missing = ""
	gone.Desired.Removed, gone.Applied, gone.Drift = true, holdfast.Applied{}, holdfast.DriftState{}
	gone.Waiting, gone.WaitingDetail, gone.Phase, gone.Conditions = "", "", holdfast.PhaseDeleted, nil
	gone.Life, gone.UpdatedAt = max(old.Life, decision.Newest(runs).ID), now
	err = r.opts.Store.RenameCluster(ctx, gone, rec, history...)
	if errors.Is(err, holdfast.ErrConflict) {
		return r.refusedRename(ctx, old, rec, err)
	} else if err != nil {
		return fmt.Errorf("rename %q to %q: %w", old.Name, rec.Name, err)
	}
	r.records.Audit(ctx, "", "cluster.rename", rec.Name, "from "+old.Name)
	return nil
}

// allRecorded is errBusy if the record does not say yet what the newest of the
// runs has done: with it, another one would be given away.
func (r *Reconciler) allRecorded(ctx context.Context, cluster string, runs []holdfast.Run) error {
	rec, err := r.opts.Store.Cluster(ctx, cluster)
	if err != nil {
		return fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	if _, open := decision.RecordOutcome(decision.Input{Cluster: rec, Runs: runs}); !open {
		return nil
	}
	r.agenda.RequestCluster(cluster)
	return fmt.Errorf("run %s is not recorded: %w", decision.Newest(runs).ID, errBusy)
}

// cancelBeforeRename ends what waits for its turn under either name: it would
// look for the state where that is no more.
func (r *Reconciler) cancelBeforeRename(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := r.records.CancelPending(ctx, name, holdfast.ReasonRenamed); err != nil {
			return err
		}
	}
	return nil
}

// refusedRename tells why the store did not rename: a run is running, somebody
// has written one of the records (then conflict stands), or the new name is taken.
func (r *Reconciler) refusedRename(ctx context.Context, old, rec holdfast.ClusterRecord, conflict error) error {
	for _, before := range []holdfast.ClusterRecord{old, rec} {
		running, err := r.records.Running(ctx, before.Name)
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
		// What waits for its turn is what the former owner said.
		if err := r.records.CancelPending(ctx, cluster, holdfast.ReasonSuperseded); err != nil {
			return err
		}
		r.records.Audit(ctx, actor, "cluster.transfer", cluster, fmt.Sprintf("from %s to %s", from, repo))
		r.lookAgain(repo, cluster)
		r.lookAgain(from, cluster)
		r.publish.Tell(from, cluster)
		return nil
	}
}

// transferable is a reason why a cluster cannot be given to a repository; nil if
// it can.
func (r *Reconciler) transferable(ctx context.Context, rec holdfast.ClusterRecord, to Repository) error {
	if rec.Owner == to.Name {
		return fmt.Errorf("cluster %q belongs to %q already: %w", rec.Name, to.Name, holdfast.ErrConflict)
	}
	running, err := r.records.Running(ctx, rec.Name)
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
	cat, err := r.catalogs.Read(ctx, to.Name, string(source.Head))
	if err != nil {
		return err
	}
	if len(cat.Named(rec.Name)) != 1 {
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
	r.agenda.Look(agenda.Look{Repo: repo})
}
