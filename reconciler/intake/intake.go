package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/comparison"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/reconciler/places"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/reconciler/record"
	"github.com/holdfast-dev/holdfast/reconciler/trace"
)

// Repository is a repository that is taken in.
type Repository struct {
	Name      string
	Branch    string        // the tracked branch
	Publishes bool          // it releases templates by tags
	Policies  bool          // policies are read from it
	Runners   bool          // it may define runners and rules
	Local     bool          // it has no refs/pull: a pull request's head is a branch
	Forks     bool          // plan pull requests from forks: their code is executed
	Drafts    bool          // plan drafts too
	Poll      time.Duration // spread by ±20 %
}

// Options are what an Intake needs. All are required.
type Options struct {
	Store   Store
	Sources Sources
	Rooms   Rooms
	Peers   Peers
	Leading Leading // who looks at what
	Logger  *slog.Logger
	Now     func() time.Time
}

// Sources are where the desired state of the fleet is written.
type Sources struct {
	Git          Git
	Forges       map[string]Forge // by repository
	Repositories []Repository
}

// Rooms are the small rooms that an Intake shares with others.
type Rooms struct {
	Catalogs *catalog.Reader
	Lineage  *lineage.Reader
	Records  *record.Writer
	Agenda   *agenda.Agenda
	Places   *places.Keeper
	Traces   *trace.Memory
	Looking  *queue.Locks // looks at one pull request are made in turn
}

// Peers are the rooms that hear of what was taken in.
type Peers struct {
	Publisher Publisher
	Impacts   Impacts
	Runners   Runners
	Gates     Gates
	Upgrades  Upgrades
	Commands  Commands
}

// Intake records what repositories say. It is safe for concurrent use.
type Intake struct {
	shared
	branches     *branches
	pullRequests *pullRequests
	poller       *poller
}

// shared is what the parts of an Intake have in common.
type shared struct {
	Rooms
	Peers
	opts     Options
	repos    map[string]Repository
	mirror   *mirror
	marks    *marks
	origins  *origins
	compared *comparison.Comparer
	failures *failures[holdfast.PullRequestRef] // open pull requests
	groups   *failures[groupKey]
	holds    *holds
	began    time.Time   // when this process did
	saving   *sync.Mutex // changes of what is remembered of a repository are made in turn
}

// New returns an Intake that has taken in nothing.
func New(opts Options) *Intake {
	s := shared{
		Rooms: opts.Rooms, Peers: opts.Peers, opts: opts, repos: make(map[string]Repository, len(opts.Sources.Repositories)),
		marks: newMarks(), origins: newOrigins(), saving: new(sync.Mutex),
		failures: newFailures[holdfast.PullRequestRef](), groups: newFailures[groupKey](), holds: newHolds(), began: opts.Now(),
	}
	publishes, judges := make(map[string]bool), make(map[string]bool)
	for _, repo := range opts.Sources.Repositories {
		s.repos[repo.Name], publishes[repo.Name], judges[repo.Name] = repo, repo.Publishes, repo.Policies
	}
	s.mirror = &mirror{
		git: opts.Sources.Git, now: opts.Now, publishes: publishes, retagged: s.tagsMoved, failed: s.marks.progress.Send,
		judges: judges, judged: s.policiesMoved,
		outages: newOutages(), refs: make(map[string]holdfast.Refs),
	}
	s.compared = s.comparer()
	i := &Intake{shared: s, pullRequests: &pullRequests{s}}
	i.branches = &branches{shared: s, pullRequests: i.pullRequests}
	i.poller = &poller{shared: s, gained: queue.NewBroadcast(), comments: queue.NewTurns()}
	return i
}

// comparer compares trees by what is remembered of all tracked branches.
func (s shared) comparer() *comparison.Comparer {
	return comparison.New(comparison.Options{
		Store: s.opts.Store, Catalogs: s.Catalogs, Lineage: s.Lineage, Places: s.Places,
		HeirElsewhere: s.heirElsewhere, Waiting: s.marks.recheckIn,
	})
}

