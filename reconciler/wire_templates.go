package reconciler

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/impact"
	"github.com/holdfast-dev/holdfast/reconciler/policies"
	"github.com/holdfast-dev/holdfast/reconciler/published"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/reconciler/upgrade"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// assessing is the Reconciler as the keeper of impacts sees it.
type assessing struct{ r *Reconciler }

func newImpacts(r *Reconciler) *impact.Keeper {
	repositories := make([]impact.Repository, 0, len(r.opts.Sources.Repositories))
	for _, repo := range r.opts.Sources.Repositories {
		repositories = append(repositories, impact.Repository{
			Name: repo.Name, Branch: repo.Branch, Clusters: len(repo.Clusters) > 0, Templates: repo.Templates,
			Samples: repo.Samples, SampleEnvironments: repo.SampleEnvironments,
		})
	}
	return impact.NewKeeper(impact.Options{
		Store: r.opts.Store, Fleet: assessing{r}, Repositories: repositories, Catalogs: r.catalogs,
		Releases: r.releases, Resolver: r.resolver, Logger: r.opts.Telemetry.Logger,
	})
}

// Refs returns the branches and tags of a repository as they were last fetched.
func (a assessing) Refs(repo string) holdfast.Refs { return a.r.intake.Refs(repo) }

// LookAgain asks for a look at a pull request, which itself has not changed.
func (a assessing) LookAgain(ref holdfast.PullRequestRef, after time.Duration) {
	a.r.agenda.LookAfter(agenda.Look{Repo: ref.Repo, Number: ref.Number, Known: true}, after)
}

// Forbidden is why a repository may not define a cluster with that state.
func (a assessing) Forbidden(repo string, doc document.Document, stateLocation string) holdfast.Faults {
	return a.r.opts.Grants.forbidden(repo, doc, stateLocation)
}

// OwnedElsewhere reports whether a cluster's name belongs to another repository.
func (a assessing) OwnedElsewhere(ctx context.Context, repo string, rec holdfast.ClusterRecord) (bool, error) {
	return a.r.lineage.BelongsElsewhere(ctx, repo, rec)
}

// upgrading is the Reconciler as the keeper of upgrades sees it.
type upgrading struct{ r *Reconciler }

func newUpgrades(r *Reconciler) *upgrade.Keeper {
	repositories := make([]upgrade.Repository, 0, len(r.opts.Sources.Repositories))
	for _, repo := range r.opts.Sources.Repositories {
		repositories = append(repositories, upgrade.Repository{
			Name: repo.Name, Branch: repo.Branch, Groups: repo.UpgradeGroups, Further: repo.further(),
			Forge: r.opts.Sources.Forges[repo.Name],
		})
	}
	return upgrade.NewKeeper(upgrade.Options{
		Store: r.opts.Store, Git: r.opts.Sources.Git, Fleet: upgrading{r}, Repositories: repositories,
		Look:  func() *releases.Look { return releases.NewLook(r.releases, r.resolver) },
		Leads: r.leader.Leads, Logger: r.opts.Telemetry.Logger, Now: r.opts.Now,
	})
}

// Enqueue asks for a look at a repository or a pull request.
func (u upgrading) Enqueue(req holdfast.SourceRequest) { u.r.Enqueue(req) }

// Tracked returns what the tracked branch of a repository says, and its head.
func (u upgrading) Tracked(ctx context.Context, repo string) (*catalog.Catalog, holdfast.Revision, error) {
	return u.r.intake.Tracked(ctx, repo)
}

// Resolve says what a document resolves to in a tree.
func (u upgrading) Resolve(ctx context.Context, tree holdfast.Tree, doc document.Document) (*templates.Root, holdfast.Faults, error) {
	return u.r.resolver.Resolve(ctx, tree, doc)
}

// Audit records what somebody did.
func (u upgrading) Audit(ctx context.Context, actor, action, object, detail string) {
	u.r.records.Audit(ctx, actor, action, object, detail)
}

// newPolicies reads the policies that are bound to clusters.
func newPolicies(r *Reconciler) *policies.Reader {
	bound := r.opts.Grants.Policies
	return policies.NewReader(policies.Options{
		Sets: bound.Sets, Shipped: bound.Shipped, Pins: r.opts.Store, Git: r.opts.Sources.Git,
		Refs: func(ctx context.Context, repo string) (holdfast.Refs, error) { return r.intake.KnownRefs(ctx, repo) },
	})
}

func newPublished(r *Reconciler) *published.List {
	repositories := make([]published.Repository, 0, len(r.opts.Sources.Repositories))
	for _, repo := range r.opts.Sources.Repositories {
		repositories = append(repositories, published.Repository{Name: repo.Name, Branch: repo.Branch, Templates: repo.Templates})
	}
	return published.NewList(published.Options{
		Store: r.opts.Store, Repositories: repositories, Releases: r.releases, Resolver: r.resolver,
		Upgrades: r.upgrades, Logger: r.opts.Telemetry.Logger,
		Tracked: func(ctx context.Context, repo string) (*catalog.Catalog, holdfast.Revision, error) {
			return r.intake.Tracked(ctx, repo)
		},
	})
}
