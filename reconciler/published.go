package reconciler

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/published"
)

func newPublished(r *Reconciler) *published.List {
	repositories := make([]published.Repository, 0, len(r.opts.Repositories))
	for _, repo := range r.opts.Repositories {
		repositories = append(repositories, published.Repository{Name: repo.Name, Branch: repo.Branch, Templates: repo.Templates})
	}
	return published.NewList(published.Options{
		Store: r.opts.Store, Repositories: repositories, Releases: r.releases, Resolver: r.resolver,
		Upgrades: r.upgrades, Logger: r.opts.Logger,
		Tracked: func(ctx context.Context, repo string) (*catalog.Catalog, holdfast.Revision, error) {
			return r.intake.Tracked(ctx, repo)
		},
	})
}

// Templates returns the templates that the repositories publish: see published.List.
func (r *Reconciler) Templates(ctx context.Context, name string) ([]holdfast.TemplateStatus, error) {
	return r.published.Templates(ctx, name)
}
