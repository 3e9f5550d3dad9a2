package intake

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// What an Intake asks of the others. Every method is safe for concurrent use. The
// contracts of the methods of Store, Git and Forge are those of the reconciler's.

// Store are the records that an Intake brings up to date; *datastore.Store is one.
type Store interface {
	Clusters
	Names
	Repositories
	PullRequests
}

// Clusters are the records of clusters.
type Clusters interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
	CountClusters(ctx context.Context, filter holdfast.ClusterFilter) (int, error)
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
}

// Names are the names of clusters.
type Names interface {
	ClusterNames(ctx context.Context, filter holdfast.ClusterFilter) ([]string, error)
	RenameCluster(ctx context.Context, from, to holdfast.ClusterRecord, history ...holdfast.Transition) error
	UnsavedStates(ctx context.Context, cluster string) ([]holdfast.UnsavedState, error)
}

// Repositories are the records of repositories and of what people wrote there.
type Repositories interface {
	RepositoryState(ctx context.Context, repo string) (holdfast.RepositoryState, error)
	SaveRepositoryState(ctx context.Context, s holdfast.RepositoryState) error
	StoreCommand(ctx context.Context, c holdfast.Command) (bool, error)
}

// PullRequests are the records of pull requests.
type PullRequests interface {
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error)
	PullRequests(ctx context.Context, filter holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error)
	SavePullRequest(ctx context.Context, pr holdfast.PullRequestRecord) (holdfast.PullRequestRecord, error)
	// OpenPullRequests returns the versions of a repository's open pull requests, by number.
	OpenPullRequests(ctx context.Context, repo string) (map[int]int64, error)
}

// Git reads repositories.
type Git interface {
	Fetcher
	Merge(ctx context.Context, repo string, base, head holdfast.Revision) (tree string, err error)
	Parents(ctx context.Context, repo string, rev holdfast.Revision) ([]holdfast.Revision, error)
	History
}

// History is how the commits of a repository follow one another.
type History interface {
	IsAncestor(ctx context.Context, repo string, a, b holdfast.Revision) (bool, error)
	// Ahead returns the commits that head has and base does not, and perhaps others, and
	// the one that both continue from; empty if there is none, or several.
	Ahead(ctx context.Context, repo string, base, head holdfast.Revision) (commits []holdfast.Revision, from holdfast.Revision, err error)
}

// Fetcher brings mirrors up to date.
type Fetcher interface {
	Fetch(ctx context.Context, repo string) (holdfast.Refs, error)
	FetchPullRequest(ctx context.Context, repo string, number int) (holdfast.PullRequestRefs, error)
}

// Forge is a code host, as far as an Intake reads it.
type Forge interface {
	Comments
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequest, error)
	PullRequests(ctx context.Context, repo string, since time.Time) ([]holdfast.PullRequest, error)
	PullRequestsOf(ctx context.Context, repo string, commit holdfast.Revision) ([]holdfast.PullRequest, error)
}

// Comments are what people and we have written in pull requests.
type Comments interface {
	Comments(ctx context.Context, repo string, since time.Time) (holdfast.CommentList, error)
	Comment(ctx context.Context, ref holdfast.PullRequestRef, id string) (holdfast.Comment, error)
}

// Publisher keeps true what the forges show of what was taken in.
type Publisher interface {
	Groups
	// Left asks to show the status of a head that clusters have moved on from.
	Left(repo string, revision holdfast.Revision)
	// Waited asks to show the status of a push that a cluster's record waited for.
	Waited(ctx context.Context, rec holdfast.ClusterRecord)
	// HeadTaken says what is wrong with the documents at the head of a tracked branch.
	HeadTaken(ctx context.Context, repo string, former, head holdfast.Revision, faults holdfast.Faults) error
	Shows
}

// Shows are what a pull request shows.
type Shows interface {
	// Show has what a pull request shows made true.
	Show(ref holdfast.PullRequestRef)
	// HeadLeft updates it for those that still have the head which a pull request had
	// while it was open; before is its record of then.
	HeadLeft(ctx context.Context, before holdfast.PullRequestRecord)
	OwnComments
}

// OwnComments are our comments with the plans.
type OwnComments interface {
	// Intact reports whether our comment is on the forge as it was written there, if it
	// was, and asks to write it again if it is not: was is the state of the pull request
	// on record. Before it is there again it does not count as shown.
	Intact(ctx context.Context, pr holdfast.PullRequest, was holdfast.PullRequestState) (bool, error)
}

// Groups are the statuses of what a merge queue would merge.
type Groups interface {
	// PlanStatus is the plan status of a pull request's head that is on the forge.
	PlanStatus(ctx context.Context, pr holdfast.PullRequestRecord) (holdfast.CommitStatus, error)
	// Judged reports whether the status of a group's commit is final.
	Judged(ctx context.Context, repo string, commit holdfast.Revision) (bool, error)
	WantGroup(ctx context.Context, repo string, status holdfast.CommitStatus) error
}

// Impacts tell what the changes of templates in pull requests would do.
type Impacts interface {
	// Assess adds to rec the samples of a pull request's changes of templates, and
	// what is wrong with them.
	Assess(
		ctx context.Context, repo string, from, to *catalog.Catalog, before holdfast.PullRequestRecord, rec *holdfast.PullRequestRecord,
	) error
	// Forget removes what is on record of a pull request's changes.
	Forget(ctx context.Context, ref holdfast.PullRequestRef) error
	// Saved notes that an assessment is on record; empty: that none is.
	Saved(ref holdfast.PullRequestRef, assessed holdfast.Digest)
	// Again asks to assess the pull requests of a repository (empty: of all) again.
	Again(repo string)
}

// Leading says which replica looks at a repository.
type Leading interface {
	// Leads reports whether this one does.
	Leads(repo string) bool
	// Took notes that this replica has read a repository that it leads, Taken reports
	// whether the leader of one has.
	Took(repo string)
	Taken(repo string) bool
	// Fetched tells other replicas which branches and tags a repository has.
	Fetched(ctx context.Context, repo string, refs holdfast.Refs)
}

// Runners keep which runners and rules are in force.
type Runners interface {
	// Take updates the records with what a revision of a tracked branch says of them.
	Take(ctx context.Context, revision holdfast.Revision, cat *catalog.Catalog) error
	// Assess adds to rec what merging it would change of them, and what is wrong with that.
	Assess(ctx context.Context, from, to *catalog.Catalog, rec *holdfast.PullRequestRecord) error
}

// Gates read which approvals of a pull request are still in force.
type Gates interface {
	Check(ctx context.Context, pr holdfast.PullRequestRecord) ([]holdfast.Approval, error)
}

// Upgrades propose newer versions of templates.
type Upgrades interface {
	// Ask asks for a look at the upgrades of a repository.
	Ask(repo string)
	// Moved is notified of a pull request whose state or head is another one.
	Moved(pr holdfast.PullRequestRecord)
}

// Commands are what people wrote in comments.
type Commands interface {
	// Parse returns the commands in a comment, with the same ids whenever it is asked.
	Parse(comment holdfast.Comment) []holdfast.Command
	// CommandStored is notified of a command in the store. It never blocks.
	CommandStored()
}
