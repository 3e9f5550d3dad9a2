package agenda

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// Look is a look at a repository's tracked branch, or at one of its pull requests.
type Look struct {
	Repo   string
	Number int // of the pull request; zero: the tracked branch
	// Known: the pull request itself has not changed, only what it is merged
	// with or what we show of it; the forge need not be asked.
	Known bool
}

// Store are the records that tell what follows from a change; *datastore.Store is one.
type Store interface {
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
	PullRequests(ctx context.Context, filter holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error)
}

// Kin knows which clusters depend on one.
type Kin interface {
	Dependents(ctx context.Context, cluster string) ([]holdfast.Relation, error)
}

// Options are what an Agenda needs. All are required.
type Options struct {
	Store  Store
	Kin    Kin
	Show   func(ref holdfast.PullRequestRef) // has what a pull request shows made true
	Logger *slog.Logger
}

// Agenda is what is to be looked at. It is safe for concurrent use.
type Agenda struct {
	opts     Options
	looks    *queue.Lanes[Look] // by repository
	requests *queue.Queue[holdfast.Request]
	asking   *queue.Lanes[asking] // by the repository whose host is asked
}

// New returns an empty Agenda.
func New(opts Options) *Agenda {
	return &Agenda{
		opts:  opts,
		looks: queue.NewLanes(func(l Look) string { return l.Repo }), requests: queue.New[holdfast.Request](),
		asking: queue.NewLanes(func(of asking) string { return of.repo }),
	}
}

// Look asks for a look. It never blocks.
func (a *Agenda) Look(l Look) { a.looks.Add(l) }

// LookAfter asks for a look later.
func (a *Agenda) LookAfter(l Look, wait time.Duration) { a.looks.AddAfter(l, wait) }

// Request asks for a decision. It never blocks.
func (a *Agenda) Request(req holdfast.Request) { a.requests.Add(req) }

// RequestCluster asks for the decision about a cluster's tracked branch.
func (a *Agenda) RequestCluster(name string) { a.Request(holdfast.Request{Cluster: name}) }

// RequestAfter asks for a decision later.
func (a *Agenda) RequestAfter(req holdfast.Request, wait time.Duration) {
	a.requests.AddAfter(req, wait)
}

// RequestPatiently asks for a decision that keeps no other waiting.
func (a *Agenda) RequestPatiently(req holdfast.Request) { a.requests.AddPatient(req) }

// quickly is how many clusters one change may bring and have decided about before
// others: a change of more does not keep them waiting.
const quickly = 100

// RequestAll asks for the decisions that one change made necessary.
func (a *Agenda) RequestAll(requests []holdfast.Request) {
	for _, req := range requests {
		if len(requests) > quickly {
			a.RequestPatiently(req)
		} else {
			a.Request(req)
		}
	}
}

// RequestOpen asks for the cluster at each open pull request that touches it.
func (a *Agenda) RequestOpen(ctx context.Context, cluster string) error {
	open, err := a.opts.Store.PullRequests(ctx, holdfast.PullRequestFilter{
		States: []holdfast.PullRequestState{holdfast.PullRequestOpen}, Cluster: cluster, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list pull requests of %q: %w", cluster, err)
	}
	for _, pr := range open {
		a.Request(holdfast.Request{Cluster: cluster, PullRequest: pr.PullRequestRef})
	}
	return nil
}

// RequestRelated asks for the clusters that may wait for one, once it is settled,
// has failed, or is gone, or no longer depends on them.
func (a *Agenda) RequestRelated(ctx context.Context, before, after holdfast.ClusterRecord) error {
	if err := a.requestDependents(ctx, before, after); err != nil {
		return err
	}
	gone := after.Deletion != nil && before.Deletion == nil
	for _, parent := range before.Parents() {
		if gone || !slices.Contains(after.Parents(), parent) {
			a.RequestCluster(parent)
		}
	}
	return nil
}

func (a *Agenda) requestDependents(ctx context.Context, before, after holdfast.ClusterRecord) error {
	was, is := decision.RelationOf(before), decision.RelationOf(after)
	if was.Settled == is.Settled && was.Failed == is.Failed && was.Waiting == is.Waiting && (before.Deletion == nil) == (after.Deletion == nil) {
		return nil
	}
	dependents, err := a.opts.Kin.Dependents(ctx, after.Name)
	if err != nil {
		return err
	}
	for _, d := range dependents {
		a.RequestCluster(d.Name)
		if is.Settled {
			if err := a.RequestOpen(ctx, d.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// FollowUp asks for everything that a run's change of status may bear on. A run of a pull
// request that begins is only shown: nothing is decided until it ends. What puts a state
// right bears on all pull requests of its cluster.
func (a *Agenda) FollowUp(ctx context.Context, run holdfast.Run) {
	if run.Status == holdfast.RunRunning && !run.PullRequest.IsZero() {
		a.opts.Show(run.PullRequest)
		return
	}
	a.Request(holdfast.Request{Cluster: run.Cluster, PullRequest: run.PullRequest})
	if !run.PullRequest.IsZero() && run.Kind.Plans() {
		return
	}
	for _, review := range run.Reviews {
		if !review.PullRequest.IsZero() {
			a.opts.Show(review.PullRequest)
		}
	}
	if !run.Begun && run.Kind.Plans() || !run.Status.Done() {
		return
	}
	if err := a.RequestOpen(ctx, run.Cluster); err != nil {
		a.opts.Logger.WarnContext(ctx, "open pull requests were not queued", "cluster", run.Cluster, "err", err)
	}
}

// FollowHold asks again for everything that shows waiting runs of a provider.
func (a *Agenda) FollowHold(ctx context.Context, provider string) error {
	waiting, err := a.opts.Store.Runs(ctx, holdfast.RunFilter{
		Statuses: []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRetrying}, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list queued runs: %w", err)
	}
	for _, run := range waiting {
		switch {
		case run.Document.Provider != provider:
		case run.PullRequest.IsZero():
			a.RequestCluster(run.Cluster)
		default:
			a.opts.Show(run.PullRequest)
		}
	}
	return nil
}
