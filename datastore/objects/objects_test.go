package objects_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/internal/testenv/objectserver"
)

// place is where the suite keeps objects.
type place struct {
	server *objectserver.Server // nil: a folder
	opts   objects.Options
}

// everywhere runs a test with each kind of store.
func everywhere(t *testing.T, test func(t *testing.T, at place)) {
	t.Helper()
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		test(t, place{opts: objects.Options{Dir: filepath.Join(t.TempDir(), "blobs")}})
	})
	elsewhere(t, test)
}

// shared are the stores of all tests that need none of their own.
var shared objectserver.Shared

func TestMain(m *testing.M) {
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// elsewhere runs a test with a bucket in each kind of store that is a server.
func elsewhere(t *testing.T, test func(t *testing.T, at place)) {
	t.Helper()
	withServers(t, shared.Start, test)
}

// apart is elsewhere with stores of the test's own, which it may stop.
func apart(t *testing.T, test func(t *testing.T, at place)) {
	t.Helper()
	withServers(t, func(t testing.TB, kind string) *objectserver.Server { return objectserver.Starts[kind](t) }, test)
}

func withServers(t *testing.T, start func(testing.TB, string) *objectserver.Server, test func(t *testing.T, at place)) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers")
	}
	for kind := range objectserver.Starts {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := start(t, kind)
			test(t, place{server, objects.Options{
				URL: server.MakeBucket(fmt.Sprintf("holdfast-%x", rand.Uint64())), AccessKey: server.AccessKey, Dir: t.TempDir(),
				Secret: func() (string, error) { return server.Secret, nil },
			}})
		})
	}
}

func openAt(t testing.TB, opts objects.Options) *objects.Bucket {
	t.Helper()
	b, err := objects.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// hintOf is what an error says that is to be done.
func hintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// noise is data that nothing compresses, another for each seed.
func noise(seed byte, n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

func write(ctx context.Context, b *objects.Bucket, key string, data []byte) error {
	n, err := b.Write(ctx, key, func(w io.Writer) (int64, error) { return io.Copy(w, bytes.NewReader(data)) })
	if err == nil && n != int64(len(data)) {
		err = fmt.Errorf("Write(%s) = %d, want %d", key, n, len(data))
	}
	return err
}

func read(ctx context.Context, b *objects.Bucket, key string) ([]byte, error) {
	r, err := b.Read(ctx, key)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

func list(t testing.TB, b *objects.Bucket, prefix string) map[string]bool {
	t.Helper()
	found := make(map[string]bool)
	err := b.List(t.Context(), prefix, func(page []objects.Object) error {
		for _, o := range page {
			if found[o.Key] {
				t.Errorf("List(%s) has %s twice", prefix, o.Key)
			}
			if o.ModTime.IsZero() {
				t.Errorf("List(%s) has %s without a time", prefix, o.Key)
			}
			found[o.Key] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestObjects(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, at place) {
		b := openAt(t, at.opts)
		ctx := t.Context()
		for i, size := range []int{1, 16 << 10, 5<<20 + 1, objects.SpoolMemory, objects.SpoolMemory + 1} {
			key, data := fmt.Sprintf("store/state/ab/%d", i), noise(byte(i), size)
			if err := write(ctx, b, key, data); err != nil {
				t.Fatal(err)
			}
			if got, err := read(ctx, b, key); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes: read %d, %v", size, len(got), err)
			}
		}
		if found := list(t, b, "store/state/"); len(found) != 5 || !found["store/state/ab/4"] {
			t.Errorf("List() = %v", found)
		}
		if found := list(t, b, "store/plan/"); len(found) != 0 {
			t.Errorf("List() of nothing = %v", found)
		}
		for range 2 { // the second time it is gone
			if err := b.Delete(ctx, "store/state/ab/0"); err != nil {
				t.Error(err)
			}
		}
		if _, err := read(ctx, b, "store/state/ab/0"); !errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrUnavailable) ||
			!strings.Contains(err.Error(), "store/state/ab/0") {
			t.Errorf("what was deleted: %v, want an ErrNotFound that names it", err)
		}
		if has, err := b.Exists(ctx, "store/state/ab/0"); has || err != nil {
			t.Errorf("Exists() of what was deleted = %v, %v", has, err)
		}
		if has, err := b.Exists(ctx, "store/state/ab/1"); !has || err != nil {
			t.Errorf("Exists() = %v, %v", has, err)
		}
		if b.Problem() != "" {
			t.Errorf("Problem() = %q", b.Problem())
		}
	})
}

// What cannot be written as a whole is not written: there is no object, nor a part of one.
func TestWriteIsWhole(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, at place) {
		b := openAt(t, at.opts)
		broken := errors.New("agent hung up")
		for _, size := range []int{100, 6 << 20} {
			_, err := b.Write(t.Context(), "store/state/half", func(w io.Writer) (int64, error) {
				_, err := w.Write(noise(1, size))
				return int64(size), errors.Join(err, broken)
			})
			if !errors.Is(err, broken) || errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("Write() = %v, want the error of who wrote", err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := b.Write(ctx, "store/state/half", func(w io.Writer) (int64, error) {
			n, err := w.Write(noise(1, 100))
			cancel()
			return int64(n), err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Write() that is canceled = %v", err)
		}
		if found := list(t, b, "store/"); len(found) != 0 {
			t.Errorf("there is %v", found)
		}
		if b.Problem() != "" {
			t.Errorf("Problem() = %q: it is not the store's", b.Problem())
		}
	})
}

func TestLargeObject(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, at place) {
		b := openAt(t, at.opts)
		data := noise(7, 64<<20)
		if err := write(t.Context(), b, "store/artefact/large", data); err != nil {
			t.Fatal(err)
		}
		r, err := b.Read(t.Context(), "store/artefact/large")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		sum := sha256.New()
		if n, err := io.Copy(sum, r); err != nil || n != int64(len(data)) || !bytes.Equal(sum.Sum(nil), hash(data)) {
			t.Errorf("read %d bytes, %v", n, err)
		}
	})
}

func hash(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:]
}

// More than a page.
func TestListPages(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, at place) {
		b := openAt(t, at.opts)
		const n = 1100
		var g errgroup.Group
		g.SetLimit(16)
		for i := range n {
			g.Go(func() error { return write(t.Context(), b, fmt.Sprintf("store/artefact/%04d", i), []byte{byte(i)}) })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		pages := 0
		err := b.List(t.Context(), "store/artefact/", func(page []objects.Object) error {
			pages++
			return nil
		})
		if err != nil || pages < 2 {
			t.Errorf("List() has %d pages, %v", pages, err)
		}
		if found := list(t, b, "store/artefact/"); len(found) != n {
			t.Errorf("List() has %d objects, want %d", len(found), n)
		}
		// What is deleted on the way makes no difference to the rest.
		seen := 0
		err = b.List(t.Context(), "store/artefact/", func(page []objects.Object) error {
			for _, o := range page {
				if err := b.Delete(t.Context(), o.Key); err != nil {
					return err
				}
				seen++
			}
			return nil
		})
		if left := list(t, b, "store/"); err != nil || seen != n || len(left) != 0 {
			t.Errorf("deleted %d, %d left, %v", seen, len(left), err)
		}
	})
}

