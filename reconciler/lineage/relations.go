package lineage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Parents are the clusters that a document depends on.
func (r *Reader) Parents(ctx context.Context, doc holdfast.Cluster) ([]holdfast.Relation, error) {
	if len(doc.DependsOn) == 0 {
		return nil, nil
	}
	records, err := r.store.Clusters(ctx, holdfast.ClusterFilter{Names: doc.DependsOn})
	if err != nil {
		return nil, fmt.Errorf("read what %q depends on: %w", doc.Name, err)
	}
	byName := make(map[string]holdfast.ClusterRecord, len(records))
	for _, rec := range records {
		byName[rec.Name] = rec
	}
	out := make([]holdfast.Relation, 0, len(doc.DependsOn))
	for _, name := range doc.DependsOn {
		relation := decision.RelationOf(byName[name])
		relation.Name = name
		if ending := byName[name].Deletion; ending != nil && ending.To != "" {
			relation.Waiting = "was renamed to " + ending.To
		}
		out = append(out, relation)
	}
	return out, nil
}

// Dependents are the clusters that depend on one, as they are desired, were applied or are
// being applied.
func (r *Reader) Dependents(ctx context.Context, cluster string) ([]holdfast.Relation, error) {
	records, err := r.dependents(ctx, cluster)
	if err != nil {
		return nil, err
	}
	out := make([]holdfast.Relation, 0, len(records))
	for _, rec := range records {
		out = append(out, decision.RelationOf(rec))
	}
	return out, nil
}

func (r *Reader) dependents(ctx context.Context, cluster string) ([]holdfast.ClusterRecord, error) {
	records, err := r.store.Clusters(ctx, holdfast.ClusterFilter{DependsOn: cluster})
	if err != nil {
		return nil, fmt.Errorf("list what depends on %q: %w", cluster, err)
	}
	out := make([]holdfast.ClusterRecord, 0, len(records))
	for _, rec := range records {
		never, err := neverApplied(ctx, r.store, rec)
		if err != nil {
			return nil, err
		}
		if !never {
			out = append(out, rec)
		}
	}
	return out, nil
}

// Family returns what a cluster depends on and what depends on it, each with its
// own; a circle ends where it closes.
func (r *Reader) Family(ctx context.Context, cluster string) (holdfast.Family, error) {
	rec, err := r.store.Cluster(ctx, cluster)
	if err != nil {
		return holdfast.Family{}, fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	var family holdfast.Family
	seen := map[string]bool{cluster: true}
	family.Parents, err = r.ancestry(ctx, rec, seen)
	if err != nil {
		return family, err
	}
	family.Dependents, err = r.descent(ctx, cluster, map[string]bool{cluster: true})
	return family, err
}

func (r *Reader) ancestry(ctx context.Context, rec holdfast.ClusterRecord, seen map[string]bool) ([]holdfast.Relation, error) {
	parents, err := r.Parents(ctx, documentOf(rec))
	if err != nil {
		return nil, err
	}
	for i, p := range parents {
		if seen[p.Name] || p.Phase == "" {
			continue
		}
		seen[p.Name] = true
		parent, err := r.store.Cluster(ctx, p.Name)
		if err != nil {
			return nil, fmt.Errorf("read cluster %q: %w", p.Name, err)
		}
		if parents[i].Relations, err = r.ancestry(ctx, parent, seen); err != nil {
			return nil, err
		}
	}
	return parents, nil
}

func (r *Reader) descent(ctx context.Context, cluster string, seen map[string]bool) ([]holdfast.Relation, error) {
	dependents, err := r.Dependents(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for i, d := range dependents {
		if seen[d.Name] {
			continue
		}
		seen[d.Name] = true
		if dependents[i].Relations, err = r.descent(ctx, d.Name, seen); err != nil {
			return nil, err
		}
	}
	return dependents, nil
}

// documentOf is the document that says what a cluster is, or was.
func documentOf(rec holdfast.ClusterRecord) holdfast.Cluster {
	if rec.Desired.Document.Name == "" {
		return rec.Applied.Document
	}
	return rec.Desired.Document
}

// circular is the fault of a document that depends on itself by way of others.
func (r *Reader) circular(ctx context.Context, cat *catalog.Catalog, res *catalog.Resolution) (holdfast.Faults, error) {
	start := res.Doc.Cluster
	path, err := r.circle(ctx, cat, start.Name, start.DependsOn, map[string]bool{})
	if err != nil || path == nil {
		return nil, err
	}
	return holdfast.Faults{res.Doc.Fault(
		"it depends on itself: "+strings.Join(append([]string{start.Name}, path...), " → "),
		"remove one of these from dependsOn", "spec", "dependsOn",
	)}, nil
}

// circle returns the way from names back to start; nil if there is none.
func (r *Reader) circle(ctx context.Context, cat *catalog.Catalog, start string, names []string, seen map[string]bool) ([]string, error) {
	for _, name := range names {
		if name == start {
			return []string{name}, nil
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		next, err := r.dependsOn(ctx, cat, name)
		if err != nil {
			return nil, err
		}
		path, err := r.circle(ctx, cat, start, next, seen)
		if err != nil {
			return nil, err
		}
		if path != nil {
			return append([]string{name}, path...), nil
		}
	}
	return nil, nil
}

// dependsOn is what a cluster depends on: as this tree says, or else as another
// repository does.
func (r *Reader) dependsOn(ctx context.Context, cat *catalog.Catalog, name string) ([]string, error) {
	if entries := cat.Named(name); len(entries) > 0 {
		return entries[0].Doc.Cluster.DependsOn, nil
	}
	rec, err := r.store.Cluster(ctx, name)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && rec.Owner == cat.Repo {
		return nil, nil // there is none, or this tree has it no more
	} else if err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", name, err)
	}
	return rec.Desired.Document.DependsOn, nil
}
