package lineage

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// tenants returns the clusters that are applied, wholly or half, with a state
// that is not in our own backend, in whichever repository they are.
func (r *Reader) tenants(ctx context.Context, state string) ([]holdfast.ClusterRecord, error) {
	var names []string
	for _, name := range location.Aliases(state) {
		at, err := r.store.ClustersAt(ctx, name)
		if err != nil {
			return nil, err
		}
		names = append(names, at...)
	}
	if len(names) == 0 {
		return nil, nil
	}
	records, err := r.store.Clusters(ctx, holdfast.ClusterFilter{Names: names})
	if err != nil {
		return nil, fmt.Errorf("read clusters: %w", err)
	}
	var out []holdfast.ClusterRecord
	for _, rec := range records {
		// Until its first run the new name of a cluster has none with that state.
		if rec, err = r.presentName(ctx, rec); err != nil {
			return nil, err
		}
		listed := func(other holdfast.ClusterRecord) bool { return other.Name == rec.Name }
		if rec.Deletion != nil || slices.ContainsFunc(out, listed) {
			continue
		}
		if rec.Applied, err = r.Inherited(ctx, rec); err != nil {
			return nil, err
		}
		if rec.Applied.Run != "" && location.Same(rec.Applied.StateLocation, state) {
			out = append(out, rec)
		}
	}
	return out, nil
}

// presentName follows the renames of a cluster to the record of its present name.
func (r *Reader) presentName(ctx context.Context, rec holdfast.ClusterRecord) (holdfast.ClusterRecord, error) {
	for seen := map[string]bool{}; rec.Deletion != nil && rec.Deletion.To != "" && !seen[rec.Name]; {
		seen[rec.Name] = true
		next, err := r.store.Cluster(ctx, rec.Deletion.To)
		if errors.Is(err, holdfast.ErrNotFound) {
			break
		} else if err != nil {
			return rec, fmt.Errorf("read cluster %q: %w", rec.Deletion.To, err)
		}
		rec = next
	}
	return rec, nil
}

// SharedState is the fault of a cluster whose state is another one's too, as
// after a copy of its document: each would destroy what is the other's. One that
// was applied with this state has it; the newcomer is wrong.
func (r *Reader) SharedState(
	ctx context.Context, cat *catalog.Catalog, res *catalog.Resolution, rec holdfast.ClusterRecord,
) (holdfast.Faults, error) {
	if res.Location == "" || holdfast.OwnState(res.Location) { // those are distinguished by their names
		return nil, nil
	}
	if rec.Applied.Run != "" && location.Same(rec.Applied.StateLocation, res.Location) {
		return nil, nil
	}
	c := res.Doc.Cluster
	var others []string
	for _, e := range r.catalogs.WithState(ctx, cat, res.Location) {
		if other := e.Doc.Cluster; other.Name != c.Name {
			others = append(others, fmt.Sprintf("%q (%s:%d)", other.Name, other.Path, other.Line))
		}
	}
	hint := "each cluster needs a state of its own: change spec.state, or the backend in its module"
	tenants, err := r.tenants(ctx, res.Location)
	if err != nil {
		return nil, err
	}
	for _, other := range tenants {
		inTree := other.Owner == cat.Repo && len(cat.Named(other.Name)) > 0
		if other.Name == c.Name || other.Name == c.RenamedFrom || inTree {
			continue
		}
		others = append(others, fmt.Sprintf("%q (of %s)", other.Name, other.Owner))
		if other.Owner == cat.Repo {
			hint = fmt.Sprintf("if it is that cluster under a new name, set metadata.renamedFrom: %s; otherwise change spec.state", other.Name)
		}
	}
	if len(others) == 0 {
		return nil, nil
	}
	return holdfast.Faults{{
		File: c.Path, Line: c.Line, Cluster: c.Name,
		Message: fmt.Sprintf("its state, %s, is also that of %s", res.Location, strings.Join(others, ", ")),
		Hint:    hint,
	}}, nil
}

// stateElsewhere is why a cluster that is gone must not be destroyed: its state
// is another one's too, and so is all that is in it. Empty if it is not.
func (r *Reader) stateElsewhere(ctx context.Context, cat *catalog.Catalog, rec holdfast.ClusterRecord) (string, error) {
	if rec.Name == "" {
		return "", nil
	}
	applied, err := r.Inherited(ctx, rec)
	if err != nil || applied.Run == "" {
		return "", err
	}
	rec.Applied = applied
	state := rec.Applied.StateLocation
	if state == "" || holdfast.OwnState(state) {
		return "", nil
	}
	const why = "its state, %s, is also that of %q"
	for _, e := range r.catalogs.WithState(ctx, cat, state) {
		if c := e.Doc.Cluster; c.Name != rec.Name && c.RenamedFrom != rec.Name {
			return fmt.Sprintf(why, state, c.Name), nil
		}
	}
	for _, e := range r.catalogs.InFolder(ctx, cat, rec.Applied.Dir, earlier(rec.Applied)) {
		c := e.Doc.Cluster
		if c.Name != rec.Name && c.RenamedFrom != rec.Name && reflect.DeepEqual(c.State, rec.Applied.Document.State) {
			return fmt.Sprintf(why, state, c.Name), nil
		}
	}
	tenants, err := r.tenants(ctx, state)
	if err != nil {
		return "", err
	}
	for _, other := range tenants {
		if other.Name != rec.Name {
			return fmt.Sprintf(why, state, other.Name), nil
		}
	}
	return "", nil
}

// earlier is how the location of the same state begins, if an earlier version has
// recorded it: it left arguments out, or called a state after the folder of the code
// whatever they said.
func earlier(applied holdfast.Applied) string {
	if kind, folder, _ := strings.Cut(applied.StateLocation, ":"); folder == applied.Dir {
		return kind + ":"
	}
	return applied.StateLocation + ","
}
