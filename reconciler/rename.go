package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// former returns the record of the name that a document says its cluster had
// before, if that is what it continues from: the cluster is not applied under the
// new name yet, and was under the old one, in the same repository. Its Applied is
// what there is, half applied or not. Otherwise the zero record.
func (r *Reconciler) former(ctx context.Context, repo string, rec holdfast.ClusterRecord, doc holdfast.Cluster) (holdfast.ClusterRecord, error) {
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
	case old.Ending != nil || old.Owner != repo:
		return none, nil
	}
	if old.Applied, err = r.inherited(ctx, old); err != nil || old.Applied.Run == "" {
		return none, err
	}
	return old, nil
}

// inherited is what a cluster continues from under another name: what was last
// applied. What a run has left half done is not as any document says: it has no
// digest, so that it is planned, and keeps the guard that it had.
func (r *Reconciler) inherited(ctx context.Context, rec holdfast.ClusterRecord) (holdfast.Applied, error) {
	runs, err := history.Branch(ctx, r.opts.Store, rec.Name)
	if err != nil {
		return holdfast.Applied{}, err
	}
	applied := lastApplied(rec, runs)
	if decision.Begun(decision.Input{Cluster: rec, Runs: runs}) != nil {
		applied.SourceDigest, applied.InputDigest = "", ""
		applied.Document.Deletion.Protected = applied.Document.Deletion.Protected || rec.Applied.Document.Deletion.Protected
	}
	return applied, nil
}

// heirs are the names under which a tree says that a cluster continues, without
// those that have taken over from an earlier one of that name: renamedFrom may
// stay in a document for ever.
func (r *Reconciler) heirs(ctx context.Context, cat *catalog.Catalog, name string) ([]string, error) {
	var out []string
	for _, to := range cat.Renamed(name) {
		rec, err := r.opts.Store.Cluster(ctx, to)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, fmt.Errorf("read cluster %q: %w", to, err)
		}
		if !tookOver(rec, name) {
			out = append(out, to)
		}
	}
	return out, nil
}

// tookOver reports whether a cluster had that name before.
func tookOver(rec holdfast.ClusterRecord, name string) bool {
	return rec.Applied.Run != "" && rec.Applied.Document.RenamedFrom == name
}

// notRenamed is the fault of a document whose former name is still defined, goes
// to another one as well, or cannot go to this one, which is a cluster already.
func (r *Reconciler) notRenamed(ctx context.Context, cat *catalog.Catalog, res *catalog.Resolution, rec holdfast.ClusterRecord) (holdfast.Faults, error) {
	c := res.Doc.Cluster
	if c.RenamedFrom == "" || tookOver(rec, c.RenamedFrom) {
		return nil, nil
	}
	fault := func(hint, message string, args ...any) holdfast.Faults {
		message = fmt.Sprintf("renamedFrom is %q, ", c.RenamedFrom) + fmt.Sprintf(message, args...)
		return holdfast.Faults{res.Doc.Fault(message, hint, "metadata", "renamedFrom")}
	}
	if still := cat.Named(c.RenamedFrom); len(still) > 0 {
		at := still[0].Doc.Fault("", "", "metadata", "name")
		return fault("remove the one, or renamedFrom from the other", "which is still defined at %s", at.Position()), nil
	}
	heirs, err := r.heirs(ctx, cat, c.RenamedFrom)
	if err != nil {
		return nil, err
	}
	if others := slices.DeleteFunc(heirs, func(name string) bool { return name == c.Name }); len(others) > 0 {
		return fault("a cluster can be renamed to one name only: remove renamedFrom from the other", "and so it is of %q", others[0]), nil
	}
	foreign, err := r.opts.Store.Cluster(ctx, c.RenamedFrom)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return nil, fmt.Errorf("read cluster %q: %w", c.RenamedFrom, err)
	}
	if foreign.Name == "" {
		first, err := r.firstNameOf(ctx, cat.Repo, c.RenamedFrom)
		if err != nil || first == "" {
			return nil, err
		}
		return fault(fmt.Sprintf("say renamedFrom: %s, which is what it is called on record", first), "which has not taken over from %q", first), nil
	}
	if foreign.Applied.Run != "" && foreign.Owner != cat.Repo {
		return fault("transfer it under its old name first, then rename it", "which belongs to repository %q", foreign.Owner), nil
	}
	old, err := r.former(ctx, cat.Repo, holdfast.ClusterRecord{}, c)
	if err != nil || old.Name == "" || rec.Name == "" {
		return nil, err // there is nothing to take over, or nothing that it would meet
	}
	own, err := r.inherited(ctx, rec)
	if err != nil || own.Run == "" {
		return nil, err
	}
	return fault("remove renamedFrom, or choose a new metadata.name", "and %s was applied already: two clusters do not become one", c.Name), nil
}

