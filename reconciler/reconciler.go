// Package reconciler moves a fleet of clusters towards what Git says.
//
// Requests name a repository, a pull request or a cluster, never what happened
// to it. For each, the reconciler observes Git and the records, decides with a
// pure function (Decide), and acts: it queues a durable run, records an outcome,
// or waits for a reason that it shows. It dispatches runs to agents, follows up
// on how they end, and keeps what the forges show true.
package reconciler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
	"github.com/holdfast-dev/holdfast/reconciler/impact"
	"github.com/holdfast-dev/holdfast/reconciler/intake"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/reconciler/outputs"
	"github.com/holdfast-dev/holdfast/reconciler/publish"
	"github.com/holdfast-dev/holdfast/reconciler/published"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/reconciler/record"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/reconciler/rescue"
	"github.com/holdfast-dev/holdfast/reconciler/trace"
	"github.com/holdfast-dev/holdfast/reconciler/upgrade"
	"github.com/holdfast-dev/holdfast/templates"
)

// Options are what a Reconciler needs. All are required unless noted.
type Options struct {
	Store        Store
	Git          Git
	Forges       map[string]Forge // by repository name
	Repositories []Repository
	Locker       Locker
	Waker        Waker // nil: there are no other replicas

	// Allow reports why a repository may not define a cluster with that state
	// location. Nil allows everything.
	Allow func(repo string, c holdfast.Cluster, stateLocation string) error
	// Credentials returns the environment that a run of that kind gets. Nil gives
	// none.
	Credentials func(c holdfast.Cluster, kind holdfast.RunKind) (holdfast.Credentials, error)
	// Limits returns what the engine of a cluster's runs may use, and the most that
	// its document may ask for. Nil: no limits.
	Limits func(c holdfast.Cluster) (granted, most holdfast.RunLimits)

	// SecretSources returns where the secret variables of a run of that kind may
	// come from: folders of files, and commands of stores, with "{key}" for which.
	// Nil gives none.
	SecretSources func(c holdfast.Cluster, kind holdfast.RunKind) (dirs []string, stores map[string][]string)
	// Commands returns the commands in a comment, with the same ids whenever it
	// is asked.
	Commands func(comment holdfast.Comment) []holdfast.Command

	FingerprintKey []byte // 32 bytes: makes fingerprints comparable with one another only
	TokenKey       []byte // 32 bytes: makes the attempts' credentials

	// Identity names this replica in leases and claims of posts.
	Identity string

	MaxRuns    int           // runs at once in the fleet; zero means 4
	RunTimeout time.Duration // zero means 30 minutes
	Lease      time.Duration // how long a silent attempt is believed in; zero means 30 seconds
	MaxRetries int           // of an attempt that failed for a transient cause; zero means 5, negative none
	// LockTimeout is how long engines wait for the lock of a state; zero: not at all.
	LockTimeout time.Duration
	Break       time.Duration           // of a provider that throttles, doubling up to 15 times; zero means a minute
	RetryDelay  time.Duration           // before the first retry, doubling; zero means 10 seconds
	LogURL      func(run string) string // nil: comments name runs without a link
	// PullRequestURL returns what statuses link to; nil: nothing.
	PullRequestURL func(ref holdfast.PullRequestRef) string

	DriftSchedule string         // default for clusters without a schedule; empty: none
	MaxDrift      int            // drift checks at once; zero means half of MaxRuns, at least 1
	MaxIssues     int            // open drift issues in a repository, beside the one that sums up; zero means 10, negative only that one
	MaxProvider   map[string]int // runs at once by provider; one that is not named has no limit of its own

	Metrics Metrics          // nil measures nothing
	Tracer  Tracer           // nil traces nothing
	Logger  *slog.Logger     // nil discards
	Now     func() time.Time // nil means time.Now
}

// maxIssues is Options.MaxIssues unless it is set.
const maxIssues = 10

