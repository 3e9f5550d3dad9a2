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

// Foresee gathers what a merge would have to wait for in one cluster, and returns the
// newest runs of its tracked branch with it.
func (l *Loop) Foresee(
	ctx context.Context, pr holdfast.PullRequestRecord, c holdfast.PullRequestCluster,
) (in decision.Input, branch []holdfast.Run, err error) {
	in = decision.Input{Request: holdfast.Request{Cluster: c.Name, PullRequest: pr.PullRequestRef}, PullRequest: &pr}
	rec, err := l.opts.Store.Cluster(ctx, c.Name)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return in, nil, fmt.Errorf("read cluster %q: %w", c.Name, err)
	}
	in.Cluster = rec
	if in.Unsaved, err = l.Rescue.Standing(ctx, c.Name); err != nil {
		return in, nil, err
	}
	if branch, err = history.Branch(ctx, l.opts.Store, c.Name); err != nil {
		return in, nil, err
	}
	in.Last = decision.LastApplied(rec, branch)
	if rec.Name != "" && toApply(decision.Input{Cluster: rec, Runs: branch, Last: in.Last}) {
		if in.Merges, err = l.observer.merges(ctx, rec, branch, l.observer.reviewed); err != nil {
			return in, nil, err
		}
	}
	if !c.Removed {
		err = l.observer.observeProposal(ctx, &in)
		return in, branch, err
	}
	if in.Last.Run == "" {
		return in, branch, nil
	}
	if in.Dependents, err = l.Lineage.DestroyedFirst(ctx, rec); err != nil {
		return in, nil, err
	}
	goes := func(d holdfast.Relation) bool { return slices.ContainsFunc(pr.Clusters, decision.Removes(d.Name)) }
	in.Dependents = slices.DeleteFunc(in.Dependents, goes) // the same merge removes them, too
	in.Removals, in.Fleet, err = l.removals(ctx, pr)
	return in, branch, err
}

// removals counts the clusters that a pull request removes, and those of its
// repository that were applied.
func (l *Loop) removals(ctx context.Context, pr holdfast.PullRequestRecord) (removed, fleet int, err error) {
	for _, c := range pr.Clusters {
		if c.Removed {
			removed++
		}
	}
	fleet, err = l.opts.Store.CountClusters(ctx, holdfast.ClusterFilter{Owner: pr.Repo, Applied: true})
	if err != nil {
		return 0, 0, fmt.Errorf("count clusters of %q: %w", pr.Repo, err)
	}
	return removed, fleet, nil
}
