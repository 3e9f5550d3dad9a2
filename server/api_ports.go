package server

import (
	"context"
	"io"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/replica"
	"github.com/holdfast-dev/holdfast/rollout"
)

// Records are what people can look at; *datastore.Store is one. A missing
// record is a holdfast.ErrNotFound.
type Records interface {
	ClusterRecords
	RunRecords
	PullRequestRecords
	History
	Feed
	Replicas
}

// Replicas lists the servers that have the database, by identity.
type Replicas interface {
	Replicas(ctx context.Context) ([]replica.Replica, error)
}

// ClusterRecords are clusters, and what stops them.
type ClusterRecords interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
	// ClusterSummaries returns a line for each cluster that matches, by name.
	ClusterSummaries(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterSummary, error)
	Suspensions(ctx context.Context) ([]holdfast.Suspension, error)
}

// PullRequestRecords are pull requests.
type PullRequestRecords interface {
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error)
	PullRequests(ctx context.Context, filter holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error)
}

// History is what has happened, and its outcome.
type History interface {
	// Transitions returns a cluster's history, newest first; a limit of zero
	// means 100.
	Transitions(ctx context.Context, cluster string, limit int) ([]holdfast.Transition, error)
	Resources(ctx context.Context, filter holdfast.ResourceFilter) ([]holdfast.Resource, error)
	// AuditPage returns the entries about object, newest first, and its place; an empty
	// object means all. Before is the place of the part before; zero: there is none.
	AuditPage(ctx context.Context, object string, before int64, limit int) (entries []holdfast.AuditEntry, place int64, err error)
}

// RunRecords are runs and their outcomes.
type RunRecords interface {
	Run(ctx context.Context, id string) (holdfast.Run, error)
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
	// Attempts returns a run's attempts, oldest first.
	Attempts(ctx context.Context, run string) ([]holdfast.Attempt, error)
	Plan(ctx context.Context, run string) (holdfast.Plan, error)
}

// Feed is what has changed, in order.
type Feed interface {
	// LastChange returns the number of the newest change; 0 if there was none.
	LastChange(ctx context.Context) (int64, error)
	// Changes returns what has changed after a number, oldest first and each object
	// once, at most limit of them; ErrExpired if that is no longer known.
	Changes(ctx context.Context, after int64, limit int) ([]holdfast.Change, error)
}

// Local is the local forge's memory: what people see of pull requests that no
// code host shows.
type Local interface {
	LocalComments(ctx context.Context, ref holdfast.PullRequestRef) ([]holdfast.Comment, error)
	LocalStatuses(ctx context.Context, repo string, rev holdfast.Revision) ([]holdfast.CommitStatus, error)
}

// Posts is the outbox: what we have posted, by key.
type Posts interface {
	Post(ctx context.Context, key string) (outgoing.Post, error)
	Posts(ctx context.Context, filter outgoing.PostFilter) ([]outgoing.Post, error)
}

// Requesters keep who has asked for what a pull request proposes; *datastore.Store is one.
type Requesters interface {
	AddRequester(ctx context.Context, ref holdfast.PullRequestRef, owner string) error
}

// Artefacts are what runs leave behind and people read.
type Artefacts interface {
	LogSource
	Artefact(ctx context.Context, run, name string) (io.ReadCloser, error)
}

// LogSource has the logs of attempts.
type LogSource interface {
	// Log reads an attempt's log from offset (attempt 0: the last one). With
	// wait it returns only when there is something, the attempt has ended, or
	// ctx is done.
	Log(ctx context.Context, run string, attempt int, offset int64, wait bool) (holdfast.LogRange, error)
}

// Commander executes what people ask for; *reconciler.Reconciler is one.
type Commander interface {
	Commands
	ClusterCommands
	Repositories
	DriftChecker
	Upgrader
	Locks
}

// Commands accepts commands, and requests for another look.
type Commands interface {
	// Command stores a command and waits for its outcome until ctx is done. It
	// returns the command as it is then: with Status received if it is still to
	// be carried out. An error means that it was not carried out, and will not be.
	Command(ctx context.Context, command holdfast.Command) (holdfast.Command, error)
	// Reconcile looks at a repository, or at a cluster, again; with neither, at
	// everything.
	Reconcile(ctx context.Context, repo, cluster string) error
	// PlannedRun returns the run whose plan an apply of a cluster would be of if somebody
	// asked for one now; empty if no plan waits.
	PlannedRun(ctx context.Context, cluster string) (string, error)
	// PullRequestGates returns what an apply of an open pull request requires, by cluster,
	// and whether it is met.
	PullRequestGates(ctx context.Context, pr holdfast.PullRequestRecord) (map[string][]holdfast.Gate, error)
}

// Repositories are the repositories of the configuration.
type Repositories interface {
	// Watches reports whether it has one.
	Watches(repo string) bool
}

// ClusterCommands change what may be done with clusters.
type ClusterCommands interface {
	// Suspend stops new runs of a cluster, or allows them again.
	Suspend(ctx context.Context, cluster string, suspended bool, actor, reason string) (holdfast.ClusterRecord, error)

	// SuspendAll stops new runs of all clusters of a project (empty: of all
	// clusters), or allows them again; ErrNotFound if they were not stopped.
	SuspendAll(ctx context.Context, s holdfast.Suspension, suspended bool) error

	// Family returns what a cluster depends on and what depends on it, each with
	// its own; a circle ends where it closes.
	Family(ctx context.Context, cluster string) (holdfast.Family, error)
	// Transfer gives a cluster to another repository: its document is taken from
	// there from then on. ErrConflict, with the reason in its text, if that cannot
	// be: a run is running, or the repository does not define the cluster.
	Transfer(ctx context.Context, cluster, repo, actor string) error
}

// DriftChecker checks clusters for drift.
type DriftChecker interface {
	// CheckDrift queues a drift check of a cluster and returns its run; the
	// one that is queued or running already, if there is one. ErrConflict, with
	// the reason in its text, if the cluster cannot be checked now.
	CheckDrift(ctx context.Context, cluster, actor string) (holdfast.Run, error)
	// Drift returns what the last check found.
	Drift(ctx context.Context, cluster string) (holdfast.DriftReport, error)
}

// Upgrader knows the templates, and proposes newer versions of them.
type Upgrader interface {
	// Templates returns the templates that the repositories publish, by name,
	// with who uses them; name selects one (ErrNotFound if there is no such one).
	Templates(ctx context.Context, name string) ([]rollout.TemplateStatus, error)
	// Upgrade proposes newer versions at once, by pull requests; it returns what
	// it has proposed, with Trouble where that did not work. ErrConflict, with the
	// reason in its text, if there is nothing to propose.
	Upgrade(ctx context.Context, req rollout.UpgradeRequest) ([]rollout.Upgrade, error)
}

// Locks are those of clusters.
type Locks interface {
	// Lock says who holds a cluster's lock, and whether that run's agent still sends
	// heartbeats. ErrNotFound if nobody does.
	Lock(ctx context.Context, cluster string) (holder holdfast.LockHolder, run holdfast.Run, alive bool, err error)
	// Unlock releases a cluster's lock. A holder that is alive is a
	// *holdfast.LockedError unless force is set.
	Unlock(ctx context.Context, cluster, actor string, force bool) error
}
