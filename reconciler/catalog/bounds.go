package catalog

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast"
)

// Bounds of what one tree says of clusters. A repository has one content once, however
// many names a tree gives it; a catalog has it for each of them.
const (
	maxText   = 128 << 20 // bytes of the files that define clusters
	maxClaims = 100       // documents with one name
)

// bounds is what a catalog has of them.
type bounds struct {
	size     atomic.Int64 // bytes of its files
	exceeded atomic.Bool  // there was more
}

// fits counts the text of a file, or finds fault with it. Several may be read at once.
func (b *bounds) fits(f *File, size int) bool {
	if b.size.Add(int64(size)) > maxText {
		b.size.Add(int64(-size))
		b.exceeded.Store(true)
		f.Faults = holdfast.Faults{{
			File:    strings.ToValidUTF8(f.Path, "\uFFFD"),
			Message: fmt.Sprintf("files that define clusters have more than %d bytes, with this file", maxText),
			Hint:    "move other data out of the configured paths",
		}}
		return false
	}
	f.size = size
	return true
}

func (b *bounds) release(f *File) { b.size.Add(int64(-f.size)) }

// boundClaims finds fault with a file if too many documents have the name of one of its
// own: each is kept with all others of the name.
func (c *Catalog) boundClaims(f *File) {
	claims := make(map[string]int, len(f.docs))
	for _, doc := range f.docs {
		name := doc.Cluster.Name
		if claims[name]++; claims[name]+len(c.names.get(name)) > maxClaims {
			f.docs = nil
			f.Faults = append(f.Faults, holdfast.Fault{
				File: f.Path, Line: doc.Cluster.Line, Cluster: name,
				Message: fmt.Sprintf("more than %d documents have the name %s", maxClaims, name), Hint: "remove this one",
			})
			c.exceeded.Store(true)
			return
		}
	}
}
