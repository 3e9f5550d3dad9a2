package reconciler

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// withState returns the clusters of a tree that have a state location, sorted.
// What cannot be resolved has none.
func (r *Reconciler) withState(ctx context.Context, cat *catalog, location string) []entry {
	for _, name := range cat.unresolved() {
		_, _ = r.resolve(ctx, cat, name) // its own trouble is told where it is looked at
	}
	var out []entry
	for _, name := range cat.index.at(location) {
		res, err := r.resolve(ctx, cat, name)
		if err == nil && res != nil && res.location == location {
			out = append(out, cat.names.get(name)[0])
		}
	}
	return out
}

// sharedState is the fault of a cluster whose state is another one's too, as
// after a copy of its document: each would destroy what is the other's. One that
// was applied with this state has it; the newcomer is wrong.
func (r *Reconciler) sharedState(ctx context.Context, cat *catalog, res *resolution, rec holdfast.ClusterRecord) holdfast.Faults {
	if res.location == "" || ownState(res.location) { // those are told apart by their names
		return nil
	}
	if rec.Applied.Run != "" && r.appliedAt(ctx, rec) == res.location {
		return nil
	}
	var others []string
	for _, e := range r.withState(ctx, cat, res.location) {
		if other := e.doc.Cluster; other.Name != res.doc.Cluster.Name {
			others = append(others, fmt.Sprintf("%q (%s:%d)", other.Name, other.Path, other.Line))
		}
	}
	if len(others) == 0 {
		return nil
	}
	c := res.doc.Cluster
	return holdfast.Faults{{
		File: c.Path, Line: c.Line, Cluster: c.Name,
		Message: fmt.Sprintf("its state, %s, is also that of %s", res.location, strings.Join(others, ", ")),
		Hint:    "each cluster needs a state of its own: change spec.state, or the backend in its module",
	}}
}

// appliedAt is where the state of what was last applied is.
func (r *Reconciler) appliedAt(ctx context.Context, rec holdfast.ClusterRecord) string {
	if rec.Applied.StateLocation != "" {
		return rec.Applied.StateLocation
	}
	run, err := r.opts.Store.Run(ctx, rec.Applied.Run)
	if err != nil {
		return ""
	}
	return run.StateLocation
}
