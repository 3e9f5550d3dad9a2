package commands

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/statelock"
)

// What commands ask of the others. Every method is safe for concurrent use. The
// contracts of the methods of Store, Forge and Locker are those of the reconciler's.

// Store are the records; *datastore.Store is one.
type Store interface {
	Commands
	Clusters
	Suspensions
	PullRequests
	States
}

// Commands are what people asked for.
type Commands interface {
	StoreCommand(ctx context.Context, c holdfast.Command) (bool, error)
	Command(ctx context.Context, id string) (holdfast.Command, error)
	Commands(ctx context.Context, status holdfast.CommandStatus) ([]holdfast.Command, error)
	FinishCommand(ctx context.Context, c holdfast.Command) error
}

// Clusters are the records of clusters and of their repositories.
type Clusters interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
	SaveCluster(ctx context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition) (holdfast.ClusterRecord, error)
	RepositoryState(ctx context.Context, repo string) (holdfast.RepositoryState, error)
}

// Suspensions are those of more than one cluster.
type Suspensions interface {
	CountClusters(ctx context.Context, filter holdfast.ClusterFilter) (int, error)
	Suspend(ctx context.Context, s holdfast.Suspension) error
	Resume(ctx context.Context, project string) error
}

// PullRequests are the records of pull requests.
type PullRequests interface {
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error)
	SavePullRequest(ctx context.Context, pr holdfast.PullRequestRecord) (holdfast.PullRequestRecord, error)
	Impacts(ctx context.Context, ref holdfast.PullRequestRef) ([]rollout.Impact, error)
	// Requesters are those who have asked through Holdfast for what a pull request proposes,
	// as CommandGiver.Owner names them.
	Requesters(ctx context.Context, ref holdfast.PullRequestRef) ([]string, error)
}

// States are runs, and the locks on states in Holdfast's own backend.
type States interface {
	Run(ctx context.Context, id string) (holdfast.Run, error)
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
	StateLock(ctx context.Context, location string) (statelock.StateLock, error)
	ReleaseStateLock(ctx context.Context, location string) (released bool, err error)
}

// Forge is a code host: it knows who may command, and what people see.
type Forge interface {
	Comment(ctx context.Context, ref holdfast.PullRequestRef, id string) (holdfast.Comment, error)
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequest, error)
	Permission(ctx context.Context, repo, user string) (holdfast.Permission, error)
}

// Locker knows who holds a lock.
type Locker interface {
	Holder(ctx context.Context, key string) (holdfast.LockHolder, error)
}

// Decider makes decisions about clusters.
type Decider interface {
	// Reconcile decides with a person's command, and acts on it.
	Reconcile(ctx context.Context, req holdfast.Request, ask *decision.Ask) (decision.Decision, error)
	// Merges returns the pull requests that brought a cluster from what was last
	// applied to what is desired now, newest first.
	Merges(ctx context.Context, rec holdfast.ClusterRecord, branch []holdfast.Run) ([]decision.Merge, error)
	// PlannedRun returns the run whose plan an apply of a cluster would be of if a person
	// asked for one now; empty if no plan waits.
	PlannedRun(ctx context.Context, cluster string) (string, error)
}

// Policies knows the policies of clusters.
type Policies interface {
	// Policy returns one of the policies of a cluster, by its documents: what is proposed and
	// what was last applied, or begun; false if it has none of that id.
	Policy(ctx context.Context, id string, documents ...holdfast.Cluster) (holdfast.Policy, bool, error)
}

// Drift knows what people see of drift.
type Drift interface {
	// ShownPlan returns the plan that people see of a cluster on its tracked branch.
	ShownPlan(ctx context.Context, cluster string, runs []holdfast.Run) (holdfast.Run, error)
}

// Dispatcher hands out runs.
type Dispatcher interface {
	// Replaced reports whether the process of an agent that a run was handed to has
	// made room for another one in its folder.
	Replaced(run holdfast.Run) bool
	// LastSign returns a run with its newest sign of life, which need not be stored yet.
	LastSign(run holdfast.Run) holdfast.Run
	// Kill ends a run's attempt, whose agent may still execute it.
	Kill(ctx context.Context, run holdfast.Run, why string) error
}

// Publisher answers commands.
type Publisher interface {
	Outbox
	// Intact reports whether the comment of a pull request with its plans is on the forge
	// as it was written there, if it was, and has it written again if it is not: was is
	// the state on record.
	Intact(ctx context.Context, pr holdfast.PullRequest, was holdfast.PullRequestState) (bool, error)
	// React adds a reaction to a command's comment, Reply a comment.
	React(ctx context.Context, c holdfast.Command, reaction holdfast.Reaction) error
	Reply(ctx context.Context, c holdfast.Command) error
}

// Outbox is what the forges show.
type Outbox interface {
	// Retry has posted again what was given up of a pull request or, without a number,
	// of a repository.
	Retry(ctx context.Context, ref holdfast.PullRequestRef) error
	// Show has what a pull request shows made true.
	Show(ref holdfast.PullRequestRef)
	// Waited has the merges shown that a cluster may have waited with.
	Waited(ctx context.Context, rec holdfast.ClusterRecord)
	// UpdateIssue has the drift issue of a cluster in a repository made true.
	UpdateIssue(repo, cluster string)
}

// Intake takes in repositories.
type Intake interface {
	// LookAgain has a repository looked at although its head has not moved, Recheck
	// one of its clusters.
	LookAgain(repo string)
	Recheck(repo, cluster string)
}

// Leading says which replica carries out a command.
type Leading interface {
	// Carries reports whether it is this one.
	Carries(ctx context.Context, c holdfast.Command) (bool, error)
	// TakeCommand reports whether a command of the API is this replica's to carry out: the
	// first one that asks has it for good.
	TakeCommand(ctx context.Context, id string) (bool, error)
	// Alone reports whether there is no other replica.
	Alone() bool
	// CommandGiven tells other replicas that a command is in the store.
	CommandGiven(ctx context.Context)
}
