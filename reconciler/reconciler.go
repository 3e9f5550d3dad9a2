package reconciler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/act"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/commands"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/reconciler/drift"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/impact"
	"github.com/holdfast-dev/holdfast/reconciler/intake"
	"github.com/holdfast-dev/holdfast/reconciler/leader"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/reconciler/outputs"
	"github.com/holdfast-dev/holdfast/reconciler/places"
	"github.com/holdfast-dev/holdfast/reconciler/policies"
	"github.com/holdfast-dev/holdfast/reconciler/propose"
	"github.com/holdfast-dev/holdfast/reconciler/publish"
	"github.com/holdfast-dev/holdfast/reconciler/published"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/reconciler/record"
	"github.com/holdfast-dev/holdfast/reconciler/relay"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/reconciler/rescue"
	"github.com/holdfast-dev/holdfast/reconciler/runners"
	"github.com/holdfast-dev/holdfast/reconciler/trace"
	"github.com/holdfast-dev/holdfast/reconciler/upgrade"
	"github.com/holdfast-dev/holdfast/templates"
)

// Reconciler keeps a fleet. Its methods are safe for concurrent use.
type Reconciler struct {
	opts Options
	leaves
	rooms

	deciding queue.Locks // decisions about one cluster in one place, too
	looking  queue.Locks // looks at one pull request, too

	leader    *leader.Keeper
	desk      *relay.Desk // nil: there are no other replicas
	deaths    chan struct{}
	refsMoved *queue.Broadcast
	toldRefs  sync.Map // what other replicas know that repositories have: digests, by name
}

// leaves are the small rooms that the others share.
type leaves struct {
	agenda    *agenda.Agenda
	artefacts *history.Patient
	catalogs  *catalog.Reader
	gates     *gate.Keeper
	lineage   *lineage.Reader
	outputs   *outputs.Reader
	places    *places.Keeper
	policies  *policies.Reader
	records   *record.Writer
	releases  *releases.Reader
	resolver  *templates.Resolver
	traces    *trace.Memory
}

// rooms are those that know one another only by what is wired in here.
type rooms struct {
	commands   *commands.Handler
	dispatcher *dispatch.Dispatcher
	drift      *drift.Keeper
	impacts    *impact.Keeper
	intake     *intake.Intake
	loop       *act.Loop
	operator   *commands.Operator
	publish    *publish.Publisher
	published  *published.List
	rescue     *rescue.Keeper
	runners    *runners.Keeper
	proposals  *propose.Desk
	upgrades   *upgrade.Keeper
}

// New returns a Reconciler, or an error that names what is missing.
func New(opts Options) (*Reconciler, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	r := &Reconciler{opts: opts.withDefaults(), deaths: make(chan struct{}, 1), refsMoved: queue.NewBroadcast()}
	r.leader = newLeader(r)
	r.desk = newDesk(r)
	r.leaves = newLeaves(r)
	// Each asks for others only when it works: all of them are there by then.
	r.upgrades = newUpgrades(r)
	r.impacts = newImpacts(r)
	r.published = newPublished(r)
	r.rescue = newRescue(r)
	r.publish = newPublisher(r)
	var err error
	if r.dispatcher, err = newDispatcher(r); err != nil {
		return nil, fmt.Errorf("reconciler: %w", err)
	}
	r.runners = newRunners(r)
	r.proposals = newProposals(r)
	r.intake = newIntake(r)
	r.drift = newDrift(r)
	r.loop = newLoop(r)
	r.operator, r.commands = newCommands(r)
	return r, nil
}

// newLeaves returns the small rooms. None of them does anything before a room asks.
func newLeaves(r *Reconciler) leaves {
	var l leaves
	var publishing []releases.Repository
	globs, runnerGlobs := make(map[string][]string, len(r.opts.Sources.Repositories)), make(map[string][]string)
	for _, repo := range r.opts.Sources.Repositories {
		globs[repo.Name], runnerGlobs[repo.Name] = repo.Clusters, repo.Runners
		publishing = append(publishing, releases.Repository{Name: repo.Name, Templates: repo.Templates})
	}
	store, git, logger, now := r.opts.Store, r.opts.Sources.Git, r.opts.Telemetry.Logger, r.opts.Now
	l.traces = trace.NewMemory(r.opts.Telemetry.Tracer)
	loader := templates.NewResolver(nil).Varying(r.opts.Grants.Varied)
	l.releases = releases.NewReader(releases.Options{
		Repositories: publishing, Pins: store, Git: git, Loader: loader,
		Refs: func(ctx context.Context, repo string) (holdfast.Refs, error) { return r.intake.KnownRefs(ctx, repo) },
	})
	l.resolver = loader.Using(l.releases)
	l.policies = newPolicies(r)
	l.catalogs = catalog.NewReader(catalog.Options{
		Requires: r.opts.Grants.required(l.policies.Required),
		Git:      git, Resolver: l.resolver, Globs: globs, Check: r.opts.Grants.forbidden,
		Runners: runnerGlobs, RunnerDocuments: r.opts.Grants.Runners.Documents,
	})
	l.places = places.NewKeeper(places.Options{
		Store: store, Catalogs: l.catalogs, Resolver: l.resolver, Logger: logger, Now: now,
		Queued: func(ctx context.Context) { r.dispatcher.Queued(ctx) },
	})
	l.artefacts = history.NewPatient(store, logger, now)
	l.lineage = lineage.NewReader(patientStore{store, l.artefacts}, l.catalogs)
	l.agenda = agenda.New(agenda.Options{
		Store: store, Kin: l.lineage, Logger: logger, Show: func(ref holdfast.PullRequestRef) { r.publish.Show(ref) },
	})
	l.records = record.NewWriter(record.Options{
		Store: store, DriftSchedule: r.opts.Sources.DriftSchedule, Logger: logger, Now: now, Ended: r.ended,
		DriftMoved: func(ctx context.Context) { r.wake(ctx, topicDrift) },
	})
	l.outputs = outputs.NewReader(store, logger, now)
	l.gates = gate.NewKeeper(func(repo string) gate.Forge { return r.opts.Sources.Forges[repo] },
		func(ctx context.Context, pr holdfast.PullRequest, was holdfast.PullRequestState) (bool, error) {
			return r.publish.Intact(ctx, pr, was)
		}, now)
	return l
}

