package templates_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// memTree is a tree in memory. A content that starts with "-> " is a symbolic
// link. Hashes are remembered, as Git has them at hand.
type memTree struct {
	fstest.MapFS
	mu     sync.Mutex
	hashes map[string]string
	reads  int
}

func tree(files map[string]string) *memTree {
	t := &memTree{MapFS: fstest.MapFS{}, hashes: map[string]string{}}
	for name, content := range files {
		file := &fstest.MapFile{Data: []byte(content), Mode: 0o644}
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			file = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
		}
		t.MapFS[name] = file
	}
	return t
}

func (t *memTree) ReadFile(name string) ([]byte, error) {
	t.mu.Lock()
	t.reads++
	t.mu.Unlock()
	if f := t.MapFS[name]; f != nil && f.Mode&fs.ModeSymlink != 0 {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	data, err := t.MapFS.ReadFile(name)
	if string(data) == "LFS" { // stands for a pointer, which trees refuse
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a Git LFS pointer")}
	}
	return data, err
}

func (t *memTree) Hash(name string) (string, error) {
	t.mu.Lock()
	hash, ok := t.hashes[name]
	t.mu.Unlock()
	if ok {
		return hash, nil
	}
	sum := sha256.New()
	if f := t.MapFS[name]; f != nil {
		fmt.Fprintf(sum, "file %v ", f.Mode)
		sum.Write(f.Data)
	} else {
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
	}
	hash = fmt.Sprintf("%x", sum.Sum(nil))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hashes[name] = hash
	return hash, nil
}

// diskTree reads a folder of the disk into memory.
func diskTree(t testing.TB, dir string) *memTree {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree(files)
}

// clusterOf parses the only cluster of a text.
func clusterOf(t testing.TB, name, text string) document.Document {
	t.Helper()
	docs, faults := document.ParseClusters(name, []byte(text))
	if len(faults) > 0 || len(docs) != 1 {
		t.Fatalf("ParseClusters gives %d clusters and\n%v", len(docs), faults.Err())
	}
	return docs[0]
}

func resolve(t testing.TB, tree holdfast.Tree, doc document.Document) *templates.Root {
	t.Helper()
	root, faults, err := templates.NewResolver(nil).Resolve(t.Context(), tree, doc)
	if err != nil || len(faults) > 0 {
		t.Fatalf("Resolve: %v\n%v", err, faults.Err())
	}
	return root
}

func resolveFaults(t testing.TB, tree holdfast.Tree, doc document.Document) holdfast.Faults {
	t.Helper()
	root, faults, err := templates.NewResolver(nil).Resolve(t.Context(), tree, doc)
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) > 0 && root != nil {
		t.Error("Resolve gives a root beside faults")
	}
	return faults
}

func wantFaults(t testing.TB, got holdfast.Faults, want ...string) {
	t.Helper()
	text := strings.Join(want, "\n")
	if got.Error() != text {
		t.Errorf("faults:\n%s\nwant:\n%s", got.Error(), text)
	}
}

// short returns a cluster whose spec has lines added.
func short(lines ...string) string {
	return "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\nspec:\n  project: p\n  environment: e\n  " +
		strings.Join(lines, "\n  ") + "\n"
}
