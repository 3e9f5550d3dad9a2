package named

import (
	"io"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// Paths are those that something names, relative to wherever it is: cleaned, and
// without what leads to the bundle.
type Paths struct {
	bundle string // name of the folder of the bundle
	paths  map[string]bool
}

// New returns those that nothing has named yet; bundle is the name of the folder of the
// bundle.
func New(bundle string) *Paths { return &Paths{bundle: bundle, paths: map[string]bool{}} }

// Add records what a text names: the text as a whole, and each piece of it, that has a
// slash or a dot. A single word names nothing: words are everywhere.
func (n *Paths) Add(text string) {
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

func (n *Paths) path(text string) {
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
func (n *Paths) tree(tree any) {
	switch v := tree.(type) {
	case string:
		n.Add(v)
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

// Has reports whether something names a file or a folder of the bundle: by its path
// or by the end of it.
func (n *Paths) Has(name string) bool {
	rest, more := filepath.ToSlash(name), true
	for more && !n.paths[rest] {
		_, rest, more = strings.Cut(rest, "/")
	}
	return more
}

// Document records what the values name that a plan's changes lead to, or that it reads.
func (n *Paths) Document(d plandoc.Document) error {
	values := make([]plandoc.Value, 0, len(d.Resources)+len(d.Reads))
	for _, r := range d.Resources {
		n.Add(r.Address) // keys are often names of files
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

// File records what a file names, as far as code is read.
func (n *Paths) File(open func() (io.ReadCloser, error)) error {
	file, err := open()
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, modulecode.MaxFile))
	n.Add(string(text))
	return err
}
