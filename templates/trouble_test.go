package templates_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// troubledTree is a tree of which one read fails.
type troubledTree struct {
	*memTree
	at, n int // which one does; how many were made
}

func (t *troubledTree) next(name string) error {
	if t.n++; t.n == t.at {
		return &fs.PathError{Op: "read", Path: name, Err: holdfast.ErrUnavailable}
	}
	return nil
}

func (t *troubledTree) ReadFile(name string) ([]byte, error) {
	if err := t.next(name); err != nil {
		return nil, err
	}
	return t.memTree.ReadFile(name)
}

func (t *troubledTree) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := t.next(name); err != nil {
		return nil, err
	}
	return t.memTree.ReadDir(name)
}

func (t *troubledTree) Hash(name string) (string, error) {
	if err := t.next(name); err != nil {
		return "", err
	}
	return t.memTree.Hash(name)
}

// TestTroubleOfATreeIsAnError: whichever read fails, nothing is made of what was read without
// it: what a cluster resolves to is remembered.
func TestTroubleOfATreeIsAnError(t *testing.T) {
	t.Parallel()

	own := with(moduleFiles(),
		"infra/own/reads.tf", "locals { a = fileset(\"../../policies\", \"*\") }\nmodule \"m\" { source = \"../../mods/mod-${var.size}/eu\" }\n",
		"policies/one.json", "{}", "mods/mod-a/eu/main.tf", "",
		"infra/own/terraform.tfvars", "size = 1\n", "infra/own/"+rootmodule.SecretFile, `{"password": {"env": "PASSWORD"}}`,
	)
	for name, tc := range map[string]struct {
		files map[string]string
		doc   document.Document
	}{
		"a module":   {own, clusterOf(t, "c.yaml", moduleCluster)},
		"a template": {richFiles(), clusterWith(t, "node_count: 3", "enable_monitoring: true")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 1; ; at++ {
				tr := &troubledTree{memTree: tree(tc.files), at: at}
				_, faults, err := templates.NewResolver(nil).Resolve(t.Context(), tr, tc.doc)
				if tr.n < at {
					break
				}
				if !errors.Is(err, holdfast.ErrUnavailable) {
					t.Errorf("read %d fails, and Resolve gives %v, faults %v", at, err, faults)
				}
			}
		})
	}
}
