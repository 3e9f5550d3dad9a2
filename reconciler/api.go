package reconciler

import (
	"context"

	"github.com/holdfast-dev/holdfast"
)

// What the API asks of the rooms.

// Family returns what a cluster depends on and what depends on it, each with its
// own; a circle ends where it closes.
func (r *Reconciler) Family(ctx context.Context, cluster string) (holdfast.Family, error) {
	return r.lineage.Family(ctx, cluster)
}
