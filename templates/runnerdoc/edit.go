package runnerdoc

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/edit"
)

// New is the document of a runner with nothing but its type.
func New(name string, t runnerspec.Type) []byte {
	return fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:\n  type: %s\n", decode.APIVersion, decode.KindRunner, name, t)
}

// part is which part of a file has the document of a runner.
func part(path string, file []byte, name string) (all [][]byte, at int, err error) {
	all = edit.Parts(file)
	for i, text := range all {
		docs, _ := Parse(path, text, false, Options{})
		for _, doc := range docs {
			if doc.Runner == nil || doc.Name() != name {
				continue
			}
			if !edit.IsOne(text) {
				return nil, 0, holdfast.ErrorOf(holdfast.ErrConflict, "the document of runner %q in %s has another one behind it without a line --- between them: edit it by hand", name, path)
			}
			return all, i, nil
		}
	}
	return nil, 0, fmt.Errorf("%s has no document of runner %q: %w", path, name, holdfast.ErrNotFound)
}

// Text is the document of a runner as its file has it.
func Text(path string, file []byte, name string) ([]byte, error) {
	all, i, err := part(path, file, name)
	if err != nil {
		return nil, err
	}
	_, text := edit.Cut(all[i])
	return text, nil
}

// Replace puts a document in the place of the one that a runner has.
func Replace(path string, file []byte, name string, document []byte) ([]byte, error) {
	all, i, err := part(path, file, name)
	if err != nil {
		return nil, err
	}
	return edit.Replace(all, i, document), nil
}

// Remove takes out the document of a runner. It returns nil if nothing is left.
func Remove(path string, file []byte, name string) ([]byte, error) {
	all, i, err := part(path, file, name)
	if err != nil {
		return nil, err
	}
	return edit.Remove(all, i), nil
}

// IsOne reports whether a text has no more than one document.
func IsOne(document []byte) bool { return edit.IsOne(document) }

// Append adds a document to a file, which may be new.
func Append(file, document []byte) []byte { return edit.Append(file, document) }

// Set changes keys below spec of a document, each given as "path.of.keys=value". A value is
// YAML; an empty one removes the key.
func Set(document []byte, changes []string) ([]byte, error) {
	return edit.Set(document, "spec", changes)
}
