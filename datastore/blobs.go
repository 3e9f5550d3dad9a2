package datastore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// maxInline is how many bytes are kept in a row rather than in the bucket: one
// commit is then all that a small thing costs.
const maxInline = 16 << 10

// maxContent bounds one content: a plan file or plan JSON beyond it is not a plan
// that anybody reads.
const maxContent = 1 << 30

// errTooLarge: more than maxContent.
var errTooLarge = fmt.Errorf("larger than %d MiB", maxContent>>20)

// content is where a stored thing's bytes are: in the row itself if they are few,
// otherwise in the bucket. Keys are never used twice, so that what is written to the
// bucket belongs to nothing until a row says so, and is whole then.
type content struct {
	key    string
	inline []byte // ciphertext; nil: in the bucket
	size   int64  // of the plain text, in bytes
	origin []byte // of a state that has moved: see sealedFor
}

// openBlobs opens the bucket, and refuses one that is another database's.
func (s *records) openBlobs(ctx context.Context, opts objects.Options, store string) (err error) {
	if s.blobs, err = objects.Open(ctx, opts); err != nil {
		return err
	}
	s.prefix = store + "/"
	var samples []string // a few of each kind will do to tell the bucket that has them
	for _, table := range []string{"state_versions", "artefacts", "bundles"} {
		some, err := texts(ctx, s.db.reader(), `SELECT blob FROM `+table+` WHERE inline IS NULL ORDER BY blob LIMIT 2`)
		if err != nil {
			return fmt.Errorf("look for blobs: %w", err)
		}
		samples = append(samples, some...)
	}
	return s.blobs.Claim(ctx, store, samples)
}

// BlobProblem is why large contents could be neither stored nor read when that was last
// tried, in words for everybody; empty if they could.
func (s *records) BlobProblem() string {
	if s.blobs == nil {
		return ""
	}
	return s.blobs.Problem()
}

// CheckBlobs asks the bucket for a sign of life, so that BlobProblem is not of long ago.
func (s *records) CheckBlobs(ctx context.Context) { s.blobs.Look(ctx) }

// put encrypts what r gives and stores it, durably when it returns. Nothing is
// stored if r fails or is too large.
func (s *records) put(ctx context.Context, purpose, name string, r io.Reader) (content, error) {
	id := randomHex(16)
	c := content{key: s.prefix + purpose + "/" + id[:2] + "/" + id[2:]}

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
	c.size, err = s.blobs.Write(ctx, c.key, func(w io.Writer) (int64, error) {
		return s.sealTo(w, seal.Label(purpose, contentName(name, c.key)), rest)
	})
	if err != nil {
		return content{}, err
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
	r, err := s.blobs.Read(ctx, c.key)
	if errors.Is(err, holdfast.ErrNotFound) {
		// Not an ErrNotFound: a record says that it is there.
		return nil, fmt.Errorf("blob %s is gone: %w", c.key, seal.ErrTampered)
	}
	if err != nil {
		return nil, err
	}
	plain, err := seal.NewReader(r, s.keys, seal.Label(purpose, contentName(name, c.key)))
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("blob %s: %w", c.key, err)
	}
	return &blobReader{from: plain, Closer: r, key: c.key}, nil
}

// blobReader names what is damaged.
type blobReader struct {
	from io.Reader
	io.Closer
	key string
}

func (r *blobReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if errors.Is(err, seal.ErrTampered) {
		err = fmt.Errorf("blob %s: %w", r.key, err)
	}
	return n, err
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

// drop removes contents that no row refers to, for certain: their rows were removed by a
// commit that has reached the disk, or never written. What cannot be removed now is left to
// Sweep.
func (s *records) drop(ctx context.Context, contents ...content) {
	for _, c := range contents {
		if c.inline != nil || c.key == "" {
			continue
		}
		if err := s.blobs.Delete(context.WithoutCancel(ctx), c.key); err != nil {
			s.log.WarnContext(ctx, "left a blob behind", "err", err)
			if errors.Is(err, holdfast.ErrUnavailable) {
				return // the others would wait as long
			}
		}
	}
}

// purposes are what contents are stored for: the folders of the bucket.
var purposes = []string{"artefact", "bundle", "state", objects.ProbeFolder}

// sweepBucket removes what no row refers to and is older than before, and
// returns how many blobs that were.
func (s *sweeper) sweepBucket(ctx context.Context, before time.Time) (int, error) {
	removed := 0
	for _, purpose := range purposes {
		for _, prefix := range s.folders(purpose) {
			n, err := s.sweepFolder(ctx, prefix, before)
			removed += n
			if err != nil {
				return removed, fmt.Errorf("sweep bucket: %w", err)
			}
		}
	}
	return removed, nil
}

// folders are what is listed at once: of a folder on disk one of those that put makes, as
// the disk is walked again for each page of a list.
func (s *sweeper) folders(purpose string) []string {
	folder := s.prefix + purpose + "/"
	if s.blobs.Remote() {
		return []string{folder}
	}
	var all []string
	for i := range 256 {
		all = append(all, fmt.Sprintf("%s%02x/", folder, i))
	}
	return all
}

const (
	// sweepKeys is how many blobs are looked for in the rows at once.
	sweepKeys = 200
	// listTries is how often a folder is listed: a list of files fails when one
	// of them goes or gets its name while it is made.
	listTries = 10
)

// sweepFolder sweeps a folder, a page at a time. One that does not stay still is left to the
// next sweep.
func (s *sweeper) sweepFolder(ctx context.Context, prefix string, before time.Time) (removed int, err error) {
	for range listTries {
		err = s.blobs.List(ctx, prefix, func(page []objects.Object) error {
			var keys []string
			for _, object := range page {
				if object.ModTime.Before(before) {
					keys = append(keys, object.Key)
				}
			}
			for some := range slices.Chunk(keys, sweepKeys) {
				n, err := s.removeUnused(ctx, some)
				removed += n
				if err != nil {
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, holdfast.ErrNotFound) {
			return removed, err
		}
	}
	return removed, nil
}

func (s *sweeper) removeUnused(ctx context.Context, keys []string) (int, error) {
	unused, err := s.unused(ctx, keys)
	if err != nil || len(unused) == 0 {
		return 0, err
	}
	if err := s.settle(ctx); err != nil {
		return 0, err
	}
	for i, key := range unused {
		if err := s.blobs.Delete(ctx, key); err != nil {
			return i, err
		}
	}
	return len(unused), nil
}

// settle returns when all that readers see is on the disk: commits reach it in their order.
func (s *sweeper) settle(ctx context.Context) error {
	return s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `UPDATE identity SET store = store WHERE id = 1`)
		return err
	})
}

// unused are the keys that no row refers to.
func (s *sweeper) unused(ctx context.Context, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var c conditions
	c.Add(`inline IS NULL`)
	in(&c, "blob", keys)
	found, err := texts(ctx, s.db.reader(), `SELECT blob FROM artefacts`+c.Where()+
		` UNION ALL SELECT blob FROM bundles`+c.Where()+` UNION ALL SELECT blob FROM state_versions`+c.Where(), slices.Concat(c.Args, c.Args, c.Args)...)
	if err != nil {
		return nil, err
	}
	used := make(map[string]bool, len(found))
	for _, key := range found {
		used[key] = true
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return used[key] }), nil
}

// attemptName names an artefact or log by the attempt that it is of.
func attemptName(ref holdfast.AttemptRef, name string) string {
	return fmt.Sprintf("%s/%d/%s", ref.Run, ref.Attempt, name)
}
