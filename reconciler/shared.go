package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// statesOf returns the clusters of each state location in a tree. What cannot
// be resolved has none.
func (r *Reconciler) statesOf(ctx context.Context, cat *catalog) map[string][]entry {
	cat.mu.Lock()
	states := cat.states
	cat.mu.Unlock()
	if states != nil {
		return states
	}
	states = make(map[string][]entry)
	for _, name := range slices.Sorted(maps.Keys(cat.names)) {
		res, err := r.resolve(ctx, cat, name)
		if err != nil || res == nil || res.location == "" {
			continue // its own trouble is told where it is looked at
		}
		states[res.location] = append(states[res.location], cat.names[name][0])
	}
	cat.mu.Lock()
	defer cat.mu.Unlock()
	cat.states = states
	return states
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
	for _, e := range r.statesOf(ctx, cat)[res.location] {
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
	run, err := r.opts.Store.Run(ctx, rec.Applied.Run)
	if err != nil {
		return ""
	}
	return run.StateLocation
}
