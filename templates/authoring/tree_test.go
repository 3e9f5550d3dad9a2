package authoring_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/authoring"
)

// memTree is a tree in memory.
type memTree struct{ fstest.MapFS }

func (t memTree) Hash(name string) (string, error) {
	sum := sha256.New()
	if f := t.MapFS[name]; f != nil {
		sum.Write(f.Data)
		return fmt.Sprintf("%x", sum.Sum(nil)), nil
	}
	list, err := t.ReadDir(name)
	if err != nil {
		return "", err
	}
	for _, item := range list {
		hash, err := t.Hash(path.Join(name, item.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %s\n", item.Name(), hash)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// below makes a tree of files in a folder.
func below(dir string, files map[string][]byte) memTree {
	t := memTree{fstest.MapFS{}}
	for name, data := range files {
		t.MapFS[path.Join(dir, name)] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
	return t
}

// diskTree reads a folder into memory.
func diskTree(t testing.TB, dir string) memTree {
	t.Helper()
	out := memTree{fstest.MapFS{}}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(os.DirFS(dir), name)
		out.MapFS[name] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// scaffolded returns the files of a new template.
func scaffolded(t testing.TB, name string, providers ...string) map[string][]byte {
	t.Helper()
	files, err := authoring.New(name, providers)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// open opens a draft that must be fine.
func open(t testing.TB, tree holdfast.Tree, dir string) *authoring.Draft {
	t.Helper()
	d, faults, err := authoring.Open(t.Context(), tree, dir)
	if err != nil || len(faults) > 0 {
		t.Fatalf("open %s: %v\n%v", dir, err, faults)
	}
	return d
}

// replaced changes one file of a template; what is replaced must be there.
func replaced(t testing.TB, files map[string][]byte, file, old, new string) map[string][]byte {
	t.Helper()
	if !strings.Contains(string(files[file]), old) {
		t.Fatalf("%s has no %q", file, old)
	}
	out := map[string][]byte{}
	for name, data := range files {
		out[name] = data
	}
	out[file] = []byte(strings.Replace(string(files[file]), old, new, 1))
	return out
}
