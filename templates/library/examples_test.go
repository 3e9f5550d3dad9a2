package library_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/tfschema"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// diskTree is a folder as a tree. Its hashes are those of what is there, which
// does for a tree that does not change.
type diskTree struct{ fs.FS }

func (d diskTree) ReadFile(name string) ([]byte, error)       { return fs.ReadFile(d.FS, name) }
func (d diskTree) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(d.FS, name) }
func (d diskTree) Stat(name string) (fs.FileInfo, error)      { return fs.Stat(d.FS, name) }

// Hash returns a different word for each path: good enough where nothing changes.
func (d diskTree) Hash(name string) (string, error) {
	_, err := d.Stat(name)
	return "hash of " + name, err
}

// examples returns the documents of all examples, by the name of their file.
func examples(t *testing.T, tree holdfast.Tree) map[string]document.Document {
	t.Helper()
	entries, err := tree.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]document.Document{}
	for _, entry := range entries {
		name := "examples/" + entry.Name()
		data, err := tree.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		docs, faults := document.ParseClusters(name, data)
		if len(faults) > 0 || len(docs) != 1 {
			t.Fatalf("%s has %d clusters and\n%v", name, len(docs), faults)
		}
		all[strings.TrimSuffix(entry.Name(), ".yaml")] = docs[0]
	}
	return all
}

// resolve makes the root module of a cluster.
func resolve(t *testing.T, tree holdfast.Tree, doc document.Document) *templates.Root {
	t.Helper()
	root, faults, err := templates.NewResolver(nil).Resolve(t.Context(), tree, doc)
	if err != nil || len(faults) > 0 {
		t.Fatalf("%v\n%v", err, faults)
	}
	return root
}

// TestExamplesFitTheModules resolves every example, and holds its root module
// and the values of its variables to the modules that it calls.
func TestExamplesFitTheModules(t *testing.T) {
	t.Parallel()

	tree, known := diskTree{os.DirFS("kubernetes")}, facts(t)
	all := examples(t, tree)
	for _, cloud := range clouds {
		for _, kind := range []string{"basic", "advanced"} {
			if _, ok := all[cloud+"-"+kind]; !ok {
				t.Errorf("there is no %s example for %s", kind, cloud)
			}
		}
	}
	for name, doc := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := resolve(t, tree, doc)
			fsys := unpack(t, root)
			_, faults := tfschema.Check(fsys, root.Dir, known)
			for _, fault := range faults {
				t.Error(fault)
			}
			for _, dir := range called(t, fsys, root.Dir) {
				m, _ := tfschema.Check(fsys, dir, known)
				for input, v := range m.Variables {
					value, given := root.Variables[input]
					if !given {
						continue
					}
					if _, err := convert.Convert(ctyValue(t, value), v.Type); err != nil {
						t.Errorf("%s: %s: %s", dir, input, err)
					}
				}
			}
		})
	}
}

// called returns the folders of the modules that a root module calls.
func called(t *testing.T, fsys fs.FS, dir string) []string {
	t.Helper()
	data, err := fs.ReadFile(fsys, path.Join(dir, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, match := range regexp.MustCompile(`source += "(\.[^"]*)"`).FindAllSubmatch(data, -1) {
		dirs = append(dirs, path.Join(dir, string(match[1])))
	}
	if len(dirs) != 3 {
		t.Fatalf("%s calls %v, want a network, a kubernetes and an essentials module, which all examples switch on", dir, dirs)
	}
	return dirs
}

func ctyValue(t *testing.T, value any) cty.Value {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	typ, err := ctyjson.ImpliedType(data)
	if err != nil {
		t.Fatal(err)
	}
	v, err := ctyjson.Unmarshal(data, typ)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// terraform runs the engine in a folder, with its configuration and more of an
// environment, and returns what it said. On a laptop a test may go without; in
// CI it may not.
func terraform(t *testing.T, dir, settings string, env []string, args ...string) (string, error) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an engine")
	}
	bin, err := exec.LookPath("terraform")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("terraform is not on PATH")
	} else if err != nil {
		t.Skip("terraform is not on PATH: nothing is planned")
	}
	config := filepath.Join(dir, "cli.tfrc")
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = dir
	// An engine and its providers live for moments: to collect garbage is a fifth of their work.
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CHECKPOINT_DISABLE=1", "GOGC=400", "TF_CLI_CONFIG_FILE=" + config}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func write(t *testing.T, dir string, fsys fstest.MapFS) {
	t.Helper()
	for name, file := range fsys {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLocalExamplesAreApplied applies the examples that need no cloud, and finds
// nothing to do afterwards.
func TestLocalExamplesAreApplied(t *testing.T) {
	t.Parallel()

	tree := diskTree{os.DirFS("kubernetes")}
	for name, doc := range examples(t, tree) {
		if !strings.HasPrefix(name, "local-") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			applyTwice(t, unpack(t, resolve(t, tree, doc)), "", nil)
		})
	}
}

// unpack returns the files of a root module's bundle.
func unpack(t *testing.T, root *templates.Root) fstest.MapFS {
	t.Helper()
	data, _, err := root.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{}
	for archive := tar.NewReader(zip); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return fsys
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		fsys[head.Name] = &fstest.MapFile{Data: body}
	}
}
