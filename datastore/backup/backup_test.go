package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/backup"
	"github.com/holdfast-dev/holdfast/datastore/home"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/datastore/verify"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/protocol"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func must[T any](t testing.TB) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func keys(t testing.TB) *seal.Keyring {
	t.Helper()
	return must[*seal.Keyring](t)(seal.NewKeyring(bytes.Repeat([]byte{'k'}, seal.KeySize)))
}

// installation is a server's store with a few runs, and large things that they left.
type installation struct {
	*datastore.Store
	t    testing.TB
	dir  string
	runs []holdfast.Run
}

func newInstallation(t testing.TB, runs int) *installation {
	t.Helper()
	i := &installation{t: t, dir: memory.Dir(t)}
	i.Store = open(t, i.dir)
	for n := range runs {
		run := holdfast.Run{
			ID: fmt.Sprintf("run-%d", n), Cluster: fmt.Sprintf("c%d", n), Kind: holdfast.RunApply, Status: holdfast.RunQueued, CreatedAt: noon,
			RunSpec: holdfast.RunSpec{StateLocation: fmt.Sprintf("clusters/c%d", n)},
		}
		if err := i.CreateRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		i.runs = append(i.runs, must[holdfast.Run](t)(i.ClaimRun(t.Context(), run.ID, protocol.AgentRef{ID: "agent"}, noon, 0)))
		i.replace(n)
	}
	return i
}

func open(t testing.TB, dir string) *datastore.Store {
	t.Helper()
	store := must[*datastore.Store](t)(datastore.Open(t.Context(), datastore.Options{
		Path: records(dir), Keys: keys(t), Now: func() time.Time { return noon },
	}))
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func records(dir string) string { return filepath.Join(dir, "db", "holdfast.db") }

// replace has a run leave another document: the blob of the one before goes.
func (i *installation) replace(n int) {
	i.t.Helper()
	large := make([]byte, 40<<10)
	_, _ = rand.Read(large)
	if err := i.PutArtefact(i.t.Context(), i.runs[n].Ref(), "document", bytes.NewReader(large)); err != nil {
		i.t.Fatal(err)
	}
}

// blobs are the files of all blobs.
func (i *installation) blobs() []string {
	i.t.Helper()
	return must[[]string](i.t)(filepath.Glob(filepath.Join(i.dir, "db", "blobs", "*", "*", "*", "*")))
}

func (i *installation) source() backup.Source {
	return backup.Source{
		Path: records(i.dir), Identity: filepath.Join(i.dir, "identity"), TempDir: i.dir, Version: "test", Now: func() time.Time { return noon },
	}
}

func target(dir string) backup.Target {
	return backup.Target{
		Path: records(dir), Identity: filepath.Join(dir, "identity"), KeyFile: filepath.Join(dir, "key"), Now: func() time.Time { return noon },
	}
}

func write(t testing.TB, source backup.Source) ([]byte, backup.Manifest) {
	t.Helper()
	var out bytes.Buffer
	_, manifest, err := backup.Write(t.Context(), &out, source)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), manifest
}

// whole checks that every blob that restored records refer to is there and can be read.
func whole(t testing.TB, dir string, blobs int) {
	t.Helper()
	result := must[verify.Result](t)(verify.Check(t.Context(), verify.Options{
		Path: records(dir), Blobs: objects.Options{Dir: filepath.Join(dir, "db", "blobs")}, Keys: keys(t), Deep: true,
	}))
	if !result.OK() || result.Records != int64(blobs) {
		t.Errorf("the restored blobs: %+v", result)
	}
}

