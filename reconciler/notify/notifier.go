package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// Store are the records; *datastore.Store is one.
type Store interface {
	Records
	Outbox
}

// Records are what notifications are about.
type Records interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	Run(ctx context.Context, id string) (holdfast.Run, error)
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
}

// Outbox is what is to be sent, and what was.
type Outbox interface {
	// Notify stores what is not on record yet, to be claimed after a delay, and reports
	// how much that is.
	Notify(ctx context.Context, delay time.Duration, notifications ...outgoing.Notification) (int, error)
	// ClaimNotifications returns what waits for a channel and is due, the oldest first, and
	// hides it from other claims for ttl.
	ClaimNotifications(ctx context.Context, channel string, ttl time.Duration, limit int) ([]outgoing.Notification, error)
	Outcomes
}

// Outcomes end claims.
type Outcomes interface {
	NotificationsSent(ctx context.Context, ids ...string) error
	// NotificationsFailed ends the claim of those with the ids. It defers everything that waits
	// for the channel until notBefore, and gives up what has waited for longer than patience.
	// It returns how many of each. What other replicas have claimed stays claimed.
	NotificationsFailed(ctx context.Context, channel, cause string, notBefore time.Time, patience time.Duration, ids ...string) (waiting, givenUp int, err error)
	// ForgetNotifications removes what was sent and was not noticed since a time.
	ForgetNotifications(ctx context.Context, before time.Time) error
}

// Sender sends notifications to a channel, and returns how many were sent, from the first
// on. An error may be a *holdfast.RateLimitError, which says when to come again.
type Sender interface {
	Send(ctx context.Context, notifications []outgoing.Notification) (sent int, err error)
}

// Channel is who is notified, and of what.
type Channel struct {
	Name   string
	Events []outgoing.NotificationEvent // none: all
	Wants  func(project, environment string) bool
	Sender Sender
}

// Options are what a Notifier needs. All are required unless noted.
type Options struct {
	Store    Store
	Channels []Channel
	RunURL   func(run string) string // nil: messages have no link
	Logger   *slog.Logger
	Now      func() time.Time
}

// Notifier notifies channels of what has happened. Its methods are safe for concurrent use.
type Notifier struct {
	opts  Options
	looks *queue.Queue[string] // clusters that something was decided about
	wake  *queue.Broadcast     // there is something new in the outbox

	mu       sync.Mutex
	problems map[string]outgoing.ChannelProblem // by channel
}

// New returns a Notifier.
func New(opts Options) *Notifier {
	return &Notifier{
		opts: opts, looks: queue.New[string](), wake: queue.NewBroadcast(),
		problems: make(map[string]outgoing.ChannelProblem),
	}
}

// Decided asks for a look at a cluster after a decision on the tracked branch.
func (n *Notifier) Decided(in decision.Input) {
	if n != nil && in.PullRequest == nil && in.Cluster.Name != "" {
		n.looks.Add(in.Cluster.Name)
	}
}

const (
	together   = 2 * time.Second  // how long something new waits for more, to share one message
	lookEvery  = 5 * time.Second  // for what other replicas have written, and what is due again
	claimLease = 20 * time.Minute // of a claim: as long as a slow host may take for all of it
	atOnce     = 100              // notifications of a claim
	firstPause = 10 * time.Second // after a failure, doubling
	mostPause  = time.Hour
	patience   = 24 * time.Hour // what is older is of no interest, and is given up
	kept       = 30 * 24 * time.Hour
)

// Run looks and sends until ctx is done.
func (n *Notifier) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return queue.Work(ctx, n.opts.Logger, n.looks, n.look) })
	for _, channel := range n.opts.Channels { // a slow one keeps no other waiting
		g.Go(func() error { return n.sendAll(ctx, channel) })
	}
	g.Go(func() error { return n.forget(ctx) })
	return g.Wait()
}

// look writes down what there is to send about a cluster.
func (n *Notifier) look(ctx context.Context, name string) error {
	seen, err := n.observe(ctx, name)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrDamaged) {
		return nil // there is nothing to say of it now
	} else if err != nil {
		return fmt.Errorf("look at cluster %q: %w", name, err)
	}
	var all []outgoing.Notification
	for _, fact := range facts(seen) {
		if n.opts.RunURL != nil && fact.Run != "" {
			fact.URL = n.opts.RunURL(fact.Run)
		}
		for _, c := range n.opts.Channels {
			if outgoing.HasNotificationEvent(c.Events, fact.Event) && c.Wants(fact.Project, fact.Environment) {
				n := fact
				n.Channel, n.ID = c.Name, c.Name+"/"+fact.ID
				all = append(all, n)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	fresh, err := n.opts.Store.Notify(ctx, together, all...)
	if fresh > 0 {
		n.wake.Send()
	}
	return err
}

// observe reads what notifications of a cluster are made of.
func (n *Notifier) observe(ctx context.Context, name string) (seen observed, err error) {
	seen.now = n.opts.Now()
	if seen.cluster, err = n.opts.Store.Cluster(ctx, name); err != nil {
		return seen, err
	}
	if id := seen.cluster.Applied.Run; id != "" && seen.lately(seen.cluster.Applied.At) {
		if seen.applied, err = n.opts.Store.Run(ctx, id); err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return seen, err
		}
	}
	if seen.cluster.Waiting == "" {
		return seen, nil
	}
	newest, err := n.opts.Store.Runs(ctx, holdfast.RunFilter{
		Cluster: name, PullRequest: &holdfast.PullRequestRef{}, Limit: 1,
		Kinds: []holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply, holdfast.RunDestroy},
	})
	if len(newest) > 0 {
		seen.newest = newest[0]
	}
	return seen, err
}

