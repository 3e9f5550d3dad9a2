package runners

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// Store are the records of runners; *datastore.Store is one.
type Store interface {
	Records
	Refresh
	ClusterNames(ctx context.Context, filter holdfast.ClusterFilter) ([]string, error)
}

// Records are those of runners and rules.
type Records interface {
	Runners(ctx context.Context) ([]runnerspec.Record, error)
	RunnerRules(ctx context.Context) ([]runnerspec.RuleRecord, error)
	// SaveRunners stores what a repository says of runners and rules. It is an ErrConflict,
	// and nothing is stored, if a name belongs to another repository, or a runner that is to
	// go has an environment pinned to it or a rule that names it.
	SaveRunners(ctx context.Context, change runnerspec.Change, trail ...holdfast.AuditEntry) error
}

// Refresh is how environments move.
type Refresh interface {
	// Environments returns the environments that have run, by project and name.
	Environments(ctx context.Context, filter holdfast.EnvironmentFilter) ([]holdfast.Environment, error)
	// RefreshEnvironment pins an environment to what the rules say now, with its runs that
	// wait; dry says only what would be. One without clusters has no runner after it.
	// ErrNotFound: it has not run, or no rule matches it.
	// A *holdfast.EnvironmentBusyError if one of its runs is running.
	RefreshEnvironment(
		ctx context.Context, env holdfast.EnvironmentKey, dry bool, trail ...holdfast.AuditEntry,
	) (before, after holdfast.Environment, err error)
}

// Listener is notified of what a Keeper finds.
type Listener struct {
	// Taken is notified of what is wrong with the documents at the head of a tracked branch.
	Taken func(ctx context.Context, repo string, head holdfast.Revision, faults holdfast.Faults) error
	// Moved is notified of runs that wait for another runner than before.
	Moved func(ctx context.Context)
}

// Options are what a Keeper needs. All are required unless noted.
type Options struct {
	Store Store
	// Allow returns why a repository may not define a runner or a rule.
	Allow func(repo string, doc runnerdoc.Document) error
	// Moves returns which of the clusters have their states where a runner keeps them, and
	// would have them elsewhere with one that keeps them in one of the storages.
	Moves        func(ctx context.Context, clusters []string, storages ...*holdfast.StateStorage) ([]holdfast.StateMigration, error)
	Repositories []string // those that are watched
	Sources      Sources
	Listener     Listener
	Logger       *slog.Logger
	Now          func() time.Time
}

// Keeper keeps the records of runners. It is safe for concurrent use.
type Keeper struct {
	opts Options

	mu   sync.Mutex      // one tree is taken in at a time: names are the fleet's
	said map[string]tree // what each repository says whose documents have faults, as it was last taken in
}

// NewKeeper returns a Keeper that has taken in nothing.
func NewKeeper(opts Options) *Keeper { return &Keeper{opts: opts, said: make(map[string]tree)} }

// tree is what a tree of a repository says of runners and rules.
type tree struct {
	repo     string
	revision holdfast.Revision // empty: of a pull request
	docs     []runnerdoc.Document
	unnamed  holdfast.Faults // of documents without a name
	spoiled  func(path string) bool
}

func treeOf(cat *catalog.Catalog, revision holdfast.Revision) tree {
	t := tree{repo: cat.Repo, revision: revision}
	unread := make(map[string]bool)
	for _, file := range cat.RunnerFiles() {
		t.docs = append(t.docs, file.Runners...)
		t.unnamed = append(t.unnamed, file.RunnerFaults...)
		unread[file.Path] = len(file.RunnerFaults) > 0
	}
	t.spoiled = func(path string) bool { return unread[path] || cat.Spoiled(path) }
	return t
}

// Take makes the records say what a revision of a tracked branch says of runners and rules.
// What it brings may settle what was wrong with those of other repositories.
func (k *Keeper) Take(ctx context.Context, revision holdfast.Revision, cat *catalog.Catalog) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	news, err := k.take(ctx, treeOf(cat, revision))
	if err != nil {
		return err
	}
	for news { // at most as often as there are documents at fault
		news = false
		for repo, said := range k.said {
			if repo == cat.Repo {
				continue
			}
			more, err := k.take(ctx, said)
			if err != nil {
				return err
			}
			news = news || more
		}
	}
	return nil
}

// Again reads again what has faults: states that were in the way may have been migrated.
func (k *Keeper) Again(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, said := range k.said {
		if _, err := k.take(ctx, said); err != nil {
			return err
		}
	}
	return nil
}

// take reads one tree, and reports whether something is in force that was not before.
func (k *Keeper) take(ctx context.Context, said tree) (news bool, err error) {
	for again := false; ; again = true {
		is, err := k.known(ctx)
		if err != nil {
			return false, err
		}
		v, err := k.judge(ctx, said, is)
		if err != nil {
			return false, err
		}
		if delete(k.said, said.repo); len(v.faults) > 0 {
			k.said[said.repo] = said
		}
		if err := k.opts.Listener.Taken(ctx, said.repo, said.revision, v.faults); err != nil {
			return false, fmt.Errorf("show what is wrong with the runners of %s: %w", said.repo, err)
		}
		if v.change.Empty() {
			return false, nil
		}
		switch err := k.opts.Store.SaveRunners(ctx, v.change, v.trail...); {
		case errors.Is(err, holdfast.ErrConflict) && !again:
			continue // an environment was pinned, or a name taken, since it was judged
		case err != nil:
			return false, fmt.Errorf("record what %s says of runners: %w", said.repo, err)
		}
		for _, entry := range v.trail {
			k.opts.Logger.InfoContext(ctx, "runners have changed", "repo", said.repo, "revision", said.revision,
				"action", entry.Action, "object", entry.Object, "detail", entry.Detail)
		}
		return v.news, nil
	}
}

// known is what is on record.
type known struct {
	runners      []runnerspec.Record
	rules        []runnerspec.RuleRecord
	environments []holdfast.Environment
}

func (k *Keeper) known(ctx context.Context) (is known, err error) {
	if is.runners, err = k.opts.Store.Runners(ctx); err != nil {
		return is, err
	}
	if is.rules, err = k.opts.Store.RunnerRules(ctx); err != nil {
		return is, err
	}
	is.environments, err = k.opts.Store.Environments(ctx, holdfast.EnvironmentFilter{})
	return is, err
}

func (is known) runner(name string) (runnerspec.Record, bool) {
	i := slices.IndexFunc(is.runners, func(r runnerspec.Record) bool { return r.Document.Name == name })
	if i < 0 {
		return runnerspec.Record{}, false
	}
	return is.runners[i], true
}

func (is known) rule(name string) (runnerspec.RuleRecord, bool) {
	i := slices.IndexFunc(is.rules, func(r runnerspec.RuleRecord) bool { return r.Document.Name == name })
	if i < 0 {
		return runnerspec.RuleRecord{}, false
	}
	return is.rules[i], true
}

// Faults returns what is wrong with the documents of tracked branches that are in force no
// longer, or not yet, in short sentences, sorted.
func (k *Keeper) Faults() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for repo := range k.said {
		out = append(out, fmt.Sprintf("runners of repository %s are not all as its branch says: holdfast get runners", repo))
	}
	slices.Sort(out)
	return out
}
