package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

const (
	// ownerKey is the object that says whose bucket it is.
	ownerKey = "holdfast-owner"
	// maxOwner bounds what is read of it: its content is not trusted.
	maxOwner = 1 << 10
	// ProbeFolder is where, below the name of an installation, a crash can leave an object of
	// Probe. It belongs to nobody.
	ProbeFolder = "probe"
)

// OwnerError says that a bucket belongs to another installation, or lacks what this one has
// stored.
type OwnerError struct{ text, hint string }

func (e *OwnerError) Error() string { return e.text }

// Hint says what to do.
func (e *OwnerError) Hint() string { return e.hint }

// Claim checks that a bucket does all that is asked of it ([Bucket.Probe]) and that it is the
// installation's: its name is in it, or is written now. A bucket without a name is not
// accepted if the installation has stored objects and none of samples, which are some of
// their keys, is there: it must be another one. A folder is not claimed.
func (b *Bucket) Claim(ctx context.Context, installation string, samples []string) error {
	if b.files != nil {
		return nil
	}
	if err := b.Probe(ctx, installation); err != nil {
		return err
	}
	owner, err := b.owner(ctx)
	if errors.Is(err, holdfast.ErrNotFound) {
		if err := b.holdsOne(ctx, samples); err != nil {
			return err
		}
		if err = b.put(ctx, ownerKey, []byte(installation+"\n"), true); err == nil {
			return nil
		}
		if !errors.Is(err, errExists) {
			return err
		}
		owner, err = b.owner(ctx) // somebody was faster
	}
	if err != nil {
		return err
	}
	if owner != installation {
		return &OwnerError{
			fmt.Sprintf("bucket %s belongs to another installation: its object %s names %q, this one is %q", b.name, ownerKey, owner, installation),
			"give each installation a bucket, or a folder of one, of its own: datastore.blobs.url may end with /FOLDER",
		}
	}
	return nil
}

func (b *Bucket) owner(ctx context.Context) (string, error) {
	data, err := b.get(ctx, ownerKey, maxOwner)
	return strings.TrimSpace(string(data)), err
}

// holdsOne refuses a bucket that has none of the given objects, if there are any.
func (b *Bucket) holdsOne(ctx context.Context, samples []string) error {
	for _, key := range samples {
		if has, err := b.Exists(ctx, key); has || err != nil {
			return err
		}
	}
	if len(samples) == 0 {
		return nil
	}
	return &OwnerError{
		fmt.Sprintf("bucket %s has nothing of what this installation has stored, such as %s", b.name, samples[0]),
		"copy the objects there first, with their names (docs/stores.md says how), or correct datastore.blobs.url",
	}
}

// Probe writes, reads, lists and deletes a small object with a random name, and returns
// what does not work. A store that is unavailable is an ErrUnavailable.
func (b *Bucket) Probe(ctx context.Context, installation string) error {
	key := installation + "/" + ProbeFolder + "/" + randomName()
	want := []byte("This object shows that the bucket can be used. It can be deleted.\n")
	if err := b.put(ctx, key, want, false); err != nil {
		return err
	}
	got, err := b.get(ctx, key, int64(len(want))+1)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("read %s/%s: it is not what was written: %w", b.name, key, holdfast.ErrUnavailable)
	}
	listed := false
	if err == nil {
		err = b.List(ctx, key, func(page []Object) error {
			listed = listed || len(page) > 0
			return nil
		})
	}
	if err == nil && !listed {
		err = fmt.Errorf("list %s/%s: what was written is not in it: %w", b.name, key, holdfast.ErrUnavailable)
	}
	return errors.Join(err, b.Delete(ctx, key))
}

// Look asks the store for a sign of life, to update Problem.
func (b *Bucket) Look(ctx context.Context) {
	if b.files == nil {
		_, _ = b.Exists(ctx, ownerKey)
	}
}

// put stores a few bytes.
func (b *Bucket) put(ctx context.Context, key string, data []byte, fresh bool) error {
	held := newSpool(b.spool)
	defer held.close()
	if _, err := held.Write(data); err != nil {
		return err
	}
	return b.send(ctx, key, held, fresh)
}

// get reads at most limit bytes.
func (b *Bucket) get(ctx context.Context, key string, limit int64) ([]byte, error) {
	r, err := b.Read(ctx, key)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, limit))
	return data, errors.Join(err, r.Close())
}
