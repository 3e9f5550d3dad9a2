package reconciler

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/policies"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// Options are what a Reconciler needs.
type Options struct {
	Store     Store   // required
	Sources   Sources // required
	Replica   Replica // required
	Grants    Grants
	Limits    Limits
	Reports   Reports
	Telemetry Telemetry
	Now       func() time.Time // nil means time.Now
}

// Sources are where it is written what the fleet should be. All but DriftSchedule are
// required.
type Sources struct {
	Git          Git
	Forges       map[string]Forge // by repository name
	Repositories []Repository
	// Commands returns the commands in a comment, with the same ids whenever it
	// is asked.
	Commands      func(comment holdfast.Comment) []holdfast.Command
	DriftSchedule string // default for clusters without a schedule; empty: none
}

// Replica is one of the servers that keep the same fleet. All but Waker and Peers are required.
type Replica struct {
	Identity string // names this one in leases and claims of posts
	Process  string // another one whenever it is started; empty: Peers is nil
	Locker   Locker
	Waker    Waker // nil: other replicas hear of things by way of Peers alone
	Peers    Peers // nil: there are no other replicas

	FingerprintKey []byte // 32 bytes: makes fingerprints comparable with one another only
	TokenKey       []byte // 32 bytes: makes the attempts' credentials
}

// Grants are what clusters and agents may do and get.
type Grants struct {
	// Isolation are the modes of which agents must have one to get runs, strong ones
	// first. None: any agent gets runs.
	Isolation []string
	// Allow reports why a repository may not define a cluster with that state
	// location. Nil allows everything.
	Allow func(repo string, c holdfast.Cluster, stateLocation string) error
	// Credentials returns the environment that a run of that kind gets. Nil gives
	// none.
	Credentials func(c holdfast.Cluster, kind holdfast.RunKind) (protocol.Credentials, error)
	// Varied are those of location.Variables that may have another value in another
	// project or environment. Nil: none.
	Varied []string
	// SameCredential reports whether runs of that kind of two clusters get a credential,
	// by its name, from the same place. Nil: they always do.
	SameCredential func(name string, kind holdfast.RunKind, a, b holdfast.Cluster) bool
	// Limits returns what the engine of a cluster's runs may use, and the most that
	// its document may ask for. Nil: no limits.
	Limits func(c holdfast.Cluster) (granted, most holdfast.RunLimits)
	// SecretSources returns where the secret variables of a run of that kind may
	// come from: folders of files, and commands of stores, with "{key}" for which.
	// Nil gives none.
	SecretSources func(c holdfast.Cluster, kind holdfast.RunKind) (dirs []string, stores map[string][]string)
	Runners       RunnerGrants
	Policies      PolicyGrants
	Gates         []GateMinimum
	// Cost returns what a plan for a cluster changes of the monthly price. Nil: costs are not
	// estimated.
	Cost func(c holdfast.Cluster, document plandoc.Document) holdfast.Cost
}

// GateMinimum is what the applies of some clusters have to meet, whatever their documents say.
type GateMinimum struct {
	Scope    policies.Scope
	Requires []string // names of conditions
	Terms    holdfast.GateTerms
}

// PolicyGrants are the policies that plans are held against. The zero value has none of them.
type PolicyGrants struct {
	Sets    []policies.Set
	Shipped *policies.Scope // for whose clusters the shipped ones are; nil: for none
}

// From reports whether policies are read from a repository.
func (g PolicyGrants) From(repo string) bool {
	return slices.ContainsFunc(g.Sets, func(s policies.Set) bool { return s.Repo == repo })
}

// RunnerGrants are what documents of runners and rules may say.
type RunnerGrants struct {
	// Allow returns why a repository may not define a runner or a rule. Nil allows none.
	Allow     func(repo string, doc runnerdoc.Document) error
	Documents runnerdoc.Options
}

// Limits bound runs.
type Limits struct {
	Runs       int            // at once in the fleet; zero means 4
	Drift      int            // drift checks at once; zero means half of Runs, at least 1
	Provider   map[string]int // runs at once by provider; one that is not named has no limit of its own
	Project    int            // runs at once of each project; zero: no limit
	First      int            // first plans of clusters that Git has and nobody asks for, an hour; zero: no limit
	Timeout    time.Duration  // of a run; zero means 30 minutes
	Lease      time.Duration  // how long a silent attempt is believed in; zero means 30 seconds
	Retries    int            // of an attempt that failed for a transient cause; zero means 5, negative none
	RetryDelay time.Duration  // before the first retry, doubling; zero means 10 seconds
	// LockTimeout is how long a run waits for the lock of a state's backend, the most of it
	// between its attempts and without using Retries, before it ends; zero: not at all.
	LockTimeout time.Duration
	Break       time.Duration // of a provider that throttles, doubling up to 15 times; zero means a minute
}

