package propose

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// Fleet is what is known of repositories and clusters; the reconciler's rooms are one.
type Fleet interface {
	// Cluster returns the record of a cluster; ErrNotFound if there is none.
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	// Tracked returns what the tracked branch of a repository says, and its head; nil if
	// there is no such branch.
	Tracked(ctx context.Context, repo string) (*catalog.Catalog, holdfast.Revision, error)
	// Foresee says what a pull request from one tree to another would be said to change, with
	// what is wrong with it.
	Foresee(ctx context.Context, from, to *catalog.Catalog) (holdfast.PullRequestRecord, error)
}

// Catalogs are what trees say; a catalog.Reader is one.
type Catalogs interface {
	// Edited is the catalog of a tree with one file as it would be; nil data: without it.
	Edited(ctx context.Context, base *catalog.Catalog, path string, data []byte) (*catalog.Catalog, error)
	// Resolve returns what a cluster of a tree resolves to; nil if it has no document there.
	Resolve(ctx context.Context, cat *catalog.Catalog, cluster string) (*catalog.Resolution, error)
}

// Forge makes pull requests; its contract is that of reconciler.Forge.
type Forge interface {
	Propose(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.PullRequest, error)
}

// Repository is one that may define clusters.
type Repository struct {
	Name   string
	Branch string   // the tracked branch
	Globs  []string // of the files that may define clusters
	Forge  Forge
}

// Options are what a Desk needs. All are required.
type Options struct {
	Fleet        Fleet
	Catalogs     Catalogs
	Repositories []Repository
}