// TestBackupWhileTheServerRuns: what is restored is whole, though records and blobs come and go
// while it is made, and a server continues with it: no fence is given again.
func TestBackupWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 20)
	if err := os.WriteFile(filepath.Join(i.dir, "identity"), []byte("me\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	busy.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			i.replace(n % len(i.runs))
		}
	})
	source := i.source()
	// A slow machine might never find the records at rest: they are, from the third time on that they are read.
	asked := 0
	source.Now = func() time.Time {
		if asked++; asked == 5 {
			cancel()
			busy.Wait()
		}
		return noon
	}
	file, manifest := write(t, source)
	cancel()
	busy.Wait()
	if manifest.Records["runs"] != 20 || len(manifest.Missing) > 0 || manifest.HasKey {
		t.Errorf("the manifest is %+v", manifest)
	}

	dir := memory.Dir(t)
	restored := must[backup.Restored](t)(backup.Restore(t.Context(), bytes.NewReader(file), target(dir)))
	if restored.Manifest.Records["artefacts"] != 20 || restored.About.Version != "test" || restored.Aside != "" {
		t.Errorf("Restore() = %+v", restored)
	}
	whole(t, dir, 20)
	if name := must[[]byte](t)(os.ReadFile(filepath.Join(dir, "identity"))); string(name) != "me\n" {
		t.Errorf("the server is called %q", name)
	}
	if left := must[[]string](t)(filepath.Glob(filepath.Join(dir, "db", ".restore-*"))); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if left := must[[]string](t)(filepath.Glob(filepath.Join(i.dir, ".holdfast-backup-*"))); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	store := open(t, dir)
	if held := must[[]holdfast.Suspension](t)(store.Suspensions(t.Context())); len(held) != 1 || held[0].Project != "" || !strings.Contains(held[0].Reason, "docs/backup.md") {
		t.Errorf("after a restore %+v is suspended, want everything", held)
	}
	run := must[holdfast.Run](t)(store.Run(t.Context(), "run-3"))
	if run.Status != holdfast.RunRunning || run.Fence != i.runs[3].Fence {
		t.Errorf("run-3 is %s with fence %d", run.Status, run.Fence)
	}
	next := holdfast.Run{
		ID: "next", Cluster: "next", Kind: holdfast.RunPlan, Status: holdfast.RunQueued, CreatedAt: noon, RunSpec: holdfast.RunSpec{StateLocation: "clusters/next"},
	}
	if err := store.CreateRun(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if next = must[holdfast.Run](t)(store.ClaimRun(t.Context(), next.ID, protocol.AgentRef{ID: "agent"}, noon, 0)); next.Fence < 1_000_000 {
		t.Errorf("the next fence is %d, which may have been given after the backup", next.Fence)
	}
}

// TestBlobsThatGoWhileTheyAreRead: the records are read again, and then the backup has each blob
// that its records refer to.
func TestBlobsThatGoWhileTheyAreRead(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 5)
	source, once := i.source(), sync.Once{}
	source.Progress = func(doing string, _, _ int64) {
		if strings.HasPrefix(doing, "write blobs") {
			once.Do(func() {
				for n := range i.runs {
					i.replace(n)
				}
			})
		}
	}
	file, manifest := write(t, source)
	if manifest.Restarts != 1 || len(manifest.Missing) > 0 || manifest.Blobs != 6 {
		t.Errorf("%d blobs after %d restarts, missing: %v", manifest.Blobs, manifest.Restarts, manifest.Missing)
	}
	dir := memory.Dir(t)
	must[backup.Restored](t)(backup.Restore(t.Context(), bytes.NewReader(file), target(dir)))
	whole(t, dir, 5)
}

// TestBackupOfDamage: a blob that is missing does not keep the others from being backed up.
func TestBackupOfDamage(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 3)
	if err := os.Remove(i.blobs()[1]); err != nil {
		t.Fatal(err)
	}
	_, manifest := write(t, i.source())
	if len(manifest.Missing) != 1 || !strings.HasSuffix(i.blobs()[0], filepath.Base(i.blobs()[0])) || manifest.Blobs != 2 {
		t.Errorf("the manifest is %+v", manifest)
	}
}

// TestBackupOnlyReads: the database of a server that is stopped stays as it is, and who has the
// lock of its folder is not in the way.
func TestBackupOnlyReads(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 2)
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	before := must[[]byte](t)(os.ReadFile(records(i.dir)))
	folder := must[*home.Home](t)(home.OpenSQLite(records(i.dir), noon))
	defer folder.Close()
	write(t, i.source())
	if after := must[[]byte](t)(os.ReadFile(records(i.dir))); !bytes.Equal(before, after) {
		t.Error("the database was written to")
	}
}

// TestKeysInABackup: they are put back where they belong, and are not there otherwise.
func TestKeysInABackup(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 1)
	source := i.source()
	for n, text := range []string{"current", "older"} {
		file := filepath.Join(i.dir, fmt.Sprintf("key-%d", n))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		source.KeyFiles = append(source.KeyFiles, file)
	}
	file, manifest := write(t, source)
	if !manifest.HasKey {
		t.Error("the manifest does not say that the key is in it")
	}
	dir := memory.Dir(t)
	to := target(dir)
	var staged []string
	to.Check = func(proof backup.Proof) error {
		staged = proof.KeyFiles
		_, err := keys(t).Unseal("identity", proof.Identity, proof.Sealed)
		return err
	}
	restored := must[backup.Restored](t)(backup.Restore(t.Context(), bytes.NewReader(file), to))
	if len(staged) != 2 || len(restored.KeyFiles) != 2 {
		t.Fatalf("the keys are %v and %v", staged, restored.KeyFiles)
	}
	for n, want := range []string{"current", "older"} {
		if got := must[[]byte](t)(os.ReadFile(restored.KeyFiles[n])); string(got) != want {
			t.Errorf("%s has %q, want %q", restored.KeyFiles[n], got, want)
		}
	}
}

