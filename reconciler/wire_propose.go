package reconciler

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/propose"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
)

// newProposals makes pull requests of what people ask for.
func newProposals(r *Reconciler) *propose.Desk {
	var repositories []propose.Repository
	for _, repo := range r.opts.Sources.Repositories {
		if len(repo.Clusters) > 0 {
			repositories = append(repositories, propose.Repository{
				Name: repo.Name, Branch: repo.Branch, Globs: repo.Clusters, Forge: r.opts.Sources.Forges[repo.Name],
			})
		}
	}
	return propose.New(propose.Options{Fleet: proposer{r}, Catalogs: r.catalogs, Repositories: repositories})
}

// proposer is the reconciler as the desk for proposals sees it.
type proposer struct{ r *Reconciler }

// Cluster returns the record of a cluster.
func (p proposer) Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error) {
	return p.r.opts.Store.Cluster(ctx, name)
}

// Tracked returns what the tracked branch of a repository says, and its head.
func (p proposer) Tracked(ctx context.Context, repo string) (*catalog.Catalog, holdfast.Revision, error) {
	return p.r.intake.Tracked(ctx, repo)
}

// Foresee says what a pull request would be said to change.
func (p proposer) Foresee(ctx context.Context, from, to *catalog.Catalog) (holdfast.PullRequestRecord, error) {
	return p.r.intake.Foresee(ctx, from, to)
}

// ProposeCluster makes a pull request that adds, changes or removes the document of a
// cluster, and asks for a look at it; see propose.Desk.
func (r *Reconciler) ProposeCluster(ctx context.Context, p proposals.ClusterChange) (proposals.ClusterOutcome, error) {
	made, err := r.proposals.Propose(ctx, p)
	if err == nil && made.PullRequest.Number != 0 {
		r.records.Audit(ctx, p.By, "cluster.propose", p.Name, p.Change+" by pull request "+made.PullRequest.String())
		r.Enqueue(holdfast.SourceRequest{Repo: made.PullRequest.Repo, PullRequest: made.PullRequest.Number})
	}
	return made, err
}

// TemplateVersion returns what a version of a template says to those who make clusters from
// it. ErrNotFound, with the reason, if it cannot be used.
func (r *Reconciler) TemplateVersion(ctx context.Context, name, version string) (holdfast.TemplateDetail, error) {
	found, why, err := releases.NewLook(r.releases, r.resolver).Template(ctx, name, version)
	switch {
	case err != nil:
		return holdfast.TemplateDetail{}, err
	case why != "":
		return holdfast.TemplateDetail{}, holdfast.ErrorOf(holdfast.ErrNotFound, "template %s %s cannot be used: %s", name, version, why)
	}
	b := found.Blueprint()
	out := holdfast.TemplateDetail{Name: name, Version: version, Description: b.Description, Schema: b.Schema, Required: b.Required}
	for _, rule := range b.Rules {
		out.Rules = append(out.Rules, holdfast.TemplateRule(rule))
	}
	for _, p := range b.Providers {
		out.Providers = append(out.Providers, holdfast.TemplateProvider{Name: p.Name, Regions: p.Regions, InstanceTypes: p.InstanceTypes, Defaults: p.Defaults})
	}
	return out, nil
}
