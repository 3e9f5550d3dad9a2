package lineage

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// DestroyedFirst are the clusters that have to be gone before one that was removed, whose
// record is rec, is destroyed: those that depend on it. A removed one depends on what it
// was applied with: what its document said beyond that, perhaps with a fault, can no
// longer be corrected. Where that is a circle, as by changes that were applied one by
// one, the first by name does not wait for the others.
func (r *Reader) DestroyedFirst(ctx context.Context, rec holdfast.ClusterRecord) ([]holdfast.Relation, error) {
	dependents, err := r.dependents(ctx, rec.Name)
	if err != nil {
		return nil, err
	}
	var waits, removed []holdfast.ClusterRecord
	for _, d := range dependents {
		if !d.Desired.Removed {
			waits = append(waits, d)
			continue
		}
		parents, err := r.standsOn(ctx, d)
		if err != nil {
			return nil, err
		}
		if slices.Contains(parents, rec.Name) {
			removed = append(removed, d)
		}
	}
	if len(removed) > 0 {
		circle, err := r.removedCircle(ctx, rec)
		if err != nil {
			return nil, err
		}
		if rec.Name == slices.Min(circle) {
			removed = slices.DeleteFunc(removed, func(d holdfast.ClusterRecord) bool { return slices.Contains(circle, d.Name) })
		}
	}
	var out []holdfast.Relation
	for _, d := range slices.Concat(waits, removed) {
		out = append(out, decision.RelationOf(d))
	}
	return out, nil
}

// standsOn are the clusters that one depended on when it was last applied, or when an apply
// since then has begun or was queued.
func (r *Reader) standsOn(ctx context.Context, rec holdfast.ClusterRecord) ([]string, error) {
	applied := slices.Concat(rec.Applied.Document.DependsOn, rec.FormerParents)
	further := func(name string) bool { return !slices.Contains(applied, name) }
	if !slices.ContainsFunc(rec.Desired.Document.DependsOn, further) {
		return applied, nil
	}
	runs, err := history.Branch(ctx, r.store, rec.Name)
	if err != nil {
		return nil, err
	}
	names := slices.Concat(applied, inherited(rec, runs).Document.DependsOn)
	for _, run := range underWay(rec, runs) {
		names = append(names, run.Document.DependsOn...)
	}
	return names, nil
}

// removedCircle returns the names of the clusters that depend on one, and it on them, by way
// of clusters which were all removed; its own is always among them.
func (r *Reader) removedCircle(ctx context.Context, rec holdfast.ClusterRecord) ([]string, error) {
	parents := make(map[string][]string) // of those that it depends on, by way of others or not
	next, err := r.standsOn(ctx, rec)
	for err == nil && len(next) > 0 {
		next, err = r.removedParents(ctx, next, parents)
	}
	if err != nil {
		return nil, err
	}
	circle := []string{rec.Name}
	for i := 0; i < len(circle); i++ {
		for name, of := range parents {
			if slices.Contains(of, circle[i]) && !slices.Contains(circle, name) {
				circle = append(circle, name)
			}
		}
	}
	return circle, nil
}

// removedParents adds the removed ones of some clusters to parents, each with what it
// depends on, and returns those that it has not yet.
func (r *Reader) removedParents(ctx context.Context, names []string, parents map[string][]string) (next []string, err error) {
	for some := range slices.Chunk(names, byname.AtOnce) {
		records, err := byname.Records(ctx, r.store, some)
		if err != nil {
			return nil, err
		}
		for name, rec := range records {
			if _, ok := parents[name]; ok || !rec.Desired.Removed || rec.Deletion != nil {
				continue
			}
			if parents[name], err = r.standsOn(ctx, rec); err != nil {
				return nil, err
			}
			next = append(next, parents[name]...)
		}
	}
	return next, nil
}
