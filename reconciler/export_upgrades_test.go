package reconciler

import (
	"context"
)

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
