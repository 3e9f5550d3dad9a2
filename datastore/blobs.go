package datastore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/gcerrors"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/durable"
)

// maxInline is how many bytes are kept in a row rather than in the bucket: one
// commit is then all that a small thing costs.
const maxInline = 16 << 10

// maxContent bounds one content: a plan file or plan JSON beyond it is not a plan
// that anybody reads.
const maxContent = 1 << 30

// errTooLarge: more than maxContent.
var errTooLarge = fmt.Errorf("larger than %d MiB", maxContent>>20)

// content is where a stored thing's bytes are: in the row itself if they are
// few, else in the bucket. Keys are never used twice, so that what is written to
// the bucket belongs to nothing until a row says so, and is whole then.
type content struct {
	key    string
	inline []byte // ciphertext; nil: in the bucket
	size   int64  // of the plain text, in bytes
	origin []byte // of a state that has moved: see sealedFor
}

// bucket is where large content is.
type bucket struct {
	blobs  *blob.Bucket
	dir    string // of a file bucket; empty for others, which are durable as they are
	prefix string // of our keys: several databases may share a bucket

	mu     sync.Mutex
	synced map[string]bool // folders whose own names are durable
}

func openBucket(ctx context.Context, address, dir, store string) (*bucket, error) {
	b := &bucket{dir: dir, prefix: store + "/", synced: map[string]bool{}}
	var err error
	if address != "" {
		b.blobs, err = blob.OpenBucket(ctx, address)
	} else {
		b.blobs, err = fileblob.OpenBucket(dir, &fileblob.Options{
			CreateDir:   true,
			DirFileMode: 0o700,
			NoTempDir:   true, // a rename from another disk would not work
			Metadata:    fileblob.MetadataDontWrite,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	return b, nil
}

func (b *bucket) close() error { return b.blobs.Close() }

// put encrypts what r gives and stores it, durably when it returns. Nothing is
// stored if r fails or is too large.
func (s *records) put(ctx context.Context, purpose, name string, r io.Reader) (content, error) {
	id := randomHex(16)
	c := content{key: s.blobs.prefix + purpose + "/" + id[:2] + "/" + id[2:]}

	head := make([]byte, maxInline+1)
	n, err := io.ReadFull(r, head)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.size = int64(n)
		c.inline, err = s.keys.Seal(purpose, contentName(name, c.key), head[:n])
		return c, err
	case err != nil:
		return content{}, err
	}
	rest := io.MultiReader(bytes.NewReader(head), r)
	c.size, err = s.blobs.write(ctx, c.key, func(w io.Writer) (int64, error) {
		return s.sealTo(w, seal.Label(purpose, contentName(name, c.key)), rest)
	})
	if err != nil {
		return content{}, fmt.Errorf("write blob: %w", err)
	}
	return c, nil
}

// randomHex returns n random bytes as text.
func randomHex(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(raw)
}

// contentName binds a ciphertext to its thing and to its place.
func contentName(name, key string) string { return name + "\x00" + key }

func (s *records) sealTo(w io.Writer, label []byte, r io.Reader) (int64, error) {
	sealer, err := seal.NewWriter(w, s.keys, label)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(sealer, io.LimitReader(r, maxContent+1))
	if err != nil {
		return 0, err
	}
	if n > maxContent {
		return 0, errTooLarge
	}
	return n, sealer.Close()
}

// write stores what fill writes under key, whole and durable, or not at all.
func (b *bucket) write(ctx context.Context, key string, fill func(w io.Writer) (int64, error)) (n int64, err error) {
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	var file *os.File
	w, err := b.blobs.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType: "application/octet-stream",
		BeforeWrite: func(as func(any) bool) error {
			if b.dir != "" {
				as(&file)
			}
			return nil
		},
	})
	if err != nil {
		return 0, err
	}
	n, err = fill(w)
	if err == nil && file != nil {
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
	if file == nil {
		return n, nil
	}
	return n, b.syncName(filepath.Dir(file.Name()))
}

// syncName makes the name of a new file in dir durable, and that of dir itself the first time.
func (b *bucket) syncName(dir string) error {
	if err := durable.SyncDir(dir); err != nil {
		return err
	}
	b.mu.Lock()
	known := b.synced[dir]
	b.mu.Unlock()
	if known {
		return nil
	}
	if root, err := filepath.Abs(b.dir); err != nil {
		return err
	} else if dir != root && len(dir) > len(root) {
		if err := b.syncName(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	b.mu.Lock()
	b.synced[dir] = true
	b.mu.Unlock()
	return nil
}

// get opens the plain text of a content. What is read is checked as it is read:
// the end is reached without an error only if all of it is as it was written.
func (s *records) get(ctx context.Context, purpose, name string, c content) (io.ReadCloser, error) {
	if c.inline != nil {
		plain, err := s.keys.Unseal(purpose, contentName(name, c.key), c.inline)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(plain)), nil
	}
	r, err := s.blobs.blobs.NewReader(ctx, c.key, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, fmt.Errorf("blob %s is gone: %w", c.key, seal.ErrTampered)
	}
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	plain, err := seal.NewReader(r, s.keys, seal.Label(purpose, contentName(name, c.key)))
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{plain, r}, nil
}

// getAll is get for what fits into memory.
func (s *records) getAll(ctx context.Context, purpose, name string, c content) ([]byte, error) {
	r, err := s.get(ctx, purpose, name, c)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// drop removes contents that no row refers to now. What cannot be removed now is left to Sweep.
func (s *records) drop(ctx context.Context, contents ...content) {
	for _, c := range contents {
		if c.inline != nil || c.key == "" {
			continue
		}
		if err := s.blobs.blobs.Delete(context.WithoutCancel(ctx), c.key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			s.log.WarnContext(ctx, "left a blob behind", "err", err)
		}
	}
}

// purposes are what contents are stored for: the folders of the bucket.
var purposes = []string{"artefact", "bundle", "state"}

// sweepBucket removes what no row refers to and is older than before, and
// returns how many blobs that were. It goes by the folders that put makes: a
// bucket of files is walked again for each page of a list.
func (s *sweeper) sweepBucket(ctx context.Context, before time.Time) (int, error) {
	removed := 0
	for _, purpose := range purposes {
		for i := range 256 {
			keys, err := s.olderBlobs(ctx, fmt.Sprintf("%s%s/%02x/", s.blobs.prefix, purpose, i), before)
			if err != nil {
				return removed, fmt.Errorf("list bucket: %w", err)
			}
			for some := range slices.Chunk(keys, sweepKeys) {
				n, err := s.removeUnused(ctx, some)
				removed += n
				if err != nil {
					return removed, err
				}
			}
		}
	}
	return removed, nil
}

const (
	// sweepKeys is how many blobs are looked for in the rows at once.
	sweepKeys = 200
	// listTries is how often a folder is listed: a list of files fails when one
	// of them goes or gets its name while it is made.
	listTries = 10
)

// olderBlobs lists what was last written before a time. A folder that does not
// stay still is left to the next sweep.
func (s *sweeper) olderBlobs(ctx context.Context, prefix string, before time.Time) ([]string, error) {
	for range listTries {
		var keys []string
		list := s.blobs.blobs.List(&blob.ListOptions{Prefix: prefix})
		object, err := list.Next(ctx)
		for ; err == nil; object, err = list.Next(ctx) {
			if object.ModTime.Before(before) {
				keys = append(keys, object.Key)
			}
		}
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if gcerrors.Code(err) != gcerrors.NotFound {
			return nil, err
		}
	}
	return nil, nil
}

func (s *sweeper) removeUnused(ctx context.Context, keys []string) (int, error) {
	if len(keys) == 0 {
		return 0, nil
	}
	var c conditions
	c.Add(`inline IS NULL`)
	in(&c, "blob", keys)
	found, err := texts(ctx, s.db.reader(), `SELECT blob FROM artefacts`+c.Where()+
		` UNION ALL SELECT blob FROM bundles`+c.Where()+` UNION ALL SELECT blob FROM state_versions`+c.Where(), slices.Concat(c.Args, c.Args, c.Args)...)
	if err != nil {
		return 0, err
	}
	used := make(map[string]bool, len(found))
	for _, key := range found {
		used[key] = true
	}
	removed := 0
	for _, key := range keys {
		if used[key] {
			continue
		}
		if err := s.blobs.blobs.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return removed, fmt.Errorf("remove blob: %w", err)
		}
		removed++
	}
	return removed, nil
}

// attemptName names an artefact or log by the attempt that it is of.
func attemptName(ref holdfast.AttemptRef, name string) string {
	return fmt.Sprintf("%s/%d/%s", ref.Run, ref.Attempt, name)
}
