package catalog

import (
	"cmp"
	"reflect"
	"slices"
)

// byPlace orders the documents that claim a name: which was read first must not matter.
func byPlace(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.File.Path, b.File.Path), cmp.Compare(a.Doc.Cluster.Line, b.Doc.Cluster.Line))
}

// NewClaims returns the documents, sorted by place, that are new since an earlier tree of
// the repository, were moved, or have another name than they had. If that tree is not
// known, which is nil, they are all those whose names are claimed twice.
func (c *Catalog) NewClaims(earlier *Catalog) []Entry {
	of := ""
	if earlier != nil {
		of = earlier.ID
	}
	c.mu.Lock()
	found, ok := c.claims[of]
	c.mu.Unlock()
	if ok {
		return found
	}
	for name, entries := range c.names.all() {
		switch {
		case earlier != nil:
			found = append(found, newClaims(entries, earlier.names.get(name))...)
		case len(entries) > 1:
			found = append(found, entries...)
		}
	}
	slices.SortFunc(found, byPlace)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.claims == nil {
		c.claims = make(map[string][]Entry)
	}
	c.claims[of] = found
	return found
}

// newClaims returns the documents of a name that are in files which had none of it before,
// or fewer; of several in one file, those that say what none of them said.
func newClaims(entries, before []Entry) []Entry {
	if same(entries, before) {
		return nil
	}
	left, found := slices.Clone(before), slices.Clone(entries)
	anything := func(Entry, Entry) bool { return true }
	for _, alike := range []func(a, b Entry) bool{saysTheSame, anything} {
		found = slices.DeleteFunc(found, func(e Entry) bool {
			i := slices.IndexFunc(left, func(was Entry) bool { return was.File.Path == e.File.Path && alike(was, e) })
			if i >= 0 {
				left = slices.Delete(left, i, i+1)
			}
			return i >= 0
		})
	}
	return found
}

// saysTheSame reports whether two documents say the same, wherever they are.
func saysTheSame(a, b Entry) bool {
	x, y := a.Doc.Cluster, b.Doc.Cluster
	x.Path, x.Line, y.Path, y.Line = "", 0, "", 0
	return reflect.DeepEqual(x, y)
}
