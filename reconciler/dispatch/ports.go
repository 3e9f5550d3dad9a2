package dispatch

import (
	"context"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/breaker"
	"github.com/holdfast-dev/holdfast/replica"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// What the Dispatcher asks of the others. Every method is safe for concurrent
// use. The contracts of the Store's methods are those of reconciler.Store.

// Store is what survives of runs; *datastore.Store is one.
type Store interface {
	Runs
	Claims
	Columns
	Attempts
	Tickets
	Inventory
	Keeper
	Clusters
	Runners
	breaker.Store
}

// Runners are the records of runners.
type Runners interface {
	// Runner is an ErrNotFound of the local one, too.
	Runner(ctx context.Context, name string) (runnerspec.Record, error)
	Runners(ctx context.Context) ([]runnerspec.Record, error)
}

// Clusters are the records of clusters.
type Clusters interface {
	CountClusters(ctx context.Context, filter holdfast.ClusterFilter) (int, error)
}

// Runs are the records of runs.
type Runs interface {
	Run(ctx context.Context, id string) (holdfast.Run, error)
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
	UpdateRun(ctx context.Context, run holdfast.Run) (holdfast.Run, error)
}

// Claims tell which runs may be handed out, and hand one out.
type Claims interface {
	Claimable(ctx context.Context, filter holdfast.ClaimFilter) (ids []string, err error)
	Queue(ctx context.Context, filter holdfast.QueueFilter) ([]holdfast.QueuedRun, error)
	Served(ctx context.Context, now time.Time) (running, lately []holdfast.Lane, err error)
	ClaimRun(ctx context.Context, id string, agent protocol.AgentRef, now time.Time, limit int) (holdfast.Run, error)
}

// Columns answer what is asked often. They decode no record.
type Columns interface {
	// EachRunning calls do for each running attempt, with the last sign of life that is
	// stored of it.
	EachRunning(ctx context.Context, do func(ref holdfast.AttemptRef, agent string, heartbeatAt time.Time)) error
	// Brief returns what says what the current attempt at a run may do.
	Brief(ctx context.Context, id string) (holdfast.RunBrief, error)
	// AnyQueued reports whether a run of the kinds, projects and runner of a filter waits to
	// be handed out, one that may not be claimed yet included.
	AnyQueued(ctx context.Context, of holdfast.ClaimFilter) (bool, error)
	// MayLack reports whether something that an attempt has left may be lost, if its run does
	// not write: the machine of the records has been down since it was claimed.
	MayLack(ref holdfast.AttemptRef) bool
}

// Attempts are the records of what agents execute.
type Attempts interface {
	Beat(ctx context.Context, ref holdfast.AttemptRef, step string, now time.Time) (holdfast.Run, error)
	EndAttempt(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource) (holdfast.Run, error)
	EndUnlocked(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource) (holdfast.Run, error)
	EndSilent(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource, heard time.Time) (holdfast.Run, error)
}

// Tickets are those of attempts that are launched; see protocol.Launch.
type Tickets interface {
	PutTicket(ctx context.Context, ref holdfast.AttemptRef, runner, ticket string, now time.Time) error
	// ExchangeTicket returns the run. It is an ErrUnauthorized if the ticket is not that of
	// the attempt, an ErrFenced if the attempt is over, an ErrConflict if another process has
	// shown it before.
	ExchangeTicket(ctx context.Context, ref holdfast.AttemptRef, ticket, process, host string, now time.Time) (holdfast.Run, error)
	LaunchedAttempts(ctx context.Context, runner string) ([]protocol.Ticket, error)
	// EndUnexchanged is EndAttempt; an ErrLocked, and nothing is stored, if the ticket was
	// exchanged.
	EndUnexchanged(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource) (holdfast.Run, error)
}

// Artefacts are what runs leave behind.
type Artefacts interface {
	Artefact(ctx context.Context, run, name string) (io.ReadCloser, error)
}

// Keeper keeps what is derived from what attempts leave.
type Keeper interface {
	// PutArtefact is an ErrFenced if the attempt is over.
	PutArtefact(ctx context.Context, ref holdfast.AttemptRef, name string, data io.Reader) error
}

// Inventory is what clusters consist of.
type Inventory interface {
	Artefacts
	SaveResources(ctx context.Context, cluster string, resources []holdfast.Resource) error
	Resources(ctx context.Context, filter holdfast.ResourceFilter) ([]holdfast.Resource, error)
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
}

// Locker excludes across replicas; its contract is that of reconciler.Locker.
type Locker interface {
	Acquire(ctx context.Context, key, owner string, ttl time.Duration) error
	Renew(ctx context.Context, key, owner string, ttl time.Duration) error
	Release(ctx context.Context, key, owner string) error
}

// Fleet knows the clusters; the reconciler is one.
type Fleet interface {
	Source
	Reader
	Listener
	Waker
	Roll
	Pricer
}

// Pricer knows prices.
type Pricer interface {
	// Cost returns what a plan for a cluster changes of the monthly price; nil: costs are not
	// estimated.
	Cost(c holdfast.Cluster, document plandoc.Document) *holdfast.Cost
}

// Roll are the agents that all replicas have heard of.
type Roll interface {
	// HearAgent records a sign of life of an agent, and reports whether it has its id: no
	// other process has given one for silence, except for the process was, which it replaces.
	HearAgent(ctx context.Context, req protocol.ClaimRequest, was string, silence time.Duration) (bool, error)
	// HeardAgents returns those that another replica may have heard of; with an id that one.
	HeardAgents(ctx context.Context, id string) ([]replica.AgentSign, error)
	// Sweeps reports whether this replica is the one that sees to silent attempts.
	Sweeps() bool
}

// Source says what attempts start from.
type Source interface {
	// Stopped reports whether a queued run must not start now. It may cancel it.
	Stopped(ctx context.Context, run holdfast.Run) (bool, error)
	// Fork reports whether a run is of a pull request from a fork. It asks nobody else.
	Fork(ctx context.Context, run holdfast.Run) (bool, error)
	// Assignment records on the run what its attempt starts from, and
	// returns what the attempt needs to know of it. The Dispatcher adds what is
	// the attempt's own: its reference, token, deadline and lease. An error ends
	// the run.
	Assignment(ctx context.Context, run holdfast.Run) (protocol.Assignment, holdfast.Run, error)
}

// Reader says what was read of Git since this process was started.
type Reader interface {
	// Unseen reports whether a run that changes infrastructure waits until the repository of
	// its cluster was read by this process. It asks nobody else.
	Unseen(ctx context.Context, run holdfast.Run) (bool, error)
	// Awaited returns the repositories that are about to be read by this process for the
	// first time.
	Awaited() []string
}

// Listener is notified of what happens to runs.
type Listener interface {
	// Changed is notified of a run whose status has changed.
	Changed(ctx context.Context, run holdfast.Run)
	// Finished is notified of an attempt whose agent has sent a result.
	Finished(run holdfast.Run, steps []protocol.Step)
	// Look asks for another look at what a request names.
	Look(req holdfast.Request)
	// Held is notified of a provider whose runs are held back from now on, or continue.
	Held(ctx context.Context, provider string)
}

// Waker wakes replicas.
type Waker interface {
	// Wake wakes all replicas, this one too, with a topic that Woken understands.
	Wake(ctx context.Context, topic string)
}

// Metrics is notified of what happens. Its methods must not block.
type Metrics interface {
	RunEnded(kind holdfast.RunKind, status holdfast.RunStatus, reason holdfast.Reason)
	RunClaimed(kind holdfast.RunKind, waited time.Duration)
	LockRefused()
	ProviderHeld(provider string, until time.Time)
}
