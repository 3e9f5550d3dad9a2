// Which files the code, the plan or values of variables name.

package attempt

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// names are the paths that something names, relative to wherever it is: cleaned, and
// without what leads to the bundle.
type names struct {
	bundle string // name of the folder of the bundle
	paths  map[string]bool
}

// add records what a text names: the text as a whole, and each piece of it, that has a
// slash or a dot. A single word names nothing: words are everywhere.
func (n *names) add(text string) {
	const longest = 4096
	if len(text) <= longest {
		n.path(text)
	}
	for piece := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._/@+-~%", r)
	}) {
		n.path(strings.TrimRight(piece, ".")) // the end of a sentence
	}
}

func (n *names) path(text string) {
	if !strings.ContainsAny(text, "./") {
		return
	}
	if _, below, ok := strings.Cut(text, "/"+n.bundle+"/"); ok && strings.HasPrefix(text, "/") {
		text = below
	}
	if clean := strings.TrimPrefix(path.Clean("/"+text), "/"); clean != "" {
		n.paths[clean] = true
	}
}

// tree records what the strings in a value name.
func (n *names) tree(tree any) {
	switch v := tree.(type) {
	case string:
		n.add(v)
	case map[string]any:
		for _, child := range v {
			n.tree(child)
		}
	case []any:
		for _, child := range v {
			n.tree(child)
		}
	}
}

// has reports whether something names a file or a folder of the bundle: by its path
// or by the end of it.
func (n *names) has(name string) bool {
	rest, more := filepath.ToSlash(name), true
	for more && !n.paths[rest] {
		_, rest, more = strings.Cut(rest, "/")
	}
	return more
}

// named returns what may be in the apply of what the plan has made: the values that
// its changes lead to and that commands are given name it, or the code does, or the
// values of variables.
func (t *applying) named() (*names, error) {
	n := &names{bundle: filepath.Base(t.bundle), paths: map[string]bool{}}
	if err := n.document(t.document); err != nil {
		return nil, err
	}
	for key, value := range t.env() {
		if strings.HasPrefix(key, modulecode.VariablePrefix) {
			n.add(value)
		}
	}
	bundle, err := os.OpenRoot(t.bundle)
	if err != nil {
		return nil, err
	}
	defer bundle.Close()
	modules, err := t.modules(bundle)
	if err != nil {
		return nil, err
	}
	for _, module := range modules {
		for _, file := range module.Files {
			if err := n.file(func() (io.ReadCloser, error) { return module.Open(file) }); err != nil {
				return nil, fmt.Errorf("read %s: %w", path.Join(module.Dir, file), err)
			}
		}
	}
	files, err := t.variables().Files()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := n.file(func() (io.ReadCloser, error) { return os.Open(filepath.Join(t.root, file)) }); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
	return n, nil
}

func (n *names) document(d plandoc.Document) error {
	values := make([]plandoc.Value, 0, len(d.Resources)+len(d.Reads))
	for _, r := range d.Resources {
		n.add(r.Address) // keys are often names of files
		values = append(values, r.After)
	}
	for _, r := range d.Reads {
		values = append(values, r.Value)
	}
	for _, value := range values {
		tree, err := value.Tree()
		if err != nil {
			return err
		}
		n.tree(tree)
	}
	return nil
}

func (n *names) file(open func() (io.ReadCloser, error)) error {
	file, err := open()
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, modulecode.MaxFile))
	n.add(string(text))
	return err
}
