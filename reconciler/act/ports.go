package act

import (
	"context"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// What a Loop asks of the others. Every method is safe for concurrent use. The
// contracts of the methods of Store and Git are those of the reconciler's.

// Store are the records; *datastore.Store is one.
type Store interface {
	Clusters
	Runs
	Artefacts
	PullRequests
}

// Clusters are the records of clusters, and what is suspended.
type Clusters interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
	CountClusters(ctx context.Context, filter holdfast.ClusterFilter) (int, error)
	Suspensions(ctx context.Context) ([]holdfast.Suspension, error)
}

// Runs are the records of runs.
type Runs interface {
	Queue
	Run(ctx context.Context, id string) (holdfast.Run, error)
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
	UpdateRun(ctx context.Context, run holdfast.Run) (holdfast.Run, error)
}

// Queue takes what is decided, if nobody else has decided meanwhile.
type Queue interface {
	NewestRun(ctx context.Context, of holdfast.Request) (id string, err error)
	CreateRunAfter(ctx context.Context, run holdfast.Run, newest string, trail ...holdfast.AuditEntry) error
}

// Artefacts are what runs leave behind, and what they start from.
type Artefacts interface {
	Artefact(ctx context.Context, run, name string) (io.ReadCloser, error)
	PutBundle(ctx context.Context, digest holdfast.Digest, data []byte) error
}

// PullRequests are the records of pull requests.
type PullRequests interface {
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error)
	PullRequests(ctx context.Context, filter holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error)
	SavePullRequest(ctx context.Context, pr holdfast.PullRequestRecord) (holdfast.PullRequestRecord, error)
}

// Git reads repositories.
type Git interface {
	Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error)
	IsAncestor(ctx context.Context, repo string, a, b holdfast.Revision) (bool, error)
}

// Drift knows the drift checks.
type Drift interface {
	// Record makes the cluster's record say what the last check has found.
	Record(ctx context.Context, in decision.Input) error
	// CheckAgain queues a check before something follows from the last one.
	CheckAgain(ctx context.Context, in decision.Input, d decision.Decision) error
	// Reserve names the apply that is about to revert a cluster's drift in its record:
	// of several replicas that try at once, one succeeds.
	Reserve(ctx context.Context, in decision.Input) (rec holdfast.ClusterRecord, run string, err error)
}

// Dispatcher hands out what was queued.
type Dispatcher interface {
	// Queued says that a run was queued.
	Queued(ctx context.Context)
	// HeldUntil is the time until which no run of a provider is handed out; zero if
	// they are.
	HeldUntil(provider string) time.Time
}

// Publisher shows what was decided.
type Publisher interface {
	Decided(ctx context.Context, in decision.Input)
}

// Impacts remember what pull requests' changes of templates were assessed with.
type Impacts interface {
	// Drop makes the next look assess a pull request afresh.
	Drop(ref holdfast.PullRequestRef)
}

// Rescue knows the states that engines could not save.
type Rescue interface {
	// Standing returns the unsaved state of a cluster; nil if there is none.
	Standing(ctx context.Context, cluster string) (*decision.Unsaved, error)
}

// Intake knows what was taken in.
type Intake interface {
	// Seen reports whether this process has taken in a repository.
	Seen(repo string) bool
	// Awaited reports whether this process has not, and has only just begun.
	Awaited(repo string) bool
	// Applied asks for another look at what was held until a cluster is applied.
	Applied(ctx context.Context, rec holdfast.ClusterRecord) error
	// Freed asks for another look at what other repositories say of a cluster that is
	// gone.
	Freed(ctx context.Context, rec holdfast.ClusterRecord) error
}

// Grants are what clusters may do and get. None of them may be nil.
type Grants struct {
	// Forbidden is why a repository may not define a cluster with that state.
	Forbidden func(repo string, doc document.Document, stateLocation string) holdfast.Faults
	// Credentials returns the environment that a run of that kind gets.
	Credentials func(c holdfast.Cluster, kind holdfast.RunKind) (protocol.Credentials, error)
	// SameCredential reports whether runs of that kind of two clusters get a credential
	// from the same place.
	SameCredential func(name string, kind holdfast.RunKind, a, b holdfast.Cluster) bool
	// Limits returns what the engine of a cluster's runs may use.
	Limits func(c holdfast.Cluster) holdfast.RunLimits
	// SecretSources returns where the secret variables of a run of that kind may
	// come from: folders of files, and commands of stores.
	SecretSources func(c holdfast.Cluster, kind holdfast.RunKind) (dirs []string, stores map[string][]string)
}
