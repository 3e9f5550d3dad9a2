package objects

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"github.com/holdfast-dev/holdfast/internal/durable"
)

// files makes what is written to a folder durable: a file is synced before it gets its
// name, and the name after it.
type files struct {
	dir string

	mu     sync.Mutex
	synced map[string]bool // folders whose own names are durable; guarded
}

func openDir(opts Options) (*Bucket, error) {
	blobs, err := fileblob.OpenBucket(opts.Dir, &fileblob.Options{
		CreateDir:   true,
		DirFileMode: 0o700,
		NoTempDir:   true, // a rename from another disk would not work
		Metadata:    fileblob.MetadataDontWrite,
	})
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	return &Bucket{
		name: opts.Dir, blobs: blobs, log: opts.Logger,
		files: &files{dir: opts.Dir, synced: make(map[string]bool)},
	}, nil
}

func (f *files) write(ctx context.Context, blobs *blob.Bucket, key string, fill func(w io.Writer) (int64, error)) (int64, error) {
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	var file *os.File
	w, err := blobs.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType: "application/octet-stream",
		BeforeWrite: func(as func(any) bool) error {
			as(&file)
			return nil
		},
	})
	if err != nil {
		return 0, err
	}
	n, err := fill(w)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		abandon() // a Close with a canceled context stores nothing
		_ = w.Close()
		return 0, err
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return n, f.syncName(filepath.Dir(file.Name()))
}

// syncName makes the name of a new file in dir durable, and that of dir itself the first time.
func (f *files) syncName(dir string) error {
	if err := durable.SyncDir(dir); err != nil {
		return err
	}
	f.mu.Lock()
	known := f.synced[dir]
	f.mu.Unlock()
	if known {
		return nil
	}
	if root, err := filepath.Abs(f.dir); err != nil {
		return err
	} else if dir != root && len(dir) > len(root) {
		if err := f.syncName(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	f.mu.Lock()
	f.synced[dir] = true
	f.mu.Unlock()
	return nil
}