// Take looks at a repository's tracked branch, or at one of its pull requests.
func (i *Intake) Take(ctx context.Context, look agenda.Look) error {
	repo, ok := i.repos[look.Repo]
	if !ok {
		return nil
	}
	began, delivery := time.Now(), i.Traces.Of(look.Repo, look.Number)
	var err error
	if look.Number != 0 {
		err = i.pullRequests.take(ctx, repo, look.Number, look.Known)
	} else {
		err = i.takeBranch(ctx, repo)
	}
	if delivery != "" { // polls find nothing most of the time, and are not traced
		i.Traces.Since(delivery, "take in", began, map[string]string{"repo": look.Repo}, err)
	}
	return err
}

// takeBranch looks at a tracked branch and at its merge queue, which does not wait for a
// branch that cannot be taken in.
func (i *Intake) takeBranch(ctx context.Context, repo Repository) error {
	err := i.branches.take(ctx, repo)
	if err != nil {
		i.saveError(ctx, repo.Name, err)
	}
	i.opts.Leading.Fetched(ctx, repo.Name, i.mirror.last(repo.Name))
	waits, groupErr := i.pullRequests.judgeGroups(ctx, repo)
	if waits && err == nil { // after an error the branch is looked at again in any case
		i.Agenda.LookAfter(agenda.Look{Repo: repo.Name}, groupLook)
	}
	return errors.Join(err, groupErr)
}

// Poll asks for everything again in a rhythm until ctx is done, at first for what is
// on record.
func (i *Intake) Poll(ctx context.Context) error { return i.poller.run(ctx) }

// PollOnce polls one repository, if this replica holds its lease.
func (i *Intake) PollOnce(ctx context.Context, repo string) error {
	return i.poller.pollOnce(ctx, i.repos[repo])
}

// Resume asks for every cluster on record of the repositories that this replica leads, and
// for every pull request of which the code host says something else.
func (i *Intake) Resume(ctx context.Context) {
	for name, repo := range i.repos {
		if i.opts.Leading.Leads(name) {
			i.poller.resumePullRequests(ctx, repo)
			i.poller.resumeClusters(ctx, name)
		}
	}
}

// ResumeAfter is Resume after another replica has died, with what that may have learned of
// pull requests that are not recorded yet.
func (i *Intake) ResumeAfter(ctx context.Context) {
	for name, repo := range i.repos {
		if err := i.poller.pollOnce(ctx, repo); err != nil && ctx.Err() == nil {
			i.opts.Logger.WarnContext(ctx, "repository was not polled after the death of a replica", "repo", name, "err", err)
		}
	}
	i.Resume(ctx)
}

// ResumeUnread asks for what is on record of the repositories that were not taken in.
func (i *Intake) ResumeUnread(ctx context.Context) {
	for repo := range i.repos {
		i.poller.resumeUnread(ctx, repo)
	}
}

// Ready reports whether every repository was taken in once; the names of those
// that were not, otherwise. One that cannot be fetched, or has not answered for a while,
// hinders only its own clusters, if there are others.
func (i *Intake) Ready() (missing []string) {
	missing, _ = i.unread()
	return missing
}

// PassedBy are the repositories that were not read and are not waited for.
func (i *Intake) PassedBy() []string {
	_, passedBy := i.unread()
	return passedBy
}

// Progress is how far the first reading of a repository is, in words; empty if that is not
// known.
func (i *Intake) Progress(repo string) string { return i.marks.tallyOf(repo) }

// answerPatience is how long to wait for a repository whose fetch has not ended.
const answerPatience = 15 * time.Second

func (i *Intake) unread() (missing, passedBy []string) {
	late := i.opts.Now().Sub(i.began) > answerPatience
	waited := slices.DeleteFunc(slices.Sorted(maps.Keys(i.repos)), func(repo string) bool {
		return i.marks.wasReady(repo, i.opts.Leading.Taken)
	})
	alone := len(waited) == len(i.repos)
	for _, name := range waited {
		_, failed := i.mirror.outages.of(name, time.Time{})
		silent := late && i.mirror.last(name) == nil
		if !alone && (failed != nil || silent) {
			passedBy = append(passedBy, name)
		} else {
			missing = append(missing, name)
		}
	}
	return missing, passedBy
}

// Seen reports whether whoever leads a repository has taken it in since then.
func (i *Intake) Seen(repo string) bool { return i.seen(repo) }

func (s shared) seen(repo string) bool {
	if s.opts.Leading.Leads(repo) {
		return s.marks.isReady(repo)
	}
	return s.opts.Leading.Taken(repo)
}

