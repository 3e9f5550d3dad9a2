package places

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// Store is what a Keeper asks of the records; *datastore.Store is one.
type Store interface {
	Places
	Runners
	Runs
	Records
}

// Places are the records of where states are.
type Places interface {
	// StatePlace is an ErrNotFound of a cluster that has none yet.
	StatePlace(ctx context.Context, cluster string) (holdfast.StatePlace, error)
	// StatePlacesAt returns the clusters whose states have a location.
	StatePlacesAt(ctx context.Context, location string) ([]string, error)
}

// Runners are the records of runners, and of what is pinned to them.
type Runners interface {
	Runners(ctx context.Context) ([]runnerspec.Record, error)
	RunnerRules(ctx context.Context) ([]runnerspec.RuleRecord, error)
	Environment(ctx context.Context, key holdfast.EnvironmentKey) (holdfast.Environment, error)
}

// Runs are the records of runs.
type Runs interface {
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
	NewestRun(ctx context.Context, of holdfast.Request) (id string, err error)
	CreateRunAfter(ctx context.Context, run holdfast.Run, newest string, trail ...holdfast.AuditEntry) error
}

// Records are those of clusters, and the root modules that were applied.
type Records interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	UnsavedStates(ctx context.Context, cluster string) ([]holdfast.UnsavedState, error)
	Bundle(ctx context.Context, digest holdfast.Digest) (io.ReadCloser, error)
	PutBundle(ctx context.Context, digest holdfast.Digest, data []byte) error
}

// Options are what a Keeper needs.
type Options struct {
	Store    Store
	Catalogs *catalog.Reader
	Resolver *templates.Resolver
	// Queued tells agents that there is work.
	Queued func(ctx context.Context)
	Logger *slog.Logger
	Now    func() time.Time
}

// Keeper says where states are. It is safe for concurrent use.
type Keeper struct{ opts Options }

// NewKeeper returns a Keeper.
func NewKeeper(opts Options) *Keeper { return &Keeper{opts: opts} }

// Place is where the state of a cluster is, or is to be.
type Place struct {
	Location string
	Stored   *holdfast.StoredState // in the storage of a runner; nil: elsewhere
}

// Of is where the state of a cluster is to be whose document resolves to a root module with a
// location: there, if the code or the document says it; otherwise where it is, as long as
// that is the storage of its runner; otherwise where a migration would bring it.
func (k *Keeper) Of(ctx context.Context, c holdfast.Cluster, resolved string) (Place, error) {
	if !holdfast.OwnState(resolved) {
		return Place{Location: resolved}, nil
	}
	m, err := k.Moment(ctx)
	if err != nil {
		return Place{}, err
	}
	return m.of(ctx, c, resolved, nil)
}

// Moment says where the states of many clusters are to be: runners are listed once.
type Moment struct {
	*Keeper
	runners []runnerspec.Record
}

// Moment lists runners for clusters that are looked at together.
func (k *Keeper) Moment(ctx context.Context) (Moment, error) {
	runners, err := k.opts.Store.Runners(ctx)
	if err != nil {
		return Moment{}, fmt.Errorf("list runners: %w", err)
	}
	return Moment{k, runners}, nil
}

// of is Of. The record of the cluster is read if it is nil and needed.
func (k Moment) of(ctx context.Context, c holdfast.Cluster, resolved string, rec *holdfast.ClusterRecord) (Place, error) {
	if !holdfast.OwnState(resolved) {
		return Place{Location: resolved}, nil
	}
	runners := k.runners
	fixed, known, err := k.fixed(ctx, c, rec)
	if err != nil {
		return Place{}, err
	}
	if !slices.ContainsFunc(runners, hasStorage) && (!known || fixed.Stored == nil) {
		return Place{Location: resolved}, nil // nothing says another place
	}
	choice, err := k.choose(ctx, runners, c.EnvironmentKey())
	if err != nil {
		return Place{}, err
	}
	if !known {
		return k.fresh(ctx, c, choice.now, resolved)
	}
	if !ByRunner(fixed) { // a block in the code or the document said where it was, and does no longer
		return k.fresh(ctx, c, choice.next(), resolved)
	}
	for _, s := range choice.any() {
		if fixed.Stored.In(s.storage) {
			return s.keep(fixed, resolved), nil
		}
	}
	return k.fresh(ctx, c, choice.next(), resolved)
}

// ByRunner reports whether neither the code nor the document of its cluster says where a
// state is.
func ByRunner(p holdfast.StatePlace) bool { return p.Stored != nil || holdfast.OwnState(p.Location) }

func hasStorage(r runnerspec.Record) bool {
	return r.Document.Storage != nil || r.Next != nil && r.Next.Storage != nil
}

// fixed is where the state of a cluster is, under the name that it had before, too.
func (k *Keeper) fixed(
	ctx context.Context, c holdfast.Cluster, rec *holdfast.ClusterRecord,
) (place holdfast.StatePlace, known bool, err error) {
	for _, name := range []string{c.Name, c.RenamedFrom} {
		if name == "" {
			continue
		}
		place, err = k.opts.Store.StatePlace(ctx, name)
		if !errors.Is(err, holdfast.ErrNotFound) {
			return place, err == nil, err
		}
	}
	// A server of a former version may have applied it.
	if rec == nil {
		read, err := k.opts.Store.Cluster(ctx, c.Name)
		if errors.Is(err, holdfast.ErrNotFound) {
			return place, false, nil
		} else if err != nil {
			return place, false, fmt.Errorf("read cluster %q: %w", c.Name, err)
		}
		rec = &read
	}
	place = holdfast.StatePlace{Cluster: c.Name, Location: rec.Applied.StateLocation, Stored: rec.Applied.Stored, Run: rec.Applied.Run}
	return place, place.Run != "" && place.Location != "", nil
}

