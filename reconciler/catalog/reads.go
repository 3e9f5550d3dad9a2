package catalog

import (
	"maps"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// reads says which files may define clusters, and which runners and rules besides, by
// globs, and what the latter are held to.
type reads struct {
	clusters, runners []string
	documents         runnerdoc.Options
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
