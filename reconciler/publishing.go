package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/publish"
)

// newPublisher returns the one that keeps what the forges show for r.
func newPublisher(r *Reconciler) *publish.Publisher {
	opts := publish.Options{
		Store: r.opts.Store, Git: r.opts.Git, Fleet: publishing{r}, Watcher: publishing{r}, Logger: r.opts.Logger,
		Forges: make(map[string]publish.Forge, len(r.opts.Forges)), Repositories: make(map[string]bool, len(r.repos)),
		Settings: publish.Settings{
			Identity: r.opts.Identity, MaxRetries: r.opts.MaxRetries, MaxIssues: r.opts.MaxIssues, LogURL: r.opts.LogURL, PullRequestURL: r.opts.PullRequestURL, Now: r.opts.Now,
		},
	}
	for name, forge := range r.opts.Forges {
		if forge != nil {
			opts.Forges[name] = forge
		}
	}
	for name, repo := range r.repos {
		opts.Repositories[name] = len(repo.Templates) > 0
	}
	return publish.New(opts)
}

// publishing is what the Publisher knows of the reconciler.
type publishing struct{ r *Reconciler }

// Foresee gathers what a merge would have to wait for in one cluster.
func (p publishing) Foresee(
	ctx context.Context, pr holdfast.PullRequestRecord, c holdfast.PullRequestCluster,
) (decision.Input, error) {
	r := p.r
	in := decision.Input{Request: holdfast.Request{Cluster: c.Name, PullRequest: pr.PullRequestRef}, PullRequest: &pr}
	rec, err := r.opts.Store.Cluster(ctx, c.Name)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return in, fmt.Errorf("read cluster %q: %w", c.Name, err)
	}
	in.Cluster = rec
	if in.Unsaved, in.UnsavedDetail, err = r.rescue.Standing(ctx, c.Name); err != nil {
		return in, err
	}
	if !c.Deleted {
		return in, r.observeProposal(ctx, &in)
	}
	branch, err := history.Branch(ctx, r.opts.Store, c.Name)
	if err != nil {
		return in, err
	}
	if in.Last = decision.LastApplied(rec, branch); in.Last.Run == "" {
		return in, nil
	}
	if in.Dependents, err = r.lineage.Dependents(ctx, c.Name); err != nil {
		return in, err
	}
	goes := func(d holdfast.Relation) bool { return slices.ContainsFunc(pr.Clusters, deletes(d.Name)) }
	in.Dependents = slices.DeleteFunc(in.Dependents, goes) // the same merge removes them, too
	in.Removals, in.Fleet, err = r.removals(ctx, pr)
	return in, err
}

func deletes(name string) func(holdfast.PullRequestCluster) bool {
	return func(c holdfast.PullRequestCluster) bool { return c.Name == name && c.Deleted }
}

// removals counts the clusters that a pull request removes, and those that its
// repository has.
func (r *Reconciler) removals(ctx context.Context, pr holdfast.PullRequestRecord) (removed, fleet int, err error) {
	for _, c := range pr.Clusters {
		if c.Deleted {
			removed++
		}
	}
	fleet, err = r.opts.Store.CountClusters(ctx, holdfast.ClusterFilter{Owner: pr.Repo})
	if err != nil {
		return 0, 0, fmt.Errorf("count clusters of %q: %w", pr.Repo, err)
	}
	return removed, fleet, nil
}

// ProviderWait is why no run of a provider is handed out.
func (p publishing) ProviderWait(ctx context.Context, provider string) (reason holdfast.Reason, detail string, err error) {
	return p.r.dispatcher.ProviderWait(ctx, provider)
}

// DriftReport is all that there is to tell of a cluster's drift.
func (p publishing) DriftReport(ctx context.Context, rec holdfast.ClusterRecord) (holdfast.DriftReport, error) {
	return p.r.driftReport(ctx, rec)
}

// Plan reads the plan that a run made.
func (p publishing) Plan(ctx context.Context, run string) (holdfast.Plan, error) {
	return p.r.summary(ctx, run)
}

// Wanted wakes the other replicas.
func (p publishing) Wanted(ctx context.Context) { p.r.wakeOthers(ctx, topicPosts) }

// GaveUp counts what is not tried again.
func (p publishing) GaveUp(post holdfast.Post) { p.r.opts.Metrics.GaveUp(post.Kind) }

// Posted measures and traces an attempt to make a post.
func (p publishing) Posted(post holdfast.Post, began time.Time, err error) {
	p.r.opts.Metrics.Posted(post.Kind, err == nil)
	if delivery := p.r.traces.Of(post.Repo, post.PullRequest.Number); delivery != "" {
		p.r.traces.Since(delivery, "post "+string(post.Kind), began, nil, err)
	}
}
