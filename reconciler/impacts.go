package reconciler

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/impact"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// assessing is the Reconciler as the keeper of impacts sees it.
type assessing struct{ *Reconciler }

func newImpacts(r *Reconciler) *impact.Keeper {
	repositories := make([]impact.Repository, 0, len(r.opts.Repositories))
	for _, repo := range r.opts.Repositories {
		repositories = append(repositories, impact.Repository{
			Name: repo.Name, Templates: repo.Templates,
			Trials: r.repos[repo.Name].Trials, TrialEnvironments: repo.TrialEnvironments,
		})
	}
	return impact.NewKeeper(impact.Options{
		Store: r.opts.Store, Fleet: assessing{r}, Repositories: repositories, Catalogs: r.catalogs,
		Releases: r.releases, Resolver: r.resolver, Logger: r.opts.Logger,
	})
}

// Refs returns the branches and tags of a repository as they were last fetched.
func (a assessing) Refs(repo string) holdfast.Refs { return a.intake.Refs(repo) }

// LookAgain asks for a look at a pull request, which itself has not changed.
func (a assessing) LookAgain(ref holdfast.PullRequestRef, after time.Duration) {
	a.agenda.LookAfter(agenda.Look{Repo: ref.Repo, Number: ref.Number, Known: true}, after)
}

// Forbidden is why a repository may not define a cluster with that state.
func (a assessing) Forbidden(repo string, doc document.Document, stateLocation string) holdfast.Faults {
	return a.forbidden(repo, doc, stateLocation)
}

// OwnedElsewhere reports whether a cluster's name belongs to another repository.
func (assessing) OwnedElsewhere(repo string, rec holdfast.ClusterRecord) bool {
	return lineage.BelongsElsewhere(repo, rec)
}