// sendAll sends what waits for a channel, until ctx is done.
func (n *Notifier) sendAll(ctx context.Context, c Channel) error {
	failures := 0
	for {
		woken := n.wake.Wait()
		sent, err := n.sendSome(ctx, c, failures)
		if sent > 0 {
			failures = 0
		}
		if err != nil {
			failures++
		}
		wait := lookEvery
		if sent == atOnce && err == nil {
			wait = 0
		}
		select {
		case <-ctx.Done():
			return nil
		case <-woken:
			wait = together
		case <-time.After(wait):
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// sendSome sends what is due, and returns how much that was. What has failed is in the log
// and among the problems.
func (n *Notifier) sendSome(ctx context.Context, c Channel, failures int) (sent int, err error) {
	due, err := n.opts.Store.ClaimNotifications(ctx, c.Name, claimLease, atOnce)
	if err != nil {
		if ctx.Err() == nil {
			n.opts.Logger.ErrorContext(ctx, "notifications were not read", "channel", c.Name, "err", err)
		}
		return 0, nil // the next look says more
	}
	if len(due) == 0 {
		return 0, nil
	}
	ctx, done := queue.Begun(ctx)
	defer done()
	sent, failure := c.Sender.Send(ctx, due)
	ids := make([]string, len(due))
	for i := range ids {
		ids[i] = due[i].ID
	}
	if sent > 0 {
		if err := n.opts.Store.NotificationsSent(ctx, ids[:sent]...); err != nil {
			n.opts.Logger.ErrorContext(ctx, "notifications were sent, and that is not on record", "channel", c.Name, "err", err)
		}
	}
	if failure != nil {
		return sent, n.failed(ctx, c, failure, failures, ids[sent:])
	}
	n.worked(ctx, c)
	return sent, nil
}

// failed puts off what waits for a channel.
func (n *Notifier) failed(ctx context.Context, c Channel, cause error, failures int, ids []string) error {
	now := n.opts.Now()
	pause := queue.Backoff(firstPause, failures, mostPause)
	if limited := (*holdfast.RateLimitError)(nil); errors.As(cause, &limited) {
		pause = max(limited.Wait, time.Second)
	}
	waiting, givenUp, err := n.opts.Store.NotificationsFailed(ctx, c.Name, cause.Error(), now.Add(pause), patience, ids...)
	if err != nil {
		n.opts.Logger.ErrorContext(ctx, "failed notifications are not on record", "channel", c.Name, "err", err)
	}
	n.mu.Lock()
	problem, known := n.problems[c.Name]
	if !known {
		problem = outgoing.ChannelProblem{Channel: c.Name, Since: now}
	}
	problem.Waiting, problem.Detail = waiting, cause.Error()
	n.problems[c.Name] = problem
	n.mu.Unlock()
	n.opts.Logger.WarnContext(ctx, "notifications were not sent", "channel", c.Name, "err", cause, "since", problem.Since,
		"waiting", waiting, "given_up", givenUp, "retry_in", pause)
	return cause
}

func (n *Notifier) worked(ctx context.Context, c Channel) {
	n.mu.Lock()
	problem, had := n.problems[c.Name]
	delete(n.problems, c.Name)
	n.mu.Unlock()
	if had {
		n.opts.Logger.InfoContext(ctx, "notifications are sent again", "channel", c.Name, "since", problem.Since)
	}
}

// Problems are the channels that this process cannot reach, by name.
func (n *Notifier) Problems() []outgoing.ChannelProblem {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []outgoing.ChannelProblem
	for _, c := range n.opts.Channels {
		if problem, ok := n.problems[c.Name]; ok {
			all = append(all, problem)
		}
	}
	return slices.Clip(all)
}

// forget removes what is old, now and then.
func (n *Notifier) forget(ctx context.Context) error {
	for {
		if err := n.opts.Store.ForgetNotifications(ctx, n.opts.Now().Add(-kept)); err != nil && ctx.Err() == nil {
			n.opts.Logger.ErrorContext(ctx, "old notifications were not removed", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Hour):
		}
	}
}