// firstLook is how long what was queued before this process began waits for its repository.
// A host that is unavailable for longer holds up no apply, and another replica may be the
// one that reads it.
const firstLook = time.Minute

// Awaited reports whether a repository is about to be taken in for the first time.
func (i *Intake) Awaited(repo string) bool {
	return !i.seen(repo) && i.opts.Now().Sub(i.began) < firstLook
}

// AllAwaited returns the repositories for which Awaited holds.
func (i *Intake) AllAwaited() []string {
	if i.opts.Now().Sub(i.began) >= firstLook {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(i.repos)), i.seen)
}

// Refs returns the branches and tags of a repository as they were last fetched; nil
// if they were not.
func (i *Intake) Refs(repo string) holdfast.Refs { return i.mirror.last(repo) }

// KnownRefs is Refs, but fetches a repository that was not fetched.
func (i *Intake) KnownRefs(ctx context.Context, repo string) (holdfast.Refs, error) {
	return i.mirror.known(ctx, repo)
}

// Tracked returns what the tracked branch of a repository says, and its head; nil if
// there is no such branch.
func (i *Intake) Tracked(ctx context.Context, name string) (*catalog.Catalog, holdfast.Revision, error) {
	refs, err := i.mirror.known(ctx, name)
	if err != nil {
		return nil, "", err
	}
	head := refs["refs/heads/"+i.repos[name].Branch]
	if head == "" {
		return nil, "", nil
	}
	cat, err := i.Catalogs.Read(ctx, name, string(head))
	return cat, head, err
}

// Foresee says what a pull request that turns one tree into another would change, with
// what is wrong with it.
func (i *Intake) Foresee(ctx context.Context, from, to *catalog.Catalog) (holdfast.PullRequestRecord, error) {
	var rec holdfast.PullRequestRecord
	rec.Repo = to.Repo
	if err := i.compared.Compare(ctx, from, to, &rec); err != nil {
		return rec, fmt.Errorf("foresee what a change of %s would be: %w", to.Repo, err)
	}
	return rec, nil
}

// LookAgain asks for a look at a repository although its head has not moved.
func (i *Intake) LookAgain(repo string) {
	i.marks.setRelook(repo)
	i.Agenda.Look(agenda.Look{Repo: repo})
}

// Recheck asks for a look at one cluster of a repository although its head has not
// moved.
func (i *Intake) Recheck(repo, cluster string) {
	i.marks.addRecheck(repo, cluster)
	i.LookAgain(repo)
}

// tagsMoved asks for another look at every cluster that names a template's version
// which one of the tags may release: it may exist now, or be another one.
func (s shared) tagsMoved(tags catalog.TagSet) {
	s.Catalogs.ForgetVersions(tags)
	for name := range s.repos {
		if s.opts.Leading.Leads(name) { // replicas that see the tags take care of the others
			s.marks.addRetagged(name, tags)
			s.Agenda.Look(agenda.Look{Repo: name})
		}
	}
	s.Impacts.Again("")
}

func (s shared) openPullRequests(ctx context.Context, repo string) ([]holdfast.PullRequestRecord, error) {
	open, err := s.opts.Store.PullRequests(ctx, holdfast.PullRequestFilter{
		Repo: repo, States: []holdfast.PullRequestState{holdfast.PullRequestOpen}, Limit: 10_000,
	})
	if err != nil {
		return nil, fmt.Errorf("list open pull requests of %q: %w", repo, err)
	}
	return open, nil
}

// saveRepositoryState changes some of what is remembered of a repository: polling and
// taking in write side by side.
func (s shared) saveRepositoryState(ctx context.Context, repo string, change func(*holdfast.RepositoryState)) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	source, err := s.opts.Store.RepositoryState(ctx, repo)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read source %q: %w", repo, err)
	}
	source.Repo = repo
	change(&source)
	if err := s.opts.Store.SaveRepositoryState(ctx, source); err != nil {
		return fmt.Errorf("record source %q: %w", repo, err)
	}
	return nil
}

func (s shared) saveError(ctx context.Context, repo string, cause error) {
	err := s.saveRepositoryState(ctx, repo, func(s *holdfast.RepositoryState) { s.LastError = cause.Error() })
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "source error was not recorded", "repo", repo, "err", err)
	}
}
