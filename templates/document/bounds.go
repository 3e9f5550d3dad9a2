package document

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Bounds of what one tree says of clusters. A repository has one content once, however
// many names a tree gives it; whoever reads the tree has it for each of them.
const (
	MaxText   = 128 << 20 // bytes of the files that define clusters
	MaxClaims = 100       // documents with one name
)

// TooMuchText is what is wrong with a file that would be beyond MaxText.
func TooMuchText(file string) holdfast.Fault {
	return holdfast.Fault{
		File:    strings.ToValidUTF8(file, "\uFFFD"),
		Message: fmt.Sprintf("files that define clusters have more than %d bytes, with this file", MaxText),
		Hint:    "move other data out of the configured paths",
	}
}

// TooManyClaims returns what is wrong with a file's documents if there are more than
// MaxClaims of one name: others says how many of them other files have. The fault is about
// the first document that is too much.
func TooManyClaims(docs []Document, others func(name string) int) (fault holdfast.Fault, found bool) {
	claims := make(map[string]int, len(docs))
	for _, doc := range docs {
		c := doc.Cluster
		if claims[c.Name]++; claims[c.Name]+others(c.Name) > MaxClaims {
			return holdfast.Fault{
				File: c.Path, Line: c.Line, Cluster: c.Name,
				Message: fmt.Sprintf("more than %d documents have the name %s", MaxClaims, c.Name), Hint: "remove this one",
			}, true
		}
	}
	return holdfast.Fault{}, false
}