// Reports are how what people read looks.
type Reports struct {
	LogURL func(run string) string // nil: comments name runs without a link
	// PullRequestURL returns what statuses link to; nil: nothing.
	PullRequestURL func(ref holdfast.PullRequestRef) string
	// Issues is how many drift issues may be open in a repository, besides the one that
	// sums up; zero means 10, negative only that one.
	Issues int
	// PolicyStatus: what policies say of a pull request is a separate status.
	PolicyStatus bool
	// Decided is called after each decision about a cluster; it must not block. Nil:
	// nobody else wants to know.
	Decided func(in decision.Input)
}

// maxIssues is the default of Reports.Issues.
const maxIssues = 10

// Telemetry is where a Reconciler reports what it does.
type Telemetry struct {
	Metrics Metrics      // nil measures nothing
	Tracer  Tracer       // nil traces nothing
	Logger  *slog.Logger // nil discards
}

// Repository is a repository that is watched.
type Repository struct {
	Name     string
	Branch   string   // the tracked branch
	Clusters []string // globs of the files that may define clusters; ** crosses folders
	Runners  []string // globs of the files that may define runners and rules, besides
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
	Labels bool // label pull requests, where the code host has labels
	// Samples is how many clusters are planned to show what a pull request's
	// change of a template would do, with the plan credentials of each; zero means
	// 10, negative none.
	Samples int
	// SampleEnvironments are globs of the environments whose clusters are planned for
	// that. None: all.
	SampleEnvironments []string
	Poll               time.Duration // zero means 5 minutes; spread by ±20 %
	// Entries are the names of all repositories that are the same one on a code
	// host and track other branches of it, this one among them. None: this one only.
	Entries []string
}

// further reports whether another entry of the same repository comes before.
func (r Repository) further() bool { return len(r.Entries) > 0 && r.Entries[0] != r.Name }

// check returns what is missing.
func (o Options) check() error {
	switch {
	case o.Store == nil:
		return errors.New("reconciler: no store")
	case o.Sources.Git == nil:
		return errors.New("reconciler: no git")
	case o.Replica.Locker == nil:
		return errors.New("reconciler: no locker")
	case o.Sources.Commands == nil:
		return errors.New("reconciler: no command parser")
	case len(o.Replica.FingerprintKey) < 32 || len(o.Replica.TokenKey) < 32:
		return errors.New("reconciler: keys of at least 32 bytes are needed")
	case o.Replica.Identity == "":
		return errors.New("reconciler: no identity")
	}
	for _, repo := range o.Sources.Repositories {
		if o.Sources.Forges[repo.Name] == nil {
			return fmt.Errorf("reconciler: no code host for repository %q", repo.Name)
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	o.Grants = o.Grants.withDefaults()
	if o.Reports.Issues == 0 {
		o.Reports.Issues = maxIssues
	}
	if o.Telemetry.Metrics == nil {
		o.Telemetry.Metrics = noMetrics{}
	}
	if o.Telemetry.Logger == nil {
		o.Telemetry.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	repositories := make([]Repository, 0, len(o.Sources.Repositories))
	for _, repo := range o.Sources.Repositories {
		if repo.Poll == 0 {
			repo.Poll = 5 * time.Minute
		}
		if repo.Samples == 0 {
			repo.Samples = 10
		}
		repositories = append(repositories, repo)
	}
	o.Sources.Repositories = repositories
	return o
}

func (l Limits) withDefaults() Limits {
	if l.Runs == 0 {
		l.Runs = 4
	}
	if l.Drift == 0 {
		l.Drift = max(l.Runs/2, 1)
	}
	if l.Timeout == 0 {
		l.Timeout = 30 * time.Minute
	}
	if l.Lease == 0 {
		l.Lease = 30 * time.Second
	}
	if l.Retries == 0 {
		l.Retries = 5
	}
	if l.RetryDelay == 0 {
		l.RetryDelay = 10 * time.Second
	}
	return l
}

func (g Grants) withDefaults() Grants {
	if g.Allow == nil {
		g.Allow = func(string, holdfast.Cluster, string) error { return nil }
	}
	if g.Credentials == nil {
		g.Credentials = func(holdfast.Cluster, holdfast.RunKind) (protocol.Credentials, error) {
			return protocol.Credentials{}, nil
		}
	}
	if g.SameCredential == nil {
		g.SameCredential = func(string, holdfast.RunKind, holdfast.Cluster, holdfast.Cluster) bool { return true }
	}
	if g.Runners.Allow == nil {
		g.Runners.Allow = func(repo string, _ runnerdoc.Document) error {
			return fmt.Errorf("%s may not define runners", repo)
		}
	}
	if g.Limits == nil {
		g.Limits = func(holdfast.Cluster) (granted, most holdfast.RunLimits) { return }
	}
	if g.SecretSources == nil {
		g.SecretSources = func(holdfast.Cluster, holdfast.RunKind) ([]string, map[string][]string) { return nil, nil }
	}
	return g
}
