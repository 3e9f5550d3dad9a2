package catalog

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// Footprint is everything that the difference of two trees may affect. Two differences
// that have nothing in common say together what each of them says alone.
type Footprint struct {
	paths   map[string]bool // that differ
	touched map[string]bool // the same, and all folders around them
	names   map[string]bool // of clusters whose documents or folders are among them
	reads   map[string]bool // what the root modules of these clusters are made from
	states  map[string]bool // state locations of these clusters, except for those in Holdfast's own backend
}

// footprintMost bounds the paths and the clusters of a footprint: larger differences have
// something to do with everything.
const footprintMost = 1000

// Footprint returns what the difference of two trees may have to do with, if it consists
// of nothing but edits and new documents without dependencies; nil otherwise. What is
// beyond that has consequences for others which only a comparison finds: a document that
// goes, moves, is renamed or depends on another cluster, a template.yaml that comes or goes,
// and any fault in one of the trees. More are further changes to count as different.
func (r *Reader) Footprint(ctx context.Context, from, to *Catalog, more ...holdfast.TreeChange) (*Footprint, error) {
	changes, err := r.changes(ctx, from, to)
	if err != nil {
		return nil, err
	}
	for _, cat := range []*Catalog{from, to} {
		if err := r.ResolveAll(ctx, cat); err != nil {
			return nil, err
		}
		if !cat.faultless() {
			return nil, nil
		}
	}
	f := &Footprint{
		paths: make(map[string]bool), touched: touchedBy(changes), names: make(map[string]bool),
		reads: make(map[string]bool), states: make(map[string]bool),
	}
	for _, change := range changes {
		from.documented(f.names, change)
		to.documented(f.names, change)
	}
	for _, change := range slices.Concat(changes, more) {
		for _, name := range []string{change.Path, change.From} {
			// An edited template.yaml is what clusters are made from, as any file of a module.
			// One that comes or goes makes examples of the files next to it, or clusters again.
			if path.Base(name) == templates.DocumentFile && change.Kind != "modified" {
				return nil, nil
			}
			if name != "" {
				f.paths[name] = true
				touch(f.touched, name)
			}
		}
	}
	to.index.reading(f.touched, f.names)
	if len(f.paths) > footprintMost || len(f.names) > footprintMost {
		return nil, nil
	}
	for name := range f.names {
		plain, err := r.tread(ctx, f, name, from, to)
		if err != nil || !plain {
			return nil, err
		}
	}
	return f, nil
}

// tread adds one cluster to a footprint, and reports whether it is as Footprint wants it.
func (r *Reader) tread(ctx context.Context, f *Footprint, name string, from, to *Catalog) (bool, error) {
	before, after := from.names.get(name), to.names.get(name)
	switch {
	case len(before) == 0 && len(after) == 0:
		return true, nil // of another tree
	case len(before) > 1 || len(after) != 1:
		return false, nil
	}
	is := after[0].Doc.Cluster
	if is.RenamedFrom != "" {
		return false, nil
	}
	if len(before) == 0 {
		if len(is.DependsOn) > 0 {
			return false, nil
		}
	} else if was := before[0].Doc.Cluster; was.Path != is.Path || was.RenamedFrom != "" || !slices.Equal(was.DependsOn, is.DependsOn) {
		return false, nil
	}
	for _, cat := range []*Catalog{from, to} {
		res, err := r.Resolve(ctx, cat, name)
		if err != nil {
			return false, fmt.Errorf("look what %q is made from: %w", name, err)
		}
		if res == nil {
			continue
		}
		for _, read := range res.reads {
			f.reads[read] = true
		}
		if res.Location != "" && !holdfast.OwnState(res.Location) {
			f.states[res.Location] = true
		}
	}
	return true, nil
}

// faultless reports whether a tree has no fault, and everything in it is resolved.
func (c *Catalog) faultless() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.spoiled) == 0 && len(c.faulty) == 0 && len(c.pending) == 0
}

// Apart reports whether two differences have nothing to do with one another.
func (f *Footprint) Apart(other *Footprint) bool {
	return disjoint(f.paths, other.touched) && disjoint(other.paths, f.touched) &&
		disjoint(f.reads, other.touched) && disjoint(other.reads, f.touched) &&
		disjoint(f.names, other.names) && disjoint(f.states, other.states)
}

// Concerns reports whether a cluster may be among those that differ.
func (f *Footprint) Concerns(name string) bool { return f.names[name] }

func disjoint(a, b map[string]bool) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for key := range a {
		if b[key] {
			return false
		}
	}
	return true
}

// Changed returns the files that differ between two revisions of a repository.
func (r *Reader) Changed(ctx context.Context, repo string, from, to holdfast.Revision) ([]holdfast.TreeChange, error) {
	changes, err := r.git.Diff(ctx, repo, string(from), string(to))
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", from.Short(), to.Short(), err)
	}
	return changes, nil
}
