package reconciler

import (
	"context"

	"github.com/holdfast-dev/holdfast/reconciler/rescue"
)

// Rescue returns who puts states right that engines could not save.
func (r *Reconciler) Rescue() *rescue.Keeper { return r.rescue }

// rescuing is the Reconciler as its rescue.Keeper sees it.
type rescuing struct{ r *Reconciler }

// Queued tells agents that there is work.
func (f rescuing) Queued(ctx context.Context) { f.r.dispatcher.Queued(ctx) }

// Look asks for another look at a cluster, and at the pull requests that touch it.
func (f rescuing) Look(ctx context.Context, cluster string) {
	f.r.agenda.RequestCluster(cluster)
	if err := f.r.agenda.RequestOpen(ctx, cluster); err != nil {
		f.r.opts.Logger.WarnContext(ctx, "open pull requests were not asked for", "cluster", cluster, "err", err)
	}
}
