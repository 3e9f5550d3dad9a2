package drift

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/outputs"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/reconciler/record"
)

// Store are the records; *datastore.Store is one. The contracts of its methods are
// those of the reconciler's.
type Store interface {
	Clusters
	Schedule
	Runs
}

// Clusters are the records of clusters, and what is suspended.
type Clusters interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	SaveCluster(ctx context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition) (holdfast.ClusterRecord, error)
	Suspensions(ctx context.Context) ([]holdfast.Suspension, error)
}

// Schedule is when clusters are due, and who looks at that.
type Schedule interface {
	DriftDue(ctx context.Context, now time.Time, limit int) ([]holdfast.ClusterRecord, error)
	NextDriftDue(ctx context.Context, now time.Time) (time.Time, error)
}

// Runs are the records of runs and what they leave behind.
type Runs interface {
	Queue
	Run(ctx context.Context, id string) (holdfast.Run, error)
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
	Artefact(ctx context.Context, run, name string) (io.ReadCloser, error)
}

// Queue takes runs, if nobody else has queued one meanwhile.
type Queue interface {
	NewestRun(ctx context.Context, of holdfast.Request) (id string, err error)
	CreateRunAfter(ctx context.Context, run holdfast.Run, newest string, trail ...holdfast.AuditEntry) error
}

// Decider makes decisions about clusters.
type Decider interface {
	// Observe gathers what the records say: all that a decision depends on, except for
	// the merges of a tracked branch. It waits for no forge.
	Observe(ctx context.Context, req holdfast.Request) (decision.Input, error)
	// Once decides about a cluster and acts on it.
	Once(ctx context.Context, req holdfast.Request) error
	// Suspension is what a cluster is suspended with; empty if it is not.
	Suspension(ctx context.Context, rec holdfast.ClusterRecord) (string, error)
}

// Dispatcher hands out runs.
type Dispatcher interface {
	// Queued says that a run was queued.
	Queued(ctx context.Context)
	// Freed returns a channel that is closed when next a run was queued or has ended.
	Freed() <-chan struct{}
	// Held are the providers of which no run is handed out, and HeldUntil is the time
	// until which none of one is; zero if they are.
	Held() []string
	HeldUntil(provider string) time.Time
}

// Publisher shows drift.
type Publisher interface {
	// Drifted has what a check has found shown.
	Drifted(rec holdfast.ClusterRecord)
}

// Options are what a Keeper needs. All are required.
type Options struct {
	Store    Store
	Rooms    Rooms
	Peers    Peers
	Settings Settings
	Logger   *slog.Logger
	Now      func() time.Time
}

// Rooms are the small rooms that a Keeper shares with others.
type Rooms struct {
	Records  *record.Writer
	Outputs  *outputs.Reader
	Agenda   *agenda.Agenda
	Deciding *queue.Locks // decisions about one thing are made in turn
}

// Peers are the rooms that a Keeper speaks to.
type Peers struct {
	Decider    Decider
	Dispatcher Dispatcher
	Publisher  Publisher
}

// Settings are what may differ from one installation to the next.
type Settings struct {
	Leads   func() bool            // this replica queues checks
	Checks  int                    // at once
	Watched func(repo string) bool // a repository is in the configuration
}

// Keeper checks clusters for drift. It is safe for concurrent use.
type Keeper struct {
	Rooms
	Peers
	opts Options
	due  *queue.Broadcast // a check may be due
}

// NewKeeper returns a Keeper.
func NewKeeper(opts Options) *Keeper {
	return &Keeper{Rooms: opts.Rooms, Peers: opts.Peers, opts: opts, due: queue.NewBroadcast()}
}

// Wake asks for a look at the schedule: a check may be due.
func (k *Keeper) Wake() { k.due.Send() }

// Pass queues the checks that are due, if this replica may, and returns how long to
// wait until there may be more to do.
func (k *Keeper) Pass(ctx context.Context) (time.Duration, error) {
	if !k.opts.Settings.Leads() {
		return latest, nil
	}
	return k.pass(ctx)
}
