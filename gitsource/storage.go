package gitsource

import (
	"bytes"
	"io"
	"os"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const (
	// cacheSize bounds what one reader keeps of objects.
	cacheSize = 4 * cache.MiByte
	// largeObject is the size in bytes from which objects are read piece by
	// piece.
	largeObject = 1 << 20
)

// openStore opens the objects of a bare repository for one goroutine. It costs
// little; indexes are read at the first use.
func openStore(dir string) *filesystem.Storage {
	files := indexFiles{osfs.New(dir, osfs.WithBoundOS())}
	return filesystem.NewStorageWithOptions(files, cache.NewObjectLRU(cacheSize),
		filesystem.Options{LargeObjectThreshold: largeObject})
}

// indexFiles reads the indexes of packs at once: go-git does it by four bytes,
// each a system call.
type indexFiles struct{ billy.Filesystem }

func (f indexFiles) Open(name string) (billy.File, error) {
	file, err := f.Filesystem.Open(name)
	if err != nil || !strings.HasSuffix(name, ".idx") {
		return file, err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	return &indexFile{Reader: bytes.NewReader(data), name: name}, nil
}

// indexFile is a file that was read, and cannot be written.
type indexFile struct {
	*bytes.Reader
	name string
}

func (f *indexFile) Name() string              { return f.name }
func (f *indexFile) Close() error              { return nil }
func (f *indexFile) Write([]byte) (int, error) { return 0, os.ErrPermission }
func (f *indexFile) Truncate(int64) error      { return os.ErrPermission }
func (f *indexFile) Lock() error               { return nil }
func (f *indexFile) Unlock() error             { return nil }
