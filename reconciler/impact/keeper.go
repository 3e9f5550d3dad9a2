package impact

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// Store are the records that a Keeper needs; *datastore.Store is one.
type Store interface {
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
	ClusterNames(ctx context.Context, filter holdfast.ClusterFilter) ([]string, error)
	RepositoryState(ctx context.Context, repo string) (holdfast.RepositoryState, error)
	// SaveImpacts replaces what is known of a pull request's changes of
	// templates; none removes it.
	SaveImpacts(ctx context.Context, ref holdfast.PullRequestRef, impacts []rollout.Impact) error
}

// Fleet is what a Keeper asks of the reconciler.
type Fleet interface {
	// Refs returns the branches and tags of a repository as they were last
	// fetched; nil if they were not.
	Refs(repo string) holdfast.Refs
	// LookAgain asks for a look at a pull request, later.
	LookAgain(ref holdfast.PullRequestRef, after time.Duration)
	// Forbidden is why a repository may not define a cluster with that state.
	Forbidden(repo string, doc document.Document, stateLocation string) holdfast.Faults
	// OwnedElsewhere reports whether a cluster's name belongs to another repository.
	OwnedElsewhere(ctx context.Context, repo string, rec holdfast.ClusterRecord) (bool, error)
}

// Repository is a repository that may publish templates.
type Repository struct {
	Name      string
	Branch    string            // the tracked one
	Clusters  bool              // it may define clusters
	Templates map[string]string // their folders, by name
	// Samples is how many clusters are planned to show a change; negative: none.
	Samples int
	// SampleEnvironments are globs of the environments whose clusters may be
	// samples. None: all.
	SampleEnvironments []string
}

// Options are what a Keeper needs. All are required.
type Options struct {
	Store        Store
	Fleet        Fleet
	Repositories []Repository
	Catalogs     *catalog.Reader
	Releases     *releases.Reader
	Resolver     *templates.Resolver
	Logger       *slog.Logger
}

// Keeper says what the changes of templates in open pull requests would do to
// the fleet. It is safe for concurrent use.
type Keeper struct {
	opts   Options
	repos  map[string]Repository
	memory *assessments
}

// NewKeeper returns a Keeper that has assessed nothing.
func NewKeeper(opts Options) *Keeper {
	k := &Keeper{opts: opts, repos: make(map[string]Repository, len(opts.Repositories)), memory: newAssessments()}
	for _, repo := range opts.Repositories {
		k.repos[repo.Name] = repo
	}
	return k
}

// Saved notes that an assessment is on record: it need not be made again while nothing
// that it depends on changes. An empty key: none is.
func (k *Keeper) Saved(ref holdfast.PullRequestRef, assessed holdfast.Digest) {
	if assessed == "" {
		k.Drop(ref)
		return
	}
	k.memory.put(ref, assessed)
}

// ForgetRepository makes the next looks assess all pull requests of a repository afresh:
// another replica has led it.
func (k *Keeper) ForgetRepository(repo string) { k.memory.forget(repo) }

// Drop makes the next look assess a pull request afresh.
func (k *Keeper) Drop(ref holdfast.PullRequestRef) { k.memory.take(ref) }
