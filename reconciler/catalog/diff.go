package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/modules"
)

// Difference is what two trees say differently.
type Difference struct {
	Files []string // that define clusters, or are not read as they should, in either
	// Documents are the names whose documents differ, be it in their place, a
	// comment or a label.
	Documents []string
	// Names are those of which something else is said: changed, added, deleted,
	// newly at fault, or still at fault after a change of what is. They are sorted, as
	// is the rest.
	Names []string
}

// Diff compares two trees. Its work grows with what differs.
func (r *Reader) Diff(ctx context.Context, from, to *Catalog) (Difference, error) {
	var d Difference
	changes, err := r.changes(ctx, from, to)
	if err != nil {
		return d, err
	}
	if err := r.ResolveAll(ctx, from); err != nil {
		return d, err
	}
	files, documents := make(map[string]bool), make(map[string]bool)
	for _, change := range changes {
		for _, path := range []string{change.From, change.Path} {
			if !from.files.get(path).Same(to.files.get(path)) {
				files[path] = true
			}
		}
		from.documented(documents, change)
		to.documented(documents, change)
	}
	maps.DeleteFunc(documents, func(name string, _ bool) bool { return same(from.names.get(name), to.names.get(name)) })
	from.mu.Lock()
	names := maps.Clone(from.faulty)
	from.mu.Unlock()
	maps.Copy(names, documents)
	to.index.reading(touchedBy(changes), names)
	d.Files, d.Documents = slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(documents))
	d.Names, err = r.effective(ctx, from, to, slices.Sorted(maps.Keys(names)), documents)
	return d, err
}

// changes are the files that differ between two trees, and those that are read in
// another way: a template.yaml that comes or goes makes examples and tests of what
// is next to it, or clusters again.
func (r *Reader) changes(ctx context.Context, from, to *Catalog) ([]holdfast.TreeChange, error) {
	changes, err := r.diff(ctx, from.ID, to)
	if err != nil {
		return nil, err
	}
	var siblings []holdfast.TreeChange
	for _, change := range changes {
		for _, name := range []string{change.From, change.Path} {
			if change.Kind == "modified" || path.Base(name) != templates.DocumentFile {
				continue
			}
			for _, dir := range templates.CaseFolders(path.Dir(name)) {
				err := walk(ctx, to.Tree, dir, func(name string) error {
					siblings = append(siblings, holdfast.TreeChange{Path: name, Kind: "modified"})
					return nil
				})
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return nil, fmt.Errorf("look next to %s: %w", name, err)
				}
			}
		}
	}
	return append(changes, siblings...), nil
}

// Misplaced returns where the document of a cluster that a tree no longer defines is, as
// "file:line", if it was moved to a file outside the configured paths since another
// revision or tree; empty if it has not. What was added and changed is read once.
func (r *Reader) Misplaced(ctx context.Context, cat *Catalog, since, name string) (string, error) {
	cat.mu.Lock()
	found, ok := cat.strays[since]
	cat.mu.Unlock()
	if ok {
		return found[name], nil
	}
	changes, err := r.diff(ctx, since, cat)
	if errors.Is(err, holdfast.ErrNotFound) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	found = make(map[string]string)
	for _, change := range changes {
		if change.Kind == "deleted" {
			continue
		}
		if looked, err := cat.defines(change.Path); err != nil {
			return "", err
		} else if looked {
			continue
		}
		data, err := cat.Tree.ReadFile(change.Path)
		if _, refused := modules.Refused(err); refused { // a link, or too large for a document
			continue
		} else if err != nil {
			return "", fmt.Errorf("look for moved documents: %w", err)
		}
		for name, line := range decode.ClusterLines(change.Path, data) {
			found[name] = fmt.Sprintf("%s:%d", change.Path, line)
		}
	}
	cat.mu.Lock()
	defer cat.mu.Unlock()
	if cat.strays == nil {
		cat.strays = make(map[string]map[string]string)
	}
	cat.strays[since] = found
	return found[name], nil
}

// effective keeps the names whose content really differs: a moved file, a
// comment or a label changes nothing. Documents are the names whose files differ.
func (r *Reader) effective(ctx context.Context, from, to *Catalog, names []string, documents map[string]bool) ([]string, error) {
	var out []string
	for _, name := range names {
		before, err := r.Resolve(ctx, from, name)
		if err != nil {
			return nil, err
		}
		after, err := r.Resolve(ctx, to, name)
		if err != nil {
			return nil, err
		}
		switch {
		case before == nil && after == nil:
			continue
		case before == nil || after == nil:
		case before.Digest.Equal(after.Digest):
			continue
		case len(before.Faults) > 0 && slices.Equal(before.Faults, after.Faults) && !documents[name]:
			touched, err := r.touchesSources(from, to, name)
			if err != nil {
				return nil, err
			}
			if !touched {
				continue // as wrong as it was, and nobody has touched it
			}
		}
		out = append(out, name)
	}
	return out, nil
}

// touchesSources reports whether two trees differ in what the root module of a cluster is
// made from, whose documents are the same in both.
func (r *Reader) touchesSources(from, to *Catalog, name string) (bool, error) {
	for _, e := range to.names.get(name) {
		was, err := r.resolver.Sources(from.Tree, e.Doc)
		if err != nil {
			return false, fmt.Errorf("compare what %q is made from: %w", name, err)
		}
		is, err := r.resolver.Sources(to.Tree, e.Doc)
		if err != nil {
			return false, fmt.Errorf("compare what %q is made from: %w", name, err)
		}
		if was != is {
			return true, nil
		}
	}
	return false, nil
}

// touchedBy is every path that changes name, with all folders around it.
func touchedBy(changes []holdfast.TreeChange) map[string]bool {
	touched := make(map[string]bool)
	for _, change := range changes {
		touch(touched, change.Path)
		touch(touched, change.From)
	}
	return touched
}

// touch marks a changed path and all folders around it.
func touch(touched map[string]bool, name string) {
	for name != "" && name != "." && !touched[name] {
		touched[name] = true
		name = path.Dir(name)
	}
	touched["."] = true
}