// Repository is a repository that is watched.
type Repository struct {
	Name     string
	Branch   string   // the tracked branch
	Clusters []string // globs of the files that may define clusters; ** crosses folders
	// Templates are the folders of versioned templates, by name; empty if the
	// repository publishes none.
	Templates map[string]string
	// UpgradeGroups are keys of labels: the clusters that one pull request
	// upgrades have the same values. None: one for all clusters of a template.
	UpgradeGroups []string
	// Local repositories have no refs/pull: a pull request's head is a branch.
	Local  bool
	Forks  bool // plan pull requests from forks: their code is executed
	Drafts bool // plan drafts too
	// Trials is how many clusters are planned to show what a pull request's
	// change of a template would do, with the plan credentials of each; zero means
	// 10, negative none.
	Trials int
	// TrialEnvironments are globs of the environments whose clusters are planned for
	// that. None: all.
	TrialEnvironments []string
	Poll              time.Duration // zero means 5 minutes; spread by ±20 %
	// Entries are the names of all repositories that are the same one on a code
	// host and track other branches of it, this one among them. None: this one only.
	Entries []string
}

// further reports whether another entry of the same repository comes before.
func (r Repository) further() bool { return len(r.Entries) > 0 && r.Entries[0] != r.Name }

// Metrics hears of what happens. Its methods must not block.
type Metrics interface {
	RunEnded(kind holdfast.RunKind, status holdfast.RunStatus, reason holdfast.Reason)
	RunClaimed(kind holdfast.RunKind, waited time.Duration)
	Step(name string, took time.Duration)
	LockRefused()
	Depth(queue string, n int)
	Decided(action decision.Action, reason holdfast.Reason)
	Posted(kind holdfast.PostKind, ok bool)
	GaveUp(kind holdfast.PostKind)
	// ProviderHeld: no run of a provider is handed out until then; the zero time
	// says that its runs go on.
	ProviderHeld(provider string, until time.Time)
}

// Reconciler keeps a fleet. Its methods are safe for concurrent use.
type Reconciler struct {
	opts       Options
	repos      map[string]Repository
	resolver   *templates.Resolver
	catalogs   *catalog.Reader
	releases   *releases.Reader
	intake     *intake.Intake
	traces     *trace.Memory
	agenda     *agenda.Agenda
	lineage    *lineage.Reader
	records    *record.Writer
	outputs    *outputs.Reader
	upgrades   *upgrade.Keeper
	publish    *publish.Publisher
	rescue     *rescue.Keeper
	gates      *gate.Keeper
	impacts    *impact.Keeper
	published  *published.List
	dispatcher *dispatch.Dispatcher

	drifts *queue.Broadcast // a check for drift may be due
	asked  *queue.Broadcast // a command was stored
	took   *queue.Broadcast // a repository was taken in for the first time

	obeying  sync.Mutex    // commands are carried out one after another
	deciding queue.Stripes // decisions about one cluster in one place, too
	looking  queue.Stripes // looks at one pull request, too
}

