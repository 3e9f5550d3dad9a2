package objects

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/objects/address"
)

// Options say where objects are kept. The zero value is not usable: either URL or Dir is
// required.
type Options struct {
	// URL is a bucket: s3://BUCKET/PREFIX?region=R&endpoint=URL&pathStyle=BOOL,
	// gs://BUCKET/PREFIX?endpoint=URL or azblob://CONTAINER/PREFIX?account=NAME&endpoint=URL.
	// Empty means files in Dir.
	URL string
	// Dir is a folder on a local disk, made if it is missing. With a URL it is where an
	// object that does not fit into memory waits to be sent; empty means the system's
	// folder for temporary files.
	Dir string
	// AccessKey is the id of an S3 access key. It goes with Secret.
	AccessKey string
	// Secret returns the credential: the secret of the access key for S3, the key of the
	// storage account for Azure, the JSON of a service account for GCS. It is called
	// again at intervals, so that it can be rotated. Nil means what the environment has:
	// variables, files and services of the cloud, as its own tools look for them.
	Secret func() (string, error)
	// CAFile has further certificate authorities, in PEM, to trust besides the system's.
	CAFile string
	Logger *slog.Logger // nil discards
}

// Bucket is where objects are. It is safe for concurrent use.
type Bucket struct {
	name   string // in errors
	blobs  *blob.Bucket
	files  *files // nil: objects are elsewhere, and durable when they are there
	cloud  cloud
	limits limits
	spool  string // the folder for what is to be sent
	log    *slog.Logger

	trouble atomic.Pointer[Error] // why the last call failed; nil: it did not
}

// cloud is what differs between stores.
type cloud struct {
	// explain returns the answer of the store that an error comes from, if it is one.
	explain func(err error) (answer, bool)
	// options are for one object of that many bytes and that MD5 sum.
	options func(size int64, sum []byte) *blob.WriterOptions
	// hints are what to do, by kind, where it is not the same for all stores.
	hints map[kind]string
}

// Open returns the bucket. It reaches nothing yet, apart from a folder, which it makes:
// see [Bucket.Claim].
func Open(ctx context.Context, opts Options) (*Bucket, error) { return open(ctx, opts, usualLimits) }

func open(ctx context.Context, opts Options, within limits) (*Bucket, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.URL == "" {
		return openDir(opts)
	}
	at, err := address.Parse(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("open bucket: its URL %w", err)
	}
	b := &Bucket{name: at.String(), limits: within, spool: opts.Dir, log: opts.Logger}
	switch at.Scheme {
	case address.S3:
		b.blobs, b.cloud, err = openS3(ctx, opts, at, within)
	case address.Azure:
		b.blobs, b.cloud, err = openAzure(ctx, opts, at, within)
	case address.GCS:
		b.blobs, b.cloud, err = openGCS(ctx, opts, at, within)
	}
	var none *credentialsError
	if errors.As(err, &none) {
		return nil, b.failure("open", at.String(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", at, err)
	}
	if at.Prefix != "" {
		b.blobs = blob.PrefixedBucket(b.blobs, at.Prefix)
	}
	return b, nil
}

// Close lets the bucket go.
func (b *Bucket) Close() error { return b.blobs.Close() }

// Remote reports whether objects are elsewhere than on a disk of this machine.
func (b *Bucket) Remote() bool { return b.files == nil }

// Write stores what fill writes under a key, whole and durable when it returns, or not
// at all. It returns what fill returns. An error of fill is returned as it is.
func (b *Bucket) Write(ctx context.Context, key string, fill func(w io.Writer) (int64, error)) (int64, error) {
	if b.files != nil {
		return b.files.write(ctx, b.blobs, key, fill)
	}
	held := newSpool(b.spool)
	defer held.close()
	n, err := fill(held)
	if err != nil {
		return 0, err
	}
	return n, b.send(ctx, key, held, false)
}

// send stores what was spooled. With fresh it is an errExists if there is something
// under that key.
func (b *Bucket) send(ctx context.Context, key string, held *spool, fresh bool) error {
	return b.try(ctx, "write", key, func(ctx context.Context) error {
		opts := b.cloud.options(held.size, held.sum())
		opts.ContentType, opts.IfNotExist = "application/octet-stream", fresh
		return b.blobs.Upload(ctx, key, held.reader(), opts)
	})
}

// Read opens an object. A connection that breaks is made again where it broke off. The
// end is reached without an error only if all was read that is there.
func (b *Bucket) Read(ctx context.Context, key string) (io.ReadCloser, error) {
	if b.files != nil {
		r, err := b.blobs.NewReader(ctx, key, nil)
		return r, b.explained("read", key, err)
	}
	from, err := b.open(ctx, key, 0)
	if err != nil {
		return nil, err
	}
	return &reader{from: from, size: from.Size(), reopen: func(at int64) (*blob.Reader, error) { return b.open(ctx, key, at) }}, nil
}

// open has the deadlines of the client: a body is read as long as it comes.
func (b *Bucket) open(ctx context.Context, key string, at int64) (r *blob.Reader, err error) {
	err = b.try(ctx, "read", key, func(ctx context.Context) (err error) {
		r, err = b.blobs.NewRangeReader(ctx, key, at, -1, nil)
		return err
	})
	return r, err
}

// Delete removes an object. A missing object is not an error.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	err := b.try(ctx, "delete", key, func(ctx context.Context) error {
		ctx, cancel := b.bounded(ctx)
		defer cancel()
		return b.blobs.Delete(ctx, key)
	})
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil
	}
	return err
}

// Exists reports whether there is an object under a key.
func (b *Bucket) Exists(ctx context.Context, key string) (bool, error) {
	err := b.try(ctx, "look at", key, func(ctx context.Context) error {
		ctx, cancel := b.bounded(ctx)
		defer cancel()
		_, err := b.blobs.Attributes(ctx, key)
		return err
	})
	if errors.Is(err, holdfast.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Object is what a list says of one.
type Object struct {
	Key     string
	Size    int64
	ModTime time.Time // by the clock of the store
}

// pageSize is how many objects a store lists at once; none lists more.
const pageSize = 1000

// List calls visit with what is under a prefix, a page at a time, until there is no more or
// visit returns an error. What is written or deleted meanwhile may or may not be included.
func (b *Bucket) List(ctx context.Context, prefix string, visit func([]Object) error) error {
	for token := blob.FirstPageToken; len(token) > 0; {
		var found []*blob.ListObject
		at := token
		err := b.try(ctx, "list", prefix, func(ctx context.Context) (err error) {
			ctx, cancel := b.bounded(ctx)
			defer cancel()
			found, token, err = b.blobs.ListPage(ctx, at, pageSize, &blob.ListOptions{Prefix: prefix})
			return err
		})
		if err != nil {
			return err
		}
		page := make([]Object, 0, len(found))
		for _, o := range found {
			page = append(page, Object{Key: o.Key, Size: o.Size, ModTime: o.ModTime})
		}
		if err := visit(page); err != nil {
			return err
		}
	}
	return nil
}

// randomName is a name that nobody else chooses.
func randomName() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(raw)
}
