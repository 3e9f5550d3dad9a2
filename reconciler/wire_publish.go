package reconciler

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/publish"
)

// newPublisher returns the one that keeps what the forges show for r.
func newPublisher(r *Reconciler) *publish.Publisher {
	opts := publish.Options{
		Store: r.opts.Store, Git: r.opts.Sources.Git, Fleet: publishing{r}, Watcher: publishing{r}, Logger: r.opts.Telemetry.Logger,
		Forges: make(map[string]publish.Forge, len(r.opts.Sources.Forges)), Repositories: make(map[string]bool, len(r.opts.Sources.Repositories)),
		Settings: publish.Settings{
			Identity: r.opts.Replica.Identity, MaxRetries: r.opts.Limits.Retries, MaxIssues: r.opts.Reports.Issues, PolicyStatus: r.opts.Reports.PolicyStatus,
			Leads: r.leader.Leads, HandOver: peering{r}.handOver,
			LogURL: r.opts.Reports.LogURL, PullRequestURL: r.opts.Reports.PullRequestURL, Now: r.opts.Now,
		},
	}
	labeled := make(map[string]bool)
	for _, repo := range r.opts.Sources.Repositories {
		labeled[repo.Name] = repo.Labels
	}
	opts.Settings.Labels = func(repo string) bool { return labeled[repo] }
	for name, forge := range r.opts.Sources.Forges {
		if forge != nil {
			opts.Forges[name] = forge
		}
	}
	for _, repo := range r.opts.Sources.Repositories {
		opts.Repositories[repo.Name] = len(repo.Templates) > 0
	}
	return publish.New(opts)
}

// publishing is what the Publisher knows of the reconciler.
type publishing struct{ r *Reconciler }

// Foresee gathers what a merge would have to wait for in one cluster, with its newest runs.
func (p publishing) Foresee(
	ctx context.Context, pr holdfast.PullRequestRecord, c holdfast.PullRequestCluster,
) (decision.Input, []holdfast.Run, error) {
	return p.r.loop.Foresee(ctx, pr, c)
}

// CapWait is why no run of a cluster is handed out.
func (p publishing) CapWait(ctx context.Context, c holdfast.Cluster) (reason holdfast.Reason, detail string, err error) {
	return p.r.dispatcher.CapWait(ctx, c)
}

// DriftReport is everything that is known of a cluster's drift.
func (p publishing) DriftReport(ctx context.Context, rec holdfast.ClusterRecord) (holdfast.DriftReport, error) {
	return p.r.drift.Report(ctx, rec)
}

// Plan reads the plan that a run made; ErrNotFound if that is not there to be shown.
func (p publishing) Plan(ctx context.Context, run string) (holdfast.Plan, error) {
	return history.Plan(ctx, p.r.artefacts, run)
}

// Defines reports whether a revision has a document of a cluster.
func (p publishing) Defines(ctx context.Context, repo string, revision holdfast.Revision, cluster string) (bool, error) {
	cat, err := p.r.catalogs.Read(ctx, repo, string(revision))
	if err != nil {
		return false, err
	}
	return len(cat.Named(cluster)) > 0, nil
}

// Wanted wakes the other replicas.
func (p publishing) Wanted(ctx context.Context) { p.r.wakeOthers(ctx, topicPosts) }

// GaveUp counts what is not tried again.
func (p publishing) GaveUp(post outgoing.Post) { p.r.opts.Telemetry.Metrics.GaveUp(post.Kind) }

// Posted measures and traces an attempt to make a post.
func (p publishing) Posted(post outgoing.Post, began time.Time, err error) {
	p.r.opts.Telemetry.Metrics.Posted(post.Kind, err == nil)
	if delivery := p.r.traces.Of(post.Repo, post.PullRequest.Number); delivery != "" {
		p.r.traces.Since(delivery, "post "+string(post.Kind), began, nil, err)
	}
}
