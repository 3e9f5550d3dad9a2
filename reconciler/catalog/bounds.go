package catalog

import (
	"sync/atomic"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// bounds is what a catalog has of what document.MaxText and document.MaxClaims bound.
type bounds struct {
	size     atomic.Int64 // bytes of its files
	exceeded atomic.Bool  // there was more
}

// fits counts the text of a file, or reports a fault. Several may be read at once.
func (b *bounds) fits(f *File, size int) bool {
	if b.size.Add(int64(size)) > document.MaxText {
		b.size.Add(int64(-size))
		b.exceeded.Store(true)
		f.Faults = holdfast.Faults{document.TooMuchText(f.Path)}
		return false
	}
	f.size = size
	return true
}

func (b *bounds) release(f *File) { b.size.Add(int64(-f.size)) }

// boundClaims reports a fault in a file if too many documents have the name of one of
// its own: each is kept with all others of the name.
func (c *Catalog) boundClaims(f *File) {
	fault, found := document.TooManyClaims(f.docs, func(name string) int { return len(c.names.get(name)) })
	if found {
		f.docs = nil
		f.Faults = append(f.Faults, fault)
		c.exceeded.Store(true)
	}
}
