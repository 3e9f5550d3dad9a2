package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
)

// errBusy: something has to end first. errTaken: the new name has something that must
// not be lost.
var (
	errBusy  = errors.New("a run is running, or a state is to be saved")
	errTaken = errors.New("the new name is not free")
)

// takeOver renames a cluster, once nothing runs under its former name and that
// is proven to be gone.
func (b *branches) takeOver(
	ctx context.Context, repo Repository, now branchHead, old, rec holdfast.ClusterRecord,
) (taken, error) {
	doubt, err := b.missing(ctx, repo, now, old)
	if err != nil {
		return taken{}, err
	}
	if doubt.Why == "" {
		err = b.rename(ctx, old, rec, now.revision)
	}
	switch {
	case errors.Is(err, errBusy):
		b.marks.setRelook(repo.Name)
		b.Agenda.LookAfter(agenda.Look{Repo: repo.Name}, renameRetry)
	case errors.Is(err, errTaken):
		before, readErr := b.opts.Store.Cluster(ctx, old.Name)
		if readErr != nil {
			return taken{}, fmt.Errorf("read cluster %q: %w", old.Name, readErr)
		}
		waits := before
		waits.Desired = lineage.CannotTakeOver(before.Desired, rec.Name, err)
		if err := b.saveDesired(ctx, before, waits); err != nil {
			return taken{}, err
		}
		b.Agenda.RequestCluster(old.Name)
	case doubt.Why == "":
		if err == nil { // merges that have brought the new name and nothing else say so, and those that waited
			b.Publisher.Waited(ctx, rec)
			b.Publisher.Waited(ctx, old)
			err = b.freed(ctx, old)
		}
		return taken{ask: true}, err
	}
	// Until then it must not begin with its own empty state.
	b.opts.Logger.InfoContext(ctx, "rename waits", "cluster", rec.Name, "reason", doubt.Why, "err", err)
	return taken{doubt: true}, nil
}

// renameRetry is how long a rename waits for a run to end.
const renameRetry = 2 * time.Second

// rename gives the state and the history of a cluster to its new name, whose
// record rec is. ErrBusy if a run of either is running, errTaken if the new name
// has a state already.
func (b *branches) rename(ctx context.Context, old, rec holdfast.ClusterRecord, head holdfast.Revision) error {
	runs, err := history.Branch(ctx, b.opts.Store, old.Name)
	if err != nil {
		return err
	}
	if err := b.allRecorded(ctx, old.Name, runs); err != nil {
		return err
	}
	if err := b.nothingRuns(ctx, old.Name, rec.Name); err != nil {
		return err
	}
	if err := b.cancelBeforeRename(ctx, old.Name, rec.Name); err != nil {
		return err
	}
	if old, err = b.asLeft(ctx, old, rec); err != nil {
		return err
	}
	now := b.opts.Now()
	rec.Applied, rec.Left, rec.Drift = old.Applied, old.Left, old.Drift
	if old.Suspended && !rec.Suspended {
		rec.OwnSuspension = old.OwnSuspension
	}
	if location := "clusters/" + old.Name; rec.Applied.StateLocation == location {
		rec.Applied.StateLocation = "clusters/" + rec.Name
	}
	rec.Applied.Document.Name, rec.Applied.Document.RenamedFrom = rec.Name, old.Name
	rec.Deletion, rec.UpdatedAt = nil, now
	rec.Phase, rec.Conditions = old.Phase, old.Conditions
	history := []holdfast.Transition{
		{Cluster: rec.Name, At: now, What: "name", From: old.Name, To: rec.Name, Reason: holdfast.ReasonRenamed},
	}
	gone := old
	gone.Deletion = &holdfast.Deletion{At: now, Reason: holdfast.ReasonRenamed, Revision: head, To: rec.Name}
	gone.Desired = lineage.Held(gone.Desired, lineage.Doubt{})
	gone.Applied, gone.Drift = holdfast.Applied{}, holdfast.DriftState{}
	gone.Left = holdfast.Leftover{}
	gone.Waiting, gone.WaitingDetail, gone.Phase, gone.Conditions = "", "", holdfast.PhaseDeleted, nil
	gone.Life, gone.UpdatedAt = max(old.Life, decision.Newest(runs).ID), now
	err = b.opts.Store.RenameCluster(ctx, gone, rec, history...)
	if errors.Is(err, holdfast.ErrConflict) {
		return b.refusedRename(ctx, old, rec, err)
	} else if err != nil {
		return fmt.Errorf("rename %q to %q: %w", old.Name, rec.Name, err)
	}
	b.Records.Audit(ctx, "", "cluster.rename", rec.Name, "from "+old.Name)
	return nil
}

