package catalog

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// TagSet are names of tags.
type TagSet map[string]bool

// MovedTags are the tags that are not the same in both.
func MovedTags(a, b holdfast.Refs) TagSet {
	moved := make(TagSet)
	differ := func(from, to holdfast.Refs) {
		for ref, rev := range from {
			if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok && to[ref] != rev {
				moved[tag] = true
			}
		}
	}
	differ(a, b)
	differ(b, a)
	return moved
}

// Release reports whether documents name a version of a template that one of the
// tags may release.
func (t TagSet) Release(entries []Entry) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool {
		ref := e.Doc.Cluster.Template
		return ref != nil && ref.Version != "" &&
			slices.ContainsFunc(templates.TagsFor(ref.Name, ref.Version), func(tag string) bool { return t[tag] })
	})
}
