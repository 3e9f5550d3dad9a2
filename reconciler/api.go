package reconciler

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/reconciler/places"
	"github.com/holdfast-dev/holdfast/reconciler/rescue"
	"github.com/holdfast-dev/holdfast/rollout"
)

// What the server asks of the rooms.

// Dispatcher hands runs to agents and records how they end.
func (r *Reconciler) Dispatcher() *dispatch.Dispatcher { return r.dispatcher }

// Rescue returns the part that resolves states that engines could not save.
func (r *Reconciler) Rescue() *rescue.Keeper { return r.rescue }

// States puts states right, and moves them.
type States struct {
	*rescuer
	*placer
}

type (
	rescuer = rescue.Keeper
	placer  = places.Keeper
)

// States returns the parts that resolve states and that move them.
func (r *Reconciler) States() States { return States{r.rescue, r.places} }

// CommandStored says that a command is in the store. It never blocks.
func (r *Reconciler) CommandStored() { r.commands.CommandStored() }

// Command stores a command that came through the API and executes it.
func (r *Reconciler) Command(ctx context.Context, c holdfast.Command) (holdfast.Command, error) {
	return r.commands.Command(ctx, c)
}

// PlannedRun returns the run whose plan an apply of a cluster would be of if a person asked
// for one now; empty if no plan waits.
func (r *Reconciler) PlannedRun(ctx context.Context, cluster string) (string, error) {
	return r.loop.PlannedRun(ctx, cluster)
}

// PullRequestGates returns what an apply of an open pull request requires, by cluster: see
// publish.Publisher.
func (r *Reconciler) PullRequestGates(ctx context.Context, pr holdfast.PullRequestRecord) (map[string][]holdfast.Gate, error) {
	return r.publish.Gates(ctx, pr)
}

// Reconcile asks for another look: at a repository, at a cluster, or, with
// neither, at everything.
func (r *Reconciler) Reconcile(ctx context.Context, repo, cluster string) error {
	return r.operator.Reconcile(ctx, repo, cluster)
}

// Suspend stops new applies, destroys and drift checks of a cluster: see
// commands.Operator.
func (r *Reconciler) Suspend(
	ctx context.Context, cluster string, suspended bool, actor, reason string,
) (holdfast.ClusterRecord, error) {
	return r.operator.Suspend(ctx, cluster, suspended, actor, reason)
}

// SuspendAll stops them of all clusters of a project, or of all: see commands.Operator.
func (r *Reconciler) SuspendAll(ctx context.Context, s holdfast.Suspension, suspended bool) error {
	return r.operator.SuspendAll(ctx, s, suspended)
}

// Transfer gives a cluster to another repository, which defines it already.
// ErrConflict if it does not, or if a run is running.
func (r *Reconciler) Transfer(ctx context.Context, cluster, repo, actor string) error {
	return r.operator.Transfer(ctx, cluster, repo, actor)
}

// Lock says who holds a cluster's lock, with the run and whether it is alive;
// ErrNotFound if nobody does.
func (r *Reconciler) Lock(ctx context.Context, cluster string) (
	holder holdfast.LockHolder, run holdfast.Run, alive bool, err error,
) {
	return r.operator.Lock(ctx, cluster)
}

// Unlock takes a cluster's lock from a run: see commands.Operator.
func (r *Reconciler) Unlock(ctx context.Context, cluster, actor string, force bool) error {
	return r.operator.Unlock(ctx, cluster, actor, force)
}

// CheckDrift queues a drift check of a cluster and returns its run; the one
// that is queued or running already, if there is one. It is an ErrConflict, with
// the reason in its text, if the cluster cannot be checked now.
func (r *Reconciler) CheckDrift(ctx context.Context, cluster, actor string) (holdfast.Run, error) {
	return r.drift.Check(ctx, cluster, actor)
}

// Drift returns what the last check of a cluster has found. ErrNotFound if there
// is no such cluster.
func (r *Reconciler) Drift(ctx context.Context, cluster string) (holdfast.DriftReport, error) {
	return r.drift.Found(ctx, cluster)
}

// Watches reports whether the configuration has a repository.
func (r *Reconciler) Watches(repo string) bool {
	return r.operator.Watches(repo)
}

// Family returns what a cluster depends on and what depends on it, each with its
// own; a circle ends where it closes.
func (r *Reconciler) Family(ctx context.Context, cluster string) (holdfast.Family, error) {
	return r.lineage.Family(ctx, cluster)
}

// Templates returns the templates that the repositories publish: see published.List.
func (r *Reconciler) Templates(ctx context.Context, name string) ([]rollout.TemplateStatus, error) {
	return r.published.Templates(ctx, name)
}

// Upgrade proposes newer versions at once: see upgrade.Keeper.
func (r *Reconciler) Upgrade(ctx context.Context, req rollout.UpgradeRequest) ([]rollout.Upgrade, error) {
	return r.upgrades.Upgrade(ctx, req)
}
