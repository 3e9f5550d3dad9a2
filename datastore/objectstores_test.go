package datastore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/objectserver"
)

// inStores runs a test with a store of each kind whose blobs are in a real object store.
func inStores(t *testing.T, test func(t *testing.T, server *objectserver.Server, opts datastore.Options)) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers")
	}
	for name, start := range objectserver.Starts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			test(t, server, datastore.Options{Path: emptyPath(t), Blobs: objects.Options{
				URL: server.MakeBucket("holdfast"), AccessKey: server.AccessKey,
				Secret: func() (string, error) { return server.Secret, nil },
			}})
		})
	}
}

// keysIn are the keys of a bucket, apart from that which says whose it is.
func keysIn(t testing.TB, opts objects.Options) []string {
	t.Helper()
	b := must[*objects.Bucket](t)(objects.Open(t.Context(), opts))
	defer b.Close()
	var keys []string
	err := b.List(t.Context(), "", func(page []objects.Object) error {
		for _, o := range page {
			if strings.Contains(o.Key, "/") {
				keys = append(keys, o.Key)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestContentsInStores: what is large is in the bucket, as ciphertext, for as long as a record
// refers to it.
func TestContentsInStores(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, _ *objectserver.Server, opts datastore.Options) {
		now := time.Now()
		opts.Retention.States, opts.Now = 2, func() time.Time { return now }
		store := openAt(t, opts)
		run := newRun(1)
		run.Kind = holdfast.RunApply
		run = claim(t, store, run)
		large := noise(100 << 10)
		putArtefact(t, store, run.Ref(), "document", large)
		putArtefact(t, store, run.Ref(), "document", large) // the blob of before goes
		putArtefact(t, store, run.Ref(), "small", large[:10])
		if err := store.PutBundle(t.Context(), "sha256:abc", large); err != nil {
			t.Fatal(err)
		}
		var states [][]byte
		for serial := range int64(4) { // two are kept
			states = append(states, stateJSON(serial+1, "lin", strings.Repeat("x", 100<<10)))
			must[holdfast.StateVersion](t)(store.PutState(t.Context(), holdfast.StateWrite{Location: run.StateLocation, By: run.Ref(), Data: states[serial]}))
		}
		keys := keysIn(t, opts.Blobs)
		if len(keys) != 4 {
			t.Errorf("the bucket has %d blobs, want an artefact, a bundle and two states: %v", len(keys), keys)
		}
		if got := artefact(t, store, run.ID, "document"); !bytes.Equal(got, large) {
			t.Error("the artefact is another one")
		}
		if got, _, err := store.State(t.Context(), run.StateLocation); err != nil || !bytes.Equal(got, states[3]) {
			t.Errorf("State() = %d bytes, %v", len(got), err)
		}
		for _, key := range keys {
			if data := object(t, opts.Blobs, key); bytes.Contains(data, large[:64]) || bytes.Contains(data, []byte("serial")) {
				t.Errorf("%s can be read by whoever has the bucket", key)
			}
		}
	})
}

func object(t testing.TB, opts objects.Options, key string) []byte {
	t.Helper()
	b := must[*objects.Bucket](t)(objects.Open(t.Context(), opts))
	defer b.Close()
	r := must[io.ReadCloser](t)(b.Read(t.Context(), key))
	defer r.Close()
	return must[[]byte](t)(io.ReadAll(r))
}

// TestSweepInStores removes what no record refers to, old as it is, and nothing else.
func TestSweepInStores(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, _ *objectserver.Server, opts datastore.Options) {
		now := time.Now()
		opts.Now = func() time.Time { return now }
		store := openAt(t, opts)
		run := claim(t, store, newRun(1))
		data := noise(100 << 10)
		putArtefact(t, store, run.Ref(), "document", data)
		ours := keysIn(t, opts.Blobs)
		if len(ours) != 1 {
			t.Fatalf("the bucket has %v", ours)
		}
		folder, _, _ := strings.Cut(ours[0], "/")
		b := must[*objects.Bucket](t)(objects.Open(t.Context(), opts.Blobs))
		defer b.Close()
		for _, key := range []string{folder + "/artefact/00/orphan", folder + "/state/ff/orphan", folder + "/probe/orphan", "another/state/ff/orphan"} {
			_, err := b.Write(t.Context(), key, func(w io.Writer) (int64, error) { return io.Copy(w, bytes.NewReader(data)) })
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := must[int](t)(store.Sweep(t.Context(), time.Hour)); n != 0 {
			t.Errorf("Sweep() removed %d young blobs", n)
		}
		now = now.Add(2 * time.Hour)
		if n := must[int](t)(store.Sweep(t.Context(), time.Hour)); n != 3 {
			t.Errorf("Sweep() removed %d blobs, want three orphans", n)
		}
		if left := keysIn(t, opts.Blobs); len(left) != 2 {
			t.Errorf("Sweep() left %v", left)
		}
		if got := artefact(t, store, run.ID, "document"); !bytes.Equal(got, data) {
			t.Error("Sweep() took a blob that is in use")
		}
	})
}

// TestOpenRefusesAnothersBucket: two databases never share a bucket, and one does not lose its
// blobs by a bucket that was confused with another.
func TestOpenRefusesAnothersBucket(t *testing.T) {
	t.Parallel()
	first := datastore.Options{Path: emptyPath(t), Blobs: fakeBucket(t)}
	store := openAt(t, first)
	run := claim(t, store, newRun(1))
	putArtefact(t, store, run.Ref(), "document", noise(100<<10))

	second := datastore.Options{Path: emptyPath(t), Blobs: first.Blobs, Keys: testKeys(t, 'k')}
	execute(t, second.Path, `DELETE FROM identity`) // its own database, as emptyPath copies one
	if _, err := datastore.Open(t.Context(), second); err == nil || !strings.Contains(err.Error(), "belongs to another installation") {
		t.Errorf("Open() with another's bucket = %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	moved := first
	moved.Blobs, moved.Keys = fakeBucket(t), testKeys(t, 'k')
	if _, err := datastore.Open(t.Context(), moved); err == nil || !strings.Contains(err.Error(), "has nothing of what this installation has stored") {
		t.Errorf("Open() with an empty bucket = %v", err)
	}
}

// TestStoreIsAway: what cannot be stored is an ErrUnavailable and on no record, what is stored
// counts neither as gone nor as damaged, and all of it works when the store is back.
func TestStoreIsAway(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, server *objectserver.Server, opts datastore.Options) {
		now := time.Now()
		opts.Now = func() time.Time { return now }
		store := openAt(t, opts)
		run := newRun(1)
		run.Kind = holdfast.RunApply
		run = claim(t, store, run)
		large := noise(100 << 10)
		putArtefact(t, store, run.Ref(), "document", large)
		put := func(ctx context.Context, name string) error {
			return store.PutArtefact(ctx, run.Ref(), name, bytes.NewReader(large))
		}

		server.Stop()
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := put(soon, "outputs"); !errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("PutArtefact() = %v", err)
		}
		if _, err := store.Artefact(t.Context(), run.ID, "outputs"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("there is a record of what was not stored: %v", err)
		}
		if _, err := store.Artefact(t.Context(), run.ID, "document"); !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, seal.ErrTampered) {
			t.Errorf("Artefact() = %v, want an ErrUnavailable", err)
		}
		if store.BlobProblem() == "" {
			t.Error("there is no BlobProblem()")
		}
		if err := store.Ping(t.Context()); err != nil {
			t.Errorf("Ping() = %v", err)
		}
		now = now.Add(48 * time.Hour)
		if _, err := store.Sweep(t.Context(), time.Hour); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("Sweep() = %v, want an ErrUnavailable", err)
		}

		server.Restart()
		if err := put(t.Context(), "outputs"); err != nil {
			t.Errorf("PutArtefact() afterwards = %v", err)
		}
		if store.BlobProblem() != "" {
			t.Errorf("BlobProblem() = %q afterwards", store.BlobProblem())
		}
		for _, name := range []string{"document", "outputs"} {
			if got := artefact(t, store, run.ID, name); !bytes.Equal(got, large) {
				t.Errorf("%s has %d other bytes", name, len(got))
			}
		}
		must[int](t)(store.Sweep(t.Context(), time.Hour))
	})
}

