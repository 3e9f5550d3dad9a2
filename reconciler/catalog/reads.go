package catalog

import (
	"maps"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// reads says which files may define clusters, and which runners and rules besides, by
// globs, and what the latter are held to.
type reads struct {
	clusters, runners []string
	documents         runnerdoc.Options
	requires          func(c holdfast.Cluster) ([]string, holdfast.GateTerms) // nil: nothing
}

// require adds the conditions that clusters have whatever their documents say.
func (r reads) require(docs []document.Document) {
	if r.requires == nil {
		return
	}
	for i := range docs {
		settings := &docs[i].Cluster.Apply
		names, terms := r.requires(docs[i].Cluster)
		settings.Terms = settings.Terms.With(terms)
		for _, name := range names {
			if !slices.Contains(settings.Requires, name) {
				settings.Requires = append(slices.Clip(settings.Requires), name)
			}
		}
	}
}

func match(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		ok, err := doublestar.Match(glob, name)
		return ok && err == nil
	})
}

// RunnerFiles returns the files with runners and rules, sorted by their paths.
func (c *Catalog) RunnerFiles() []*File {
	var out []*File
	for _, name := range slices.Sorted(maps.Keys(c.running)) {
		out = append(out, c.files.get(name))
	}
	return out
}