// asLeft is what rec continues from now that nothing runs: an apply that was running
// when old was read may have ended since, well or not. One that was claimed since is the
// store's to refuse.
func (b *branches) asLeft(ctx context.Context, old, rec holdfast.ClusterRecord) (holdfast.ClusterRecord, error) {
	now, err := b.Lineage.Former(ctx, rec.Owner, rec, rec.Desired.Document)
	if err == nil && now.Name != old.Name {
		err = fmt.Errorf("%q no longer has anything to take over: %w", old.Name, errBusy)
	}
	return now, err
}

// allRecorded is errBusy if the record does not say yet what the newest of the
// runs has done: with it, another one would be given away.
func (b *branches) allRecorded(ctx context.Context, cluster string, runs []holdfast.Run) error {
	rec, err := b.opts.Store.Cluster(ctx, cluster)
	if err != nil {
		return fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	if _, open := decision.RecordOutcome(decision.Input{Cluster: rec, Runs: runs}); !open {
		return nil
	}
	b.Agenda.RequestCluster(cluster)
	return fmt.Errorf("run %s is not recorded: %w", decision.Newest(runs).ID, errBusy)
}

// nothingRuns is errBusy while something under either name has to end first. A rename
// that waits cancels nothing: what is pending would be asked for again, and canceled
// again with the next try.
func (b *branches) nothingRuns(ctx context.Context, names ...string) error {
	for _, name := range names {
		running, err := b.Records.Running(ctx, name)
		if err != nil {
			return err
		}
		if running != nil {
			return fmt.Errorf("run %s of %q: %w", running.ID, name, errBusy)
		}
		unsaved, err := b.opts.Store.UnsavedStates(ctx, name)
		if err != nil {
			return fmt.Errorf("look for unsaved states of %q: %w", name, err)
		}
		if len(unsaved) > 0 {
			return fmt.Errorf("the state of run %s: %w", unsaved[0].Run, errBusy)
		}
	}
	return nil
}

// cancelBeforeRename ends what waits for its turn under either name: it would
// look for the state where it no longer is.
func (b *branches) cancelBeforeRename(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := b.Records.CancelPending(ctx, name, holdfast.ReasonRenamed); err != nil {
			return err
		}
	}
	return nil
}

// refusedRename says why the store did not rename: a run is running or a state is still
// to be saved, somebody has written one of the records (then conflict is set), or the
// new name is taken.
func (b *branches) refusedRename(ctx context.Context, old, rec holdfast.ClusterRecord, conflict error) error {
	if errors.Is(conflict, holdfast.ErrUnsaved) {
		return fmt.Errorf("%w: %s", errBusy, conflict.Error())
	}
	for _, before := range []holdfast.ClusterRecord{old, rec} {
		running, err := b.Records.Running(ctx, before.Name)
		if err != nil {
			return err
		}
		if running != nil {
			return fmt.Errorf("run %s of %q: %w", running.ID, before.Name, errBusy)
		}
		now, err := b.opts.Store.Cluster(ctx, before.Name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("read cluster %q: %w", before.Name, err)
		}
		if now.Version != before.Version {
			return conflict
		}
	}
	return fmt.Errorf("%w: %s", errTaken, conflict.Error())
}