// TestDamagedObjects: an object that is gone or damaged is an error that names it, and not one
// of a store that is unavailable.
func TestDamagedObjects(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	server := objectserver.StartS3(t)
	opts := datastore.Options{Path: emptyPath(t), Blobs: objects.Options{
		URL: server.MakeBucket("holdfast"), AccessKey: server.AccessKey, Secret: func() (string, error) { return server.Secret, nil },
	}}
	store := openAt(t, opts)
	run := claim(t, store, newRun(1))
	putArtefact(t, store, run.Ref(), "document", noise(200<<10))
	key := keysIn(t, opts.Blobs)[0]
	var file string
	for _, path := range server.Files("holdfast") {
		if strings.HasSuffix(path, key) {
			file = path
		}
	}
	whole := must[[]byte](t)(os.ReadFile(file))
	check := func(what string) {
		t.Helper()
		r, err := store.Artefact(t.Context(), run.ID, "document")
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			_ = r.Close()
		}
		if !errors.Is(err, seal.ErrTampered) || errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrNotFound) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, want an ErrTampered that names %s", what, err, key)
		}
	}
	flipped := bytes.Clone(whole)
	flipped[100<<10] ^= 1
	for what, data := range map[string][]byte{"flipped": flipped, "cut": whole[:100<<10], "empty": {}} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		check(what)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	check("gone")
}

// A replaced blob stays until no power cut can bring its row back.
func TestReplacedPlanStaysUntilSwept(t *testing.T) {
	t.Parallel()
	now := time.Now()
	opts := datastore.Options{Path: emptyPath(t), Blobs: fakeBucket(t), Now: func() time.Time { return now }}
	store := openAt(t, opts)
	run := claim(t, store, newRun(1)) // a plan: its commits do not wait for the disk
	putArtefact(t, store, run.Ref(), "document", noise(100<<10))
	putArtefact(t, store, run.Ref(), "document", noise(100<<10))
	if keys := keysIn(t, opts.Blobs); len(keys) != 2 {
		t.Errorf("the bucket has %d blobs, want that of before, too", len(keys))
	}
	now = now.Add(2 * time.Hour)
	if n := must[int](t)(store.Sweep(t.Context(), time.Hour)); n != 1 {
		t.Errorf("Sweep() removed %d blobs, want 1", n)
	}
}
