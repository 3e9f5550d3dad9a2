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

// TooManyClaims is what is wrong with the document of a cluster that would be beyond MaxClaims.
func TooManyClaims(c holdfast.Cluster) holdfast.Fault {
	return holdfast.Fault{
		File: c.Path, Line: c.Line, Cluster: c.Name,
		Message: fmt.Sprintf("more than %d documents have the name %s", MaxClaims, c.Name), Hint: "remove this one",
	}
}