// New returns a Reconciler, or an error that names what is missing.
func New(opts Options) (*Reconciler, error) {
	switch {
	case opts.Store == nil:
		return nil, errors.New("reconciler: no store")
	case opts.Git == nil:
		return nil, errors.New("reconciler: no git")
	case opts.Locker == nil:
		return nil, errors.New("reconciler: no locker")
	case opts.Commands == nil:
		return nil, errors.New("reconciler: no command parser")
	case len(opts.FingerprintKey) < 32 || len(opts.TokenKey) < 32:
		return nil, errors.New("reconciler: keys of at least 32 bytes are needed")
	case opts.Identity == "":
		return nil, errors.New("reconciler: no identity")
	}
	r := &Reconciler{
		opts:   withDefaults(opts),
		repos:  make(map[string]Repository, len(opts.Repositories)),
		traces: trace.NewMemory(opts.Tracer),
		drifts: queue.NewBroadcast(),
		asked:  queue.NewBroadcast(),
	}
	var publishing []releases.Repository
	globs := make(map[string][]string, len(opts.Repositories))
	for _, repo := range opts.Repositories {
		globs[repo.Name] = repo.Clusters
		publishing = append(publishing, releases.Repository{Name: repo.Name, Templates: repo.Templates})
		if opts.Forges[repo.Name] == nil {
			return nil, fmt.Errorf("reconciler: no forge for repository %q", repo.Name)
		}
		if repo.Poll == 0 {
			repo.Poll = 5 * time.Minute
		}
		if repo.Trials == 0 {
			repo.Trials = 10
		}
		r.repos[repo.Name] = repo
	}
	r.releases = releases.NewReader(releases.Options{
		Repositories: publishing, Pins: r.opts.Store, Git: r.opts.Git,
		Refs: func(ctx context.Context, repo string) (holdfast.Refs, error) { return r.intake.KnownRefs(ctx, repo) },
	})
	r.resolver = templates.NewResolver(r.releases)
	r.catalogs = catalog.NewReader(catalog.Options{Git: r.opts.Git, Resolver: r.resolver, Globs: globs, Check: r.forbidden})
	r.lineage = lineage.NewReader(r.opts.Store, r.catalogs)
	r.agenda = agenda.New(agenda.Options{
		Store: r.opts.Store, Kin: r.lineage, Logger: r.opts.Logger,
		Show: func(ref holdfast.PullRequestRef) { r.publish.Show(ref) },
	})
	r.records = record.NewWriter(record.Options{
		Store: r.opts.Store, DriftSchedule: r.opts.DriftSchedule, Logger: r.opts.Logger, Now: r.opts.Now, Ended: r.ended,
		DriftMoved: func(ctx context.Context) { r.wake(ctx, topicDrift) },
	})
	r.outputs = outputs.NewReader(r.opts.Store, r.opts.Logger, r.opts.Now)
	r.upgrades = newUpgrades(r)
	r.impacts = newImpacts(r)
	r.published = newPublished(r)
	dispatcher, err := dispatch.New(dispatch.Options{
		Store: r.opts.Store, Locker: r.opts.Locker, Fleet: fleet{r}, TokenKey: r.opts.TokenKey,
		Limits: dispatch.Limits{
			Runs: r.opts.MaxRuns, Drift: r.opts.MaxDrift, Provider: r.opts.MaxProvider, Timeout: r.opts.RunTimeout,
			Lease: r.opts.Lease, Retries: r.opts.MaxRetries, RetryDelay: r.opts.RetryDelay, Break: r.opts.Break,
		},
		Metrics: r.opts.Metrics, Logger: r.opts.Logger, Now: r.opts.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("reconciler: %w", err)
	}
	r.dispatcher = dispatcher
	r.rescue = rescue.New(rescue.Options{
		Store: r.opts.Store, Fleet: rescuing{r}, Delay: r.opts.RetryDelay, Logger: r.opts.Logger, Now: r.opts.Now,
	})
	r.publish = newPublisher(r)
	r.gates = gate.NewKeeper(func(repo string) gate.Forge { return opts.Forges[repo] }, r.opts.Now)
	r.intake = newIntake(r)
	return r, nil
}

func withDefaults(opts Options) Options {
	if opts.MaxRuns == 0 {
		opts.MaxRuns = 4
	}
	if opts.MaxDrift == 0 {
		opts.MaxDrift = max(opts.MaxRuns/2, 1)
	}
	if opts.MaxIssues == 0 {
		opts.MaxIssues = maxIssues
	}
	if opts.RunTimeout == 0 {
		opts.RunTimeout = 30 * time.Minute
	}
	if opts.Lease == 0 {
		opts.Lease = 30 * time.Second
	}
	if opts.MaxRetries == 0 {
		opts.MaxRetries = 5
	}
	if opts.RetryDelay == 0 {
		opts.RetryDelay = 10 * time.Second
	}
	if opts.Allow == nil {
		opts.Allow = func(string, holdfast.Cluster, string) error { return nil }
	}
	if opts.Credentials == nil {
		opts.Credentials = func(holdfast.Cluster, holdfast.RunKind) (holdfast.Credentials, error) {
			return holdfast.Credentials{}, nil
		}
	}
	if opts.Metrics == nil {
		opts.Metrics = noMetrics{}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return opts
}

// Run reconciles until ctx is done: it polls, works off requests, posts what
// the outbox holds, and watches the leases. Requests that were begun are
// finished before it returns, unless they are aborted: see queue.Abortable. Agents are served apart from it, by the Dispatcher,
// before and after.
func (r *Reconciler) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.agenda.Work(ctx, r.intake.Take, r.reconcileOnce) })
	g.Go(func() error { return r.upgrades.Run(ctx) })
	g.Go(func() error { return r.driftSchedule(ctx) })
	g.Go(func() error { return r.intake.Poll(ctx) })
	g.Go(func() error { return r.obey(ctx) })
	g.Go(func() error { return r.sweep(ctx) })
	g.Go(func() error { return r.publish.Run(ctx) })
	if r.opts.Waker != nil {
		g.Go(func() error { return r.opts.Waker.Subscribe(ctx, r.woken) })
	}
	err := g.Wait()
	r.agenda.Close()
	r.publish.Close()
	return err
}