// storage is where a runner keeps states.
type storage struct {
	storage   *holdfast.StateStorage // nil: in Holdfast's own backend
	inCluster bool
}

func storageOf(r runnerspec.Runner) storage {
	return storage{storage: r.Storage, inCluster: r.Storage != nil && r.Storage.Type == "kubernetes" && r.Type.StartsJobs()}
}

// keep is the place of a state that stays where it is.
func (s storage) keep(fixed holdfast.StatePlace, resolved string) Place {
	if fixed.Stored == nil {
		return Place{Location: resolved}
	}
	stored := holdfast.StoredState{StateStorage: *s.storage, Key: fixed.Stored.Key, InCluster: fixed.Stored.InCluster}
	return Place{Location: fixed.Location, Stored: &stored}
}

// choice is where the states of an environment may be: the runner that it is pinned to, and
// the one that it would be pinned to by now, as their documents are in force and as they are
// to be.
type choice struct {
	now    storage   // of what is applied first
	coming []storage // where states may be moved to, the latest first
}

// next is where a migration brings a state.
func (c choice) next() storage { return c.coming[0] }

func (c choice) any() []storage { return c.coming }

// choose says where the states of an environment may be.
func (k *Keeper) choose(ctx context.Context, runners []runnerspec.Record, env holdfast.EnvironmentKey) (choice, error) {
	rules, err := k.opts.Store.RunnerRules(ctx)
	if err != nil {
		return choice{}, fmt.Errorf("list runner rules: %w", err)
	}
	documents := make([]runnerspec.Rule, len(rules))
	for i, rec := range rules {
		documents[i] = rec.Document
	}
	ruled := holdfast.LocalRunner
	rule, matches := runnerspec.RuleFor(documents, env)
	if matches {
		ruled = rule.Runner
	}
	pinned := ruled
	switch pin, err := k.opts.Store.Environment(ctx, env); {
	case err == nil:
		if pinned = pin.Runner; !matches { // a refresh moves it nowhere
			ruled = pinned
		}
	case !errors.Is(err, holdfast.ErrNotFound):
		return choice{}, fmt.Errorf("read environment %s: %w", env, err)
	}
	of := func(name string) (now storage, all []storage) {
		i := slices.IndexFunc(runners, func(r runnerspec.Record) bool { return r.Document.Name == name })
		if i < 0 {
			return storage{}, []storage{{}}
		}
		now = storageOf(runners[i].Document)
		if next := runners[i].Next; next != nil {
			all = append(all, storageOf(*next))
		}
		return now, append(all, now)
	}
	var c choice
	if ruled != pinned {
		_, c.coming = of(ruled)
	}
	now, all := of(pinned)
	c.now, c.coming = now, append(c.coming, all...)
	return c, nil
}

// fresh is the place that a state gets in a storage where it is not yet.
func (k *Keeper) fresh(ctx context.Context, c holdfast.Cluster, s storage, resolved string) (Place, error) {
	if s.storage == nil {
		return Place{Location: resolved}, nil
	}
	for n := 1; ; n++ {
		stored := holdfast.StoredState{StateStorage: *s.storage, Key: s.storage.KeyOf(c.EnvironmentKey(), c.Name, n), InCluster: s.inCluster}
		at := k.opts.Resolver.LocationOf(stored, c)
		var taken bool
		for _, name := range location.Aliases(at) {
			others, err := k.opts.Store.StatePlacesAt(ctx, name)
			if err != nil {
				return Place{}, err
			}
			taken = taken || slices.ContainsFunc(others, func(other string) bool { return other != c.Name })
		}
		if !taken {
			return Place{Location: at, Stored: &stored}, nil
		}
	}
}

// Desired completes what a document asks for with where its state is to be. Rec is the record of
// its cluster; the zero one if there is none.
func (k Moment) Desired(ctx context.Context, d holdfast.Desired, rec holdfast.ClusterRecord) (holdfast.Desired, error) {
	place, err := k.of(ctx, d.Document, d.StateLocation, &rec)
	d.StateLocation, d.Stored = place.Location, place.Stored
	return d, err
}

// Moves returns which of the clusters have their states where a runner keeps them, or in
// Holdfast's own backend, and would have them elsewhere with a runner that keeps them in one
// of the storages; nil is Holdfast's own backend.
func (k *Keeper) Moves(ctx context.Context, clusters []string, storages ...*holdfast.StateStorage) ([]holdfast.StateMigration, error) {
	var moves []holdfast.StateMigration
	for _, name := range clusters {
		fixed, err := k.opts.Store.StatePlace(ctx, name)
		if errors.Is(err, holdfast.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("look where the state of %q is: %w", name, err)
		}
		if !ByRunner(fixed) || slices.ContainsFunc(storages, fixed.Stored.In) {
			continue
		}
		rec, err := k.opts.Store.Cluster(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("read cluster %q: %w", name, err)
		}
		to, err := k.fresh(ctx, rec.Desired.Document, storage{storage: storages[0]}, "clusters/"+name)
		if err != nil {
			return nil, err
		}
		moves = append(moves, holdfast.StateMigration{Cluster: name, From: fixed.Location, To: to.Location})
	}
	return moves, nil
}
