package diff_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"testing/fstest"
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
		fmt.Fprintf(sum, "file %v %q", f.Mode, f.Data)
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
