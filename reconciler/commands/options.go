package commands

import (
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/reconciler/record"
)

// Repository is a repository whose pull requests may be commanded.
type Repository struct {
	Name    string
	Branch  string   // the tracked branch
	Entries []string // all repositories that are the same one on a code host, this one among them
	Samples int      // of a change of a template; negative: none are planned
}

// Options are what a Handler and an Operator need. All are required.
type Options struct {
	Store        Store
	Forges       map[string]Forge // by repository
	Repositories []Repository
	Rooms        Rooms
	Peers        Peers
	Lease        time.Duration // how long a silent attempt is believed in
	Logger       *slog.Logger
	Now          func() time.Time
}

// Rooms are the small rooms that commands share with others.
type Rooms struct {
	Catalogs *catalog.Reader
	Lineage  *lineage.Reader
	Records  *record.Writer
	Agenda   *agenda.Agenda
	Gates    *gate.Keeper
	Looking  *queue.Locks // looks at one pull request are made in turn
}

// Peers are the rooms that commands speak to.
type Peers struct {
	Decider    Decider
	Drift      Drift
	Dispatcher Dispatcher
	Publisher  Publisher
	Intake     Intake
	Locker     Locker
	Leading    Leading
	Policies   Policies
}

// shared is what a Handler and an Operator have in common.
type shared struct {
	Rooms
	Peers
	opts  Options
	repos map[string]Repository
}

func newShared(opts Options) shared {
	s := shared{Rooms: opts.Rooms, Peers: opts.Peers, opts: opts, repos: make(map[string]Repository, len(opts.Repositories))}
	for _, repo := range opts.Repositories {
		s.repos[repo.Name] = repo
	}
	return s
}

// Operator does what operators ask for. It is safe for concurrent use.
type Operator struct{ shared }

// NewOperator returns an Operator.
func NewOperator(opts Options) *Operator { return &Operator{newShared(opts)} }

// Handler carries out commands. It is safe for concurrent use.
type Handler struct {
	shared
	operator  *Operator
	stored    *queue.Broadcast // a command is in the store
	direct    direct
	waited    sync.Map // ids of commands in comments that were not carried out at once
	tried     sync.Map // what came of clusters of commands in comments that are not done: map[string]outcome, by id
	strangers strangers
}

// NewHandler returns a Handler.
func NewHandler(opts Options, operator *Operator) *Handler {
	return &Handler{shared: newShared(opts), operator: operator, stored: queue.NewBroadcast()}
}
