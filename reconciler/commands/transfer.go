package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Transfer gives a cluster to another repository, which defines it already.
// ErrConflict if it does not, or if a run is running.
func (o *Operator) Transfer(ctx context.Context, cluster, repo, actor string) error {
	to, ok := o.repos[repo]
	if !ok {
		return holdfast.ErrorOf(holdfast.ErrNotFound, "repository %q is not watched", repo)
	}
	for {
		rec, err := o.opts.Store.Cluster(ctx, cluster)
		if err != nil {
			return fmt.Errorf("read cluster %q: %w", cluster, err)
		}
		before, from := rec, rec.Owner
		if err := o.transferable(ctx, rec, to); err != nil {
			return err
		}
		rec.Owner, rec.UpdatedAt = repo, o.opts.Now()
		// What the new repository says is taken in again.
		rec.Desired.Removed, rec.Desired.Missing, rec.Desired.RemovedWith, rec.Desired.RemovedFrom = false, "", 0, 0
		rec.Desired.Revision = ""
		_, err = o.opts.Store.SaveCluster(ctx, rec)
		if errors.Is(err, holdfast.ErrConflict) {
			continue
		} else if err != nil {
			return fmt.Errorf("record cluster %q: %w", cluster, err)
		}
		// What waits for its turn is what the former owner said.
		if err := o.Records.CancelPending(ctx, cluster, holdfast.ReasonSuperseded); err != nil {
			return err
		}
		o.Records.Audit(ctx, actor, "cluster.transfer", cluster, fmt.Sprintf("from %s to %s", from, repo))
		o.Intake.Recheck(repo, cluster)
		o.Intake.Recheck(from, cluster)
		o.Publisher.UpdateIssue(from, cluster)
		o.Publisher.Waited(ctx, before)
		return nil
	}
}

// transferable is a reason why a cluster cannot be given to a repository; nil if
// it can.
func (o *Operator) transferable(ctx context.Context, rec holdfast.ClusterRecord, to Repository) error {
	if rec.Owner == to.Name {
		return &holdfast.RefusedError{Text: fmt.Sprintf("it belongs to %q already", to.Name)}
	}
	running, err := o.Records.Running(ctx, rec.Name)
	if err != nil {
		return err
	}
	if running != nil {
		return &holdfast.RefusedError{
			Reason: holdfast.ReasonInProgress, Command: "holdfast cancel " + running.ID,
			Text: fmt.Sprintf("run %s is running: wait for it, or cancel it", running.ID),
		}
	}
	source, err := o.opts.Store.RepositoryState(ctx, to.Name)
	if err != nil {
		return fmt.Errorf("read source %q: %w", to.Name, err)
	}
	cat, err := o.Catalogs.Read(ctx, to.Name, string(source.Head))
	if err != nil {
		return err
	}
	if len(cat.Named(rec.Name)) != 1 {
		return &holdfast.RefusedError{
			Reason: holdfast.ReasonMissing,
			Text:   fmt.Sprintf("%q does not define it on %s yet: merge its document there first", to.Name, to.Branch),
		}
	}
	return nil
}
