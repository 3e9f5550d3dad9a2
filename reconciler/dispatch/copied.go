// Whether a state was copied to where a cluster's state is to be.

package dispatch

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// inventoryMost is how many resources of a cluster are known at most.
const inventoryMost = 50_000

// elsewhere reports whether a run was made with another state than the one that its
// cluster has.
func (r results) elsewhere(ctx context.Context, run holdfast.Run) bool {
	rec, err := r.store.Cluster(ctx, run.Cluster)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		r.logger.WarnContext(ctx, "cluster of a run was not read", "run", run.ID, "cluster", run.Cluster, "err", err)
	}
	return err == nil && decision.OtherState(rec.Applied, run.StateLocation, run.Document)
}

// copied reports whether a plan that has ended without changes was made with another
// state than the present one, and has found in it all that the cluster is known to have.
// Where nothing is known of either it has not: what holds its merge back is lifted by a
// person.
func (r results) copied(ctx context.Context, run holdfast.Run) bool {
	if run.Kind != holdfast.RunPlan || run.Destroy || run.Sample || !r.elsewhere(ctx, run) {
		return false
	}
	has, err := r.store.Resources(ctx, holdfast.ResourceFilter{Cluster: run.Cluster, Limit: inventoryMost})
	if err != nil || len(has) == 0 {
		r.notCompared(ctx, run, err)
		return false
	}
	found, err := r.resources(ctx, run)
	if err != nil {
		r.notCompared(ctx, run, err)
		return false
	}
	there := make(map[string]string, len(found)) // ids by address
	for _, resource := range found {
		there[resource.Address] = resource.ID
	}
	for _, resource := range has {
		id, known := there[resource.Address]
		if !known || id != "" && resource.ID != "" && id != resource.ID {
			return false
		}
	}
	return true
}

func (r results) notCompared(ctx context.Context, run holdfast.Run, err error) {
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		r.logger.WarnContext(ctx, "resources of two states were not compared", "run", run.ID, "cluster", run.Cluster, "err", err)
	}
}
