package reconciler

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/reconciler/upgrade"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// upgrading is the Reconciler as the keeper of upgrades sees it.
type upgrading struct{ *Reconciler }

func newUpgrades(r *Reconciler) *upgrade.Keeper {
	repositories := make([]upgrade.Repository, 0, len(r.opts.Repositories))
	for _, repo := range r.opts.Repositories {
		repositories = append(repositories, upgrade.Repository{
			Name: repo.Name, Branch: repo.Branch, Groups: repo.UpgradeGroups, Further: repo.further(),
			Forge: r.opts.Forges[repo.Name],
		})
	}
	return upgrade.NewKeeper(upgrade.Options{
		Store: r.opts.Store, Git: r.opts.Git, Fleet: upgrading{r}, Repositories: repositories,
		Look:     func() *releases.Look { return releases.NewLook(r.releases, r.resolver) },
		Identity: r.opts.Identity, Logger: r.opts.Logger, Now: r.opts.Now,
	})
}

// Tracked returns what the tracked branch of a repository says, and its head.
func (u upgrading) Tracked(ctx context.Context, repo string) (*catalog.Catalog, holdfast.Revision, error) {
	return u.intake.Tracked(ctx, repo)
}

// Resolve says what a document resolves to in a tree.
func (u upgrading) Resolve(ctx context.Context, tree holdfast.Tree, doc document.Document) (*templates.Root, holdfast.Faults, error) {
	return u.resolver.Resolve(ctx, tree, doc)
}

// Audit records what somebody did.
func (u upgrading) Audit(ctx context.Context, actor, action, object, detail string) {
	u.records.Audit(ctx, actor, action, object, detail)
}

// Upgrade proposes newer versions at once: see upgrade.Keeper.
func (r *Reconciler) Upgrade(ctx context.Context, req holdfast.UpgradeRequest) ([]holdfast.Upgrade, error) {
	return r.upgrades.Upgrade(ctx, req)
}