// Run reconciles until ctx is done: it polls, works off requests, posts what
// the outbox holds, and watches the leases. Requests that were begun are
// finished before it returns, unless they are aborted: see queue.Abortable. Agents are served apart from it, by the Dispatcher,
// before and after.
func (r *Reconciler) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{
		func(ctx context.Context) error { return r.agenda.Work(ctx, peering{r}.take, peering{r}.decide) },
		peering{r}.follow, r.upgrades.Run, r.drift.Run, r.intake.Poll, r.commands.Run, r.sweep, r.publish.Run,
	} {
		g.Go(func() error { return run(ctx) })
	}
	if waker := r.opts.Replica.Waker; waker != nil {
		g.Go(func() error { return waker.Subscribe(ctx, r.woken) })
	}
	err := g.Wait()
	r.agenda.Close()
	r.publish.Close()
	r.leave(ctx)
	return err
}

// leave gives back what this replica leads, also when the grace of its end is over.
func (r *Reconciler) leave(ctx context.Context) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer done()
	r.leader.Leave(ctx)
}

// leaveTime is the most that it takes to give back what this replica leads, when it ends.
const leaveTime = 3 * time.Second

// handOverTime is the most that a replica which ends takes to tell others which looks it was
// asked for.
const handOverTime = 3 * time.Second

// WorkOff waits, while Run runs, until what has happened is decided about, and what is to be
// shown of it since a time or later is shown, or ctx is done. It does not wait for looks at
// repositories, unless other replicas are to be notified of them, for what was put off, nor
// for replies and reactions: these are in the outbox for the next start.
func (r *Reconciler) WorkOff(ctx context.Context, since time.Time) {
	handing := time.Now().Add(handOverTime)
	for ctx.Err() == nil && r.leader.Others() && time.Now().Before(handing) {
		if looks, _ := r.agenda.Depths(); looks == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	left := func() bool { // what others lead by now is theirs to post, once they know of it
		if !r.leader.Leads(leader.Fleet) {
			return r.publish.Asked()
		}
		return r.publish.Busy(ctx, since)
	}
	for ctx.Err() == nil && (r.agenda.Deciding() || left()) {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Enqueue asks for a look at a repository or a pull request. It never blocks.
func (r *Reconciler) Enqueue(req holdfast.SourceRequest) {
	for _, repo := range r.opts.Sources.Repositories {
		if repo.Name == req.Repo {
			r.traces.Remember(req.Repo, req.PullRequest, req.TraceParent)
			r.agenda.Look(agenda.Look{Repo: req.Repo, Number: req.PullRequest})
			return
		}
	}
}

// Ready reports whether every repository was taken in once; the names of those
// that were not, otherwise. One that cannot be fetched, or has not answered for a while,
// hinders only its own clusters, if there are others.
func (r *Reconciler) Ready() (missing []string) { return r.intake.Ready() }

// PassedBy are the repositories that were not taken in and are not waited for.
func (r *Reconciler) PassedBy() []string { return r.intake.PassedBy() }

// Progress is how far a repository is that was not taken in yet, in words; empty if that is
// not known.
func (r *Reconciler) Progress(repo string) string { return r.intake.Progress(repo) }

// ended measures a run that has ended without an attempt, and asks for all that it
// may bear on.
func (r *Reconciler) ended(ctx context.Context, run holdfast.Run) {
	r.opts.Telemetry.Metrics.RunEnded(run.Kind, run.Status, run.Reason)
	r.agenda.FollowUp(ctx, run)
}

// The topics that replicas wake one another with, besides those of the Dispatcher.
const (
	topicPosts = "posts"
	topicDrift = "drift"
)

// woken is called by another replica's Wake.
func (r *Reconciler) woken(topic string) {
	switch topic {
	case topicPosts:
		r.publish.Wake()
	case topicDrift:
		r.drift.Wake()
	default:
		if !(peering{r}).wokenByPeer(topic) {
			r.dispatcher.Woken(topic)
		}
	}
}

// wake wakes all replicas, this one too.
func (r *Reconciler) wake(ctx context.Context, topic string) {
	r.woken(topic)
	r.wakeOthers(ctx, topic)
}

func (r *Reconciler) wakeOthers(ctx context.Context, topic string) {
	if r.opts.Replica.Waker == nil {
		return
	}
	if err := r.opts.Replica.Waker.Wake(ctx, topic); err != nil {
		r.opts.Telemetry.Logger.DebugContext(ctx, "wake was lost", "topic", topic, "err", err)
	}
}