// TestRestoreIsRefused: of what is not a whole backup nothing is in place, and what is there stays.
func TestRestoreIsRefused(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 3)
	file, _ := write(t, i.source())
	blob := must[[]byte](t)(os.ReadFile(i.blobs()[0]))[:64]
	plain := must[[]byte](t)(io.ReadAll(must[*gzip.Reader](t)(gzip.NewReader(bytes.NewReader(file)))))
	at := bytes.Index(plain, blob)
	changed := bytes.Clone(plain)
	changed[at+40] ^= 1
	for name, test := range map[string]struct {
		file []byte
		says string
	}{
		"one that was cut off":       {file[:len(file)/2], "damaged or not complete"},
		"one with a changed blob":    {zipped(t, changed), "is damaged: its digest"},
		"one without its end":        {zipped(t, rewritten(t, plain, func(h *tar.Header) bool { return h.Name != "manifest.json" })), "its end is missing"},
		"one that lacks a blob":      {zipped(t, rewritten(t, plain, skipOne())), "lacks blobs/"},
		"another archive":            {zipped(t, rewritten(t, plain, func(h *tar.Header) bool { return h.Name != "holdfast-backup.json" })), "not a backup of Holdfast"},
		"something else":             {[]byte("PGDMP"), "it is not a backup"},
		"one with a name of outside": {zipped(t, rewritten(t, plain, func(h *tar.Header) bool { h.Name = strings.Replace(h.Name, "blobs/", "../blobs/", 1); return true })), "not one of a file in a backup"},
		"one of a newer version":     {zipped(t, regexp.MustCompile(`"schema": \d+`).ReplaceAll(plain, []byte(`"schema": 99`))), "schema version 99"},
	} {
		dir := memory.Dir(t)
		if _, err := backup.Restore(t.Context(), bytes.NewReader(test.file), target(dir)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("Restore() of %s = %v, want %q", name, err, test.says)
		}
		if info, err := os.Stat(records(dir)); err == nil && info.Size() > 0 {
			t.Errorf("%s was put in place", name)
		}
		// What was refused is not in the way of a whole one, and what a restore that was killed has left goes.
		if err := os.MkdirAll(filepath.Join(dir, "db", ".restore-1", "blobs"), 0o700); err != nil {
			t.Fatal(err)
		}
		must[backup.Restored](t)(backup.Restore(t.Context(), bytes.NewReader(file), target(dir)))
		if left := must[[]string](t)(filepath.Glob(filepath.Join(dir, "db", ".restore-*"))); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
	if _, err := backup.Restore(t.Context(), bytes.NewReader(file), target(i.dir)); err == nil || !strings.Contains(err.Error(), "has records already") {
		t.Errorf("Restore() over records = %v", err)
	}
	dir := memory.Dir(t)
	folder := must[*home.Home](t)(home.OpenSQLite(records(dir), noon))
	defer folder.Close()
	if _, err := backup.Restore(t.Context(), bytes.NewReader(file), target(dir)); !errors.Is(err, holdfast.ErrLocked) {
		t.Errorf("Restore() to a folder that is in use = %v", err)
	}
}

// TestBlobsWithoutRecordsAreKept: they may be all that is left.
func TestBlobsWithoutRecordsAreKept(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 2)
	file, _ := write(t, i.source())
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(records(i.dir)); err != nil {
		t.Fatal(err)
	}
	restored := must[backup.Restored](t)(backup.Restore(t.Context(), bytes.NewReader(file), target(i.dir)))
	if kept, _ := filepath.Glob(filepath.Join(restored.Aside, "*", "*", "*", "*")); len(kept) != 2 {
		t.Errorf("%q has %v", restored.Aside, kept)
	}
	whole(t, i.dir, 2)
}

func zipped(t testing.TB, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// rewritten is an archive with the entries that keep wants, as it has changed them.
func rewritten(t testing.TB, plain []byte, keep func(*tar.Header) bool) []byte {
	t.Helper()
	var out bytes.Buffer
	from, to := tar.NewReader(bytes.NewReader(plain)), tar.NewWriter(&out)
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !keep(header) {
			continue
		}
		if err := to.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		must[int64](t)(io.Copy(to, from))
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// skipOne leaves out the first blob.
func skipOne() func(*tar.Header) bool {
	skipped := false
	return func(h *tar.Header) bool {
		if !skipped && strings.HasPrefix(h.Name, "blobs/") {
			skipped = true
			return false
		}
		return true
	}
}
