package reconciler

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/clock"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// What Run does all the time, done once.

// TakeIn looks at a repository, or at one of its pull requests, now.
func (r *Reconciler) TakeIn(ctx context.Context, repo string, number int) error {
	return r.intake.Take(ctx, agenda.Look{Repo: repo, Number: number})
}

// Settle works off what was asked for until nothing is left, as Run would, except for
// what is due later.
func (r *Reconciler) Settle(ctx context.Context) error {
	for {
		more, err := r.agenda.Step(ctx, peering{r}.take, peering{r}.decide)
		if err != nil {
			return err
		}
		switch {
		case more:
		case r.upgrades.Depth() > 0:
			if err := r.upgrades.Step(ctx); err != nil {
				return err
			}
		default:
			return r.publish.Settle(ctx)
		}
	}
}

// Show makes what a pull request shows true, now.
func (r *Reconciler) Show(ctx context.Context, ref holdfast.PullRequestRef) error {
	r.publish.Show(ref)
	return r.publish.Settle(ctx)
}

// ShowPush makes the status of a commit true that was pushed and waits, now.
func (r *Reconciler) ShowPush(ctx context.Context, repo string, revision holdfast.Revision) error {
	r.publish.Left(repo, revision)
	return r.publish.Settle(ctx)
}

// Sources returns how many looks are asked for.
func (r *Reconciler) Sources() int {
	looks, _ := r.agenda.Depths()
	return looks
}

// Reconciled makes one decision about a request, with its action.
func (r *Reconciler) Reconciled(ctx context.Context, req holdfast.Request) (decision.Decision, error) {
	return r.loop.Reconcile(ctx, req, nil)
}

// PollOnce polls one repository.
func (r *Reconciler) PollOnce(ctx context.Context, repo string) error {
	return r.intake.PollOnce(ctx, repo)
}

// Obey carries out the commands that are stored.
func (r *Reconciler) Obey(ctx context.Context) { r.commands.Pass(ctx) }

// Resume asks for everything on record.
func (r *Reconciler) Resume(ctx context.Context) {
	r.intake.Resume(ctx)
	r.commands.Pass(ctx)
}

// ResumeUnread asks for the clusters on record of repositories that were not taken in.
func (r *Reconciler) ResumeUnread(ctx context.Context) { r.intake.ResumeUnread(ctx) }

// Post works off the outbox once.
func (r *Reconciler) Post(ctx context.Context) (int, error) { return r.publish.Post(ctx) }

// Sweep looks at the leases once, as if the signs of life that were seen before
// had been seen ago earlier.
func (r *Reconciler) Sweep(ctx context.Context, ago time.Duration) error {
	r.dispatcher.Age(ago)
	return r.dispatcher.Sweep(ctx)
}

// WatchClock returns what a look at the leases does about a clock that was set back.
func (r *Reconciler) WatchClock(ctx context.Context) (look func()) {
	watch := clock.NewWatch(r.opts.Now)
	return func() { r.seeClock(ctx, watch) }
}

// HoldDecisions keeps decisions about a cluster from being made, as one does that waits
// for a code host.
func (r *Reconciler) HoldDecisions(cluster string) (unlock func()) {
	return r.deciding.Lock(holdfast.Request{Cluster: cluster})
}

// DriftPass queues the checks that are due, if this replica may.
func (r *Reconciler) DriftPass(ctx context.Context) (time.Duration, error) { return r.drift.Pass(ctx) }

// Woken is what another replica's word does.
func (r *Reconciler) Woken(topic string) { r.woken(topic) }

// HurryUpgrades has upgrades looked at as often as it is asked for.
func (r *Reconciler) HurryUpgrades() { r.upgrades.Pace(0) }

// LookAtUpgrades looks at the upgrades of a repository now.
func (r *Reconciler) LookAtUpgrades(ctx context.Context, repo string) error {
	return r.upgrades.Look(ctx, repo)
}

// UpgradesNow is LookAtUpgrades without a lease, as of a replica whose lease has
// ended while it worked.
func (r *Reconciler) UpgradesNow(ctx context.Context, repo string) error {
	return r.upgrades.LookAnyway(ctx, repo)
}

// NoMetrics hears of nothing.
var NoMetrics Metrics = noMetrics{}

// LeadsRepository reports whether this replica leads a repository.
func (r *Reconciler) LeadsRepository(repo string) bool { return r.leader.Leads(repo) }

// HasPeers reports whether other replicas lived a moment ago.
func (r *Reconciler) HasPeers() bool { return r.leader.Others() }

// Again takes in again the documents of runners that have faults.
func (r *Reconciler) Again(ctx context.Context) error { return r.runners.Again(ctx) }
