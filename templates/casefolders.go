package templates

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/modules"
)

// DocumentFile is the name of a template's document in its folder.
const DocumentFile = templateFile

// caseFolders are the folders of a template whose documents belong to it:
// examples, and test cases. They are not clusters, whatever they look like.
var caseFolders = []string{"examples", "tests"} //nolint:gochecknoglobals // a constant list

// CaseFolders returns the folders in which a template in dir keeps examples and tests.
func CaseFolders(dir string) []string {
	out := make([]string, len(caseFolders))
	for i, name := range caseFolders {
		out[i] = path.Join(dir, name)
	}
	return out
}

// OfTemplate reports whether a file belongs to a template: it is in the folder
// examples or tests next to a template.yaml. Its documents are not clusters of the
// fleet. The error is the tree's.
func OfTemplate(tree holdfast.Tree, name string) (bool, error) {
	words := strings.Split(path.Dir(name), "/")
	for i, word := range words {
		if !slices.Contains(caseFolders, word) {
			continue
		}
		_, err := tree.Hash(path.Join(path.Join(words[:i]...), templateFile))
		if _, refused := modules.Refused(err); err == nil {
			return true, nil
		} else if !refused && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("look for a template around %s: %w", name, err)
		}
	}
	return false, nil
}