// firstNameOf returns the cluster whose new name has not taken over from it yet;
// empty if there is none.
func (r *Reconciler) firstNameOf(ctx context.Context, repo, name string) (string, error) {
	waiting, err := r.opts.Store.Clusters(ctx, holdfast.ClusterFilter{Owner: repo, Waiting: holdfast.ReasonMissing})
	if err != nil {
		return "", fmt.Errorf("list missing clusters of %q: %w", repo, err)
	}
	r.mu.Lock()
	doubtful := slices.Sorted(maps.Keys(r.doubtful[repo])) // one of which a run is executed waits for that
	r.mu.Unlock()
	if len(doubtful) > 0 {
		more, err := r.opts.Store.Clusters(ctx, holdfast.ClusterFilter{Owner: repo, Names: doubtful})
		if err != nil {
			return "", fmt.Errorf("read doubtful clusters of %q: %w", repo, err)
		}
		waiting = append(waiting, more...)
	}
	for _, rec := range waiting {
		if is, ok := newName(rec); ok && is == name {
			return rec.Name, nil
		}
	}
	return "", nil
}

// waitsForHeir is why a cluster that has a new name is not gone: that has not
// taken over yet. Empty if it has none.
func (r *Reconciler) waitsForHeir(ctx context.Context, cat *catalog.Catalog, rec holdfast.ClusterRecord) (string, error) {
	heirs, err := r.heirs(ctx, cat, rec.Name)
	if err != nil {
		return "", err
	}
	if len(heirs) == 0 { // a new name that came and went is not a removal
		if names, ok := newName(rec); ok {
			return heirPrefix + names + heirGone + rec.Name + " where it continues, or restore it before it is removed", nil
		}
		return "", nil
	}
	if applied, err := r.inherited(ctx, rec); err != nil || applied.Run == "" {
		return "", err // there is nothing to take over
	}
	heirText := heirPrefix + strings.Join(heirs, " or ")
	if why := rec.Desired.Missing; strings.HasPrefix(why, heirText+", ") && !strings.HasPrefix(why, heirText+heirGone) {
		return why, nil // it says why that is not so yet
	}
	return heirText + ", takes over when nothing runs and it has no faults", nil
}

const (
	heirPrefix = "its new name, "
	heirGone   = ", went before it had taken over: say renamedFrom: "
)

// newName is what a cluster that is missing is to be called, if that is why.
func newName(rec holdfast.ClusterRecord) (string, bool) {
	rest, ok := strings.CutPrefix(rec.Desired.Missing, heirPrefix)
	name, _, _ := strings.Cut(rest, ", ")
	return name, ok
}

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
		r.sources.AddAfter(sourceKey{repo: repo.Name}, renameRetry)
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
		r.requests.Add(holdfast.Request{Cluster: old.Name})
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
	if location := "clusters/" + old.Name; rec.Applied.StateLocation == location || rec.Applied.StateLocation == "" && r.appliedAt(ctx, old) == location {
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
	r.audit(ctx, "", "cluster.rename", rec.Name, "from "+old.Name)
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
	r.requests.Add(holdfast.Request{Cluster: cluster})
	return fmt.Errorf("run %s is not recorded: %w", decision.Newest(runs).ID, errBusy)
}

// cancelBeforeRename ends what waits for its turn under either name: it would
// look for the state where that is no more.
func (r *Reconciler) cancelBeforeRename(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := r.cancelPending(ctx, name, holdfast.ReasonRenamed); err != nil {
			return err
		}
	}
	return nil
}

// cancelPending cancels all runs of a cluster that have not begun.
func (r *Reconciler) cancelPending(ctx context.Context, cluster string, reason holdfast.Reason) error {
	runs, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{Cluster: cluster, Statuses: unended(), Limit: 1000})
	if err != nil {
		return fmt.Errorf("list runs of %q: %w", cluster, err)
	}
	for _, id := range decision.Pending(runs) {
		if err := r.cancel(ctx, id, reason); err != nil {
			return err
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
		// What waits for its turn is what the former owner said.
		if err := r.cancelPending(ctx, cluster, holdfast.ReasonSuperseded); err != nil {
			return err
		}
		r.audit(ctx, actor, "cluster.transfer", cluster, fmt.Sprintf("from %s to %s", from, repo))
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
	r.sources.Add(sourceKey{repo: repo})
}
