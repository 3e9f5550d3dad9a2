package act

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/reconciler/outputs"
	"github.com/holdfast-dev/holdfast/reconciler/places"
	"github.com/holdfast-dev/holdfast/reconciler/policies"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/reconciler/record"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/reconciler/trace"
	"github.com/holdfast-dev/holdfast/templates"
)

// Options are what a Loop needs. All are required.
type Options struct {
	Store    Store
	Git      Git
	Rooms    Rooms
	Peers    Peers
	Grants   Grants
	Settings Settings
	Logger   *slog.Logger
	Now      func() time.Time
}

// Rooms are the small rooms that a Loop shares with others.
type Rooms struct {
	Catalogs *catalog.Reader
	Releases *releases.Reader
	Resolver *templates.Resolver
	Lineage  *lineage.Reader
	Records  *record.Writer
	Outputs  *outputs.Reader
	Agenda   *agenda.Agenda
	Traces   *trace.Memory
	Gates    *gate.Keeper
	Places   *places.Keeper
	Policies *policies.Reader
	Deciding *queue.Locks // decisions about one thing are made in turn
}

// Peers are the rooms that a Loop speaks to.
type Peers struct {
	Drift      Drift
	Dispatcher Dispatcher
	Publisher  Publisher
	Impacts    Impacts
	Rescue     Rescue
	Intake     Intake
	// Decided measures a decision, Ended a run that ends as it is queued, with what
	// follows from it.
	Decided func(action decision.Action, reason holdfast.Reason)
	Ended   func(ctx context.Context, run holdfast.Run)
}

// Settings are what may differ from one installation to the next.
type Settings struct {
	FingerprintKey []byte // makes fingerprints comparable with one another only
	Lock           decision.LockWait
	Resumes        decision.Resumes
	Templates      map[string]map[string]string // the folders of templates, by repository and name
}

// Loop decides about clusters and acts on it. It is safe for concurrent use.
type Loop struct {
	shared
	observer *observer
	filler   *filler
	starter  *starter
}

// shared is what the parts of a Loop have in common.
type shared struct {
	Rooms
	Peers
	opts Options
}

// NewLoop returns a Loop.
func NewLoop(opts Options) *Loop {
	s := shared{Rooms: opts.Rooms, Peers: opts.Peers, opts: opts}
	return &Loop{shared: s, observer: &observer{s}, filler: &filler{s}, starter: &starter{s}}
}

// Observe gathers what the records say of req: all that a decision depends on, except for
// the merges of a tracked branch. It waits for no forge.
func (l *Loop) Observe(ctx context.Context, req holdfast.Request) (decision.Input, error) {
	return l.observer.recorded(ctx, req)
}

// Merges returns the pull requests that brought the cluster from what was last applied
// to what is desired now, newest first, with what people had seen.
func (l *Loop) Merges(ctx context.Context, rec holdfast.ClusterRecord, branch []holdfast.Run) ([]decision.Merge, error) {
	return l.observer.merges(ctx, rec, branch, l.observer.judged(decision.Newest(branch), l.observer.asked))
}

// PlannedRun is the run whose plan an apply of a cluster would be of if a person asked for
// one now; empty if no plan waits. It waits for no forge.
func (l *Loop) PlannedRun(ctx context.Context, cluster string) (string, error) {
	in, err := l.observer.observePlans(ctx, cluster)
	if err != nil {
		return "", fmt.Errorf("look for the plan of cluster %q: %w", cluster, err)
	}
	return decision.PlannedRun(in), nil
}

// Suspension is what a cluster is suspended with: itself, one of its projects, or the
// fleet; empty if it is not.
func (l *Loop) Suspension(ctx context.Context, rec holdfast.ClusterRecord) (string, error) {
	return l.observer.suspension(ctx, rec)
}

// Assignment records on a run what its attempt starts from, and returns
// what the attempt needs to know of it.
func (l *Loop) Assignment(ctx context.Context, run holdfast.Run) (protocol.Assignment, holdfast.Run, error) {
	return l.starter.assignment(ctx, run)
}