// waits is a logger that says when a call is about to be made again.
type waits struct {
	slog.Handler
	again chan struct{}
}

func (w waits) Enabled(context.Context, slog.Level) bool { return true }

func (w waits) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "object store is asked again" {
		select {
		case w.again <- struct{}{}:
		default:
		}
	}
	return nil
}

// TestOutage stops a store in the middle of uploads and starts it again.
func TestOutage(t *testing.T) {
	t.Parallel()
	apart(t, func(t *testing.T, at place) {
		again := make(chan struct{}, 1)
		at.opts.Logger = slog.New(waits{slog.DiscardHandler, again})
		b := openAt(t, at.opts)
		const writers, each = 4, 4
		var g errgroup.Group
		begun := make(chan struct{}, writers*each)
		for i := range writers {
			g.Go(func() error {
				for j := range each {
					begun <- struct{}{}
					if err := write(t.Context(), b, fmt.Sprintf("store/artefact/%d-%d", i, j), noise(byte(i*each+j), 5<<20)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for range 2 * writers {
			<-begun
		}
		at.server.Stop()
		<-again
		at.server.Restart()
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		for i := range writers * each {
			key := fmt.Sprintf("store/artefact/%d-%d", i/each, i%each)
			if got, err := read(t.Context(), b, key); err != nil || !bytes.Equal(got, noise(byte(i), 5<<20)) {
				t.Errorf("%s: %d bytes, %v", key, len(got), err)
			}
		}
		if found := list(t, b, ""); len(found) != writers*each {
			t.Errorf("there are %d objects: %v", len(found), found)
		}
	})
}

// TestStoreIsAway is of a store that is unavailable for longer than a call waits: every
// call is an ErrUnavailable, and Problem says so until one succeeds.
func TestStoreIsAway(t *testing.T) {
	t.Parallel()
	for how, away := range map[string]struct{ leave, comeBack func(*objectserver.Server) }{
		"down":  {(*objectserver.Server).Stop, (*objectserver.Server).Restart},
		"hangs": {(*objectserver.Server).Pause, (*objectserver.Server).Resume},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			apart(t, func(t *testing.T, at place) {
				kept := noise(1, 100<<10)
				if err := write(t.Context(), openAt(t, at.opts), "store/state/kept", kept); err != nil {
					t.Fatal(err)
				}
				b, err := objects.OpenHasty(t.Context(), at.opts)
				if err != nil {
					t.Fatal(err)
				}
				away.leave(at.server)
				for name, call := range map[string]func() error{
					"Write":  func() error { return write(t.Context(), b, "store/state/new", kept) },
					"Read":   func() error { _, err := read(t.Context(), b, "store/state/kept"); return err },
					"Delete": func() error { return b.Delete(t.Context(), "store/state/other") }, // it may be done all the same
					"Exists": func() error { _, err := b.Exists(t.Context(), "store/state/kept"); return err },
					"List":   func() error { return b.List(t.Context(), "store/", func([]objects.Object) error { return nil }) },
				} {
					if err := call(); !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrNotFound) || hintOf(err) == "" {
						t.Errorf("%s() = %v (%s), want an ErrUnavailable with a hint", name, err, hintOf(err))
					}
				}
				if b.Problem() == "" {
					t.Error("there is no Problem()")
				}
				away.comeBack(at.server)
				patient := openAt(t, at.opts)
				if got, err := read(t.Context(), patient, "store/state/kept"); err != nil || !bytes.Equal(got, kept) {
					t.Errorf("afterwards: %d bytes, %v", len(got), err)
				}
			})
		})
	}
}

// A problem is over with the first call that succeeds.
func TestProblemEnds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	server := objectserver.StartS3(t)
	b, err := objects.OpenHasty(t.Context(), objects.Options{
		URL: server.MakeBucket("holdfast"), AccessKey: server.AccessKey, Secret: func() (string, error) { return server.Secret, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	b.Look(t.Context())
	if b.Problem() == "" {
		t.Error("there is no Problem()")
	}
	server.Restart()
	for t.Context().Err() == nil && b.Problem() != "" {
		b.Look(t.Context())
	}
}
