// Which files the code, the plan or values of variables name.

package attempt

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/named"
)

// named returns what may be in the apply of what the plan has made: the values that
// its changes lead to and that commands are given name it, or the code does, or the
// values of variables.
func (t *applying) named() (*named.Paths, error) {
	n := named.New(filepath.Base(t.bundle))
	if err := n.Document(t.document); err != nil {
		return nil, err
	}
	for key, value := range t.env() {
		if strings.HasPrefix(key, modulecode.VariablePrefix) {
			n.Add(value)
		}
	}
	bundle, err := os.OpenRoot(t.bundle)
	if err != nil {
		return nil, err
	}
	defer bundle.Close()
	modules, err := t.installed(bundle).Modules()
	if err != nil {
		return nil, err
	}
	for _, module := range modules {
		for _, file := range module.Files {
			if err := n.File(func() (io.ReadCloser, error) { return module.Open(file) }); err != nil {
				return nil, fmt.Errorf("read %s: %w", path.Join(module.Dir, file), err)
			}
		}
	}
	files, err := t.variables().Files()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := n.File(func() (io.ReadCloser, error) { return os.Open(filepath.Join(t.root, file)) }); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
	return n, nil
}