// WorkOff waits, while Run runs, until what has happened is decided about and told, or
// ctx is done. It does not wait for looks at repositories, nor for what was put off.
func (r *Reconciler) WorkOff(ctx context.Context) {
	for ctx.Err() == nil && (r.agenda.Deciding() || r.publish.Busy()) {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Dispatcher hands runs to agents and takes in how they end.
func (r *Reconciler) Dispatcher() *dispatch.Dispatcher { return r.dispatcher }

// Enqueue asks for a look at a repository or a pull request. It never blocks.
func (r *Reconciler) Enqueue(req holdfast.SourceRequest) {
	if _, ok := r.repos[req.Repo]; ok {
		r.traces.Remember(req.Repo, req.PullRequest, req.TraceParent)
		r.agenda.Look(agenda.Look{Repo: req.Repo, Number: req.PullRequest})
	}
}

// Ready reports whether every repository was taken in once; the names of those
// that were not, otherwise. One that cannot be fetched hinders only its own
// clusters, if there are others.
func (r *Reconciler) Ready() (missing []string) { return r.intake.Ready() }

// ended measures a run that has ended without an attempt, and asks for all that it
// may bear on.
func (r *Reconciler) ended(ctx context.Context, run holdfast.Run) {
	r.opts.Metrics.RunEnded(run.Kind, run.Status, run.Reason)
	r.agenda.FollowUp(ctx, run)
}

// woken is called by another replica's Wake.
func (r *Reconciler) woken(topic string) {
	switch topic {
	case topicPosts:
		r.publish.Wake()
	case topicDrift:
		r.drifts.Send()
	default:
		r.dispatcher.Woken(topic)
	}
}

const (
	topicPosts = "posts"
	topicDrift = "drift"
)

func (r *Reconciler) wake(ctx context.Context, topic string) {
	r.woken(topic)
	r.wakeOthers(ctx, topic)
}

func (r *Reconciler) wakeOthers(ctx context.Context, topic string) {
	if r.opts.Waker != nil {
		if err := r.opts.Waker.Wake(ctx, topic); err != nil {
			r.opts.Logger.DebugContext(ctx, "wake was lost", "topic", topic, "err", err)
		}
	}
}

type noMetrics struct{}

func (noMetrics) RunEnded(holdfast.RunKind, holdfast.RunStatus, holdfast.Reason) {}
func (noMetrics) RunClaimed(holdfast.RunKind, time.Duration)                     {}
func (noMetrics) Step(string, time.Duration)                                     {}
func (noMetrics) LockRefused()                                                   {}
func (noMetrics) Depth(string, int)                                              {}
func (noMetrics) Decided(decision.Action, holdfast.Reason)                       {}
func (noMetrics) Posted(holdfast.PostKind, bool)                                 {}
func (noMetrics) GaveUp(holdfast.PostKind)                                       {}
func (noMetrics) ProviderHeld(string, time.Time)                                 {}
