package publish

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/replica"
)

// Options are what a Publisher needs. All are required.
type Options struct {
	Store  Store
	Git    Git
	Forges map[string]Forge // by repository name
	// Repositories are those that are watched, with whether they publish templates.
	Repositories map[string]bool
	Fleet        Fleet
	Settings     Settings
	Watcher      Watcher
	Logger       *slog.Logger
}

// Settings are what may differ from one installation to the next.
type Settings struct {
	Identity   string // names this replica in claims of posts
	MaxRetries int    // of an attempt that failed for a transient cause; negative: none
	MaxIssues  int    // open drift issues in a repository, besides the one that sums up; negative: only that one
	// PolicyStatus: what policies say is a separate status.
	PolicyStatus bool
	LogURL       func(run string) string // nil: comments name runs without a link
	// PullRequestURL returns what statuses link to; nil: nothing.
	PullRequestURL func(ref holdfast.PullRequestRef) string
	Labels         func(repo string) bool // whether its pull requests get labels; nil: none do
	Now            func() time.Time
	// Leads reports whether this replica writes to a repository; what is asked of the one
	// that does goes by HandOver. Nil: it writes to all.
	Leads    func(repo string) bool
	HandOver func(ctx context.Context, ask replica.Ask) error
}

// Publisher keeps what the forges show. Its methods are safe for concurrent use.
type Publisher struct {
	*outbox
	*viewer
	*issues
	*pushes
	*documents
	opts  Options
	shows *queue.Lanes[showKey]

	mu            sync.Mutex                            // guards what follows
	lastCommentAt map[holdfast.PullRequestRef]time.Time // when a comment last got new content
	working       map[holdfast.PullRequestRef]workLook  // those that are being planned or applied
	statusesEnded map[holdfast.PullRequestRef]headState // heads for which no status of an older head is left to be ended
}

// outbox brings to the forges what is wanted there.
type outbox struct {
	opts  Options
	shows *queue.Lanes[showKey]
	posts *queue.Broadcast // the outbox has something new

	strangers *posting // repositories that are not configured here and have posts
}

// viewer gathers from the records what people are shown.
type viewer struct {
	opts  Options
	began time.Time // when this process did
	plans *shownPlans
}

// issues show people drift outside of pull requests.
type issues struct {
	*outbox
	opts   Options
	drifts *queue.Queue[issueKey]

	mu         sync.Mutex
	issueState map[string]issuesWritten // by repository
}

// pushes are the statuses of commits that were pushed without a pull request.
type pushes struct {
	*outbox
	*viewer
	opts  Options
	shows *queue.Lanes[showKey]

	mu        sync.Mutex
	checkedAt map[showKey]pushLook // when the status of a commit with many clusters was looked at
}

// New returns a Publisher.
func New(opts Options) *Publisher {
	if opts.Settings.Leads == nil {
		opts.Settings.Leads = func(string) bool { return true }
	}
	shows := queue.NewLanes(showKey.repository)
	out := &outbox{opts: opts, shows: shows, posts: queue.NewBroadcast(), strangers: newPosting()}
	views := &viewer{opts: opts, began: opts.Settings.Now(), plans: newShownPlans(opts.Fleet, plansKept)}
	return &Publisher{
		outbox: out, viewer: views,
		issues:    &issues{outbox: out, opts: opts, drifts: queue.New[issueKey](), issueState: make(map[string]issuesWritten)},
		pushes:    &pushes{outbox: out, viewer: views, opts: opts, shows: shows, checkedAt: make(map[showKey]pushLook)},
		documents: &documents{outbox: out, opts: opts, heads: make(map[string]documentsOf)},
		opts:      opts, shows: shows,
		lastCommentAt: make(map[holdfast.PullRequestRef]time.Time),
		working:       make(map[holdfast.PullRequestRef]workLook),
		statusesEnded: make(map[holdfast.PullRequestRef]headState),
	}
}

// Run works off what was asked for, and posts what the outbox holds, until ctx is
// done.
func (p *Publisher) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.shows.Work(ctx, p.opts.Logger, 1, p.showHere) })
	g.Go(func() error { return queue.Work(ctx, p.opts.Logger, p.drifts, p.driftHere) })
	g.Go(func() error { return p.postAll(ctx) })
	return g.Wait()
}

// Busy reports whether something was asked for that is not in the outbox, or is there
// since a time or later, is worth waiting for, and was not tried yet: no reply and no
// reaction. It is for while Run runs.
func (p *Publisher) Busy(ctx context.Context, since time.Time) bool {
	if p.Asked() {
		return true
	}
	left, err := p.opts.Store.PostsLeft(ctx, p.opts.Settings.Now(), since)
	if err != nil && ctx.Err() == nil {
		p.opts.Logger.ErrorContext(ctx, "outbox was not read", "err", err)
	}
	return left > 0
}

// Asked reports whether something was asked for that is not in the outbox.
func (p *Publisher) Asked() bool { return p.shows.Busy() || p.drifts.Busy() }

// Close drops what is asked for; nothing more is taken.
func (p *Publisher) Close() {
	p.shows.Close()
	p.drifts.Close()
}

// Wake asks for a look at the outbox: another replica has written to it.
func (p *Publisher) Wake() { p.posts.Send() }

// Settle works off what was asked for until nothing is left but what is due
// later, as Run does all the time. It posts nothing.
func (p *Publisher) Settle(ctx context.Context) error {
	for {
		switch {
		case p.shows.Depth() > 0:
			if _, err := p.shows.Step(ctx, p.showHere); err != nil {
				return err
			}
		case p.drifts.Depth() > 0:
			if err := queue.Step(ctx, p.drifts, p.driftHere); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}
