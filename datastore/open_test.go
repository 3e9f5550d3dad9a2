package datastore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/rollout"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	keys := testKeys(t, 'k')
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, bytes.Repeat([]byte("not a database. "), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		opts datastore.Options
		want string
	}{
		"no path":        {datastore.Options{Keys: keys}, "no path"},
		"no keys":        {datastore.Options{Path: filepath.Join(dir, "a.db")}, "no keys"},
		"unknown bucket": {datastore.Options{Path: filepath.Join(dir, "c.db"), Keys: keys, Blobs: objects.Options{URL: "nosuch://b"}}, "open bucket"},
		"not a database": {datastore.Options{Path: file, Keys: keys}, "not a database"},
		"a folder":       {datastore.Options{Path: dir, Keys: keys}, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := datastore.Open(t.Context(), test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open() = %v, want an error with %q", err, test.want)
			}
		})
	}
}

// A server was killed while it posted: the next one posts at once.
func TestOpenEndsClaims(t *testing.T) {
	t.Parallel()
	opts := datastore.Options{Path: filepath.Join(t.TempDir(), "holdfast.db"), Keys: testKeys(t, 'k')}
	for life := range 2 {
		store, err := datastore.Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		want(t, store, commentPost("planning", "abc"))
		if got := claimPosts(t, store, noon.Add(time.Duration(life)*time.Second)); len(got) != 1 {
			t.Errorf("life %d: ClaimPosts() = %+v, want the post", life, got)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opts := datastore.Options{Path: filepath.Join(dir, "holdfast.db"), Keys: testKeys(t, 'k')}
	store, err := datastore.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(opts.Path, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{opts.Path, link} {
		again := opts
		again.Path = path
		_, err := datastore.Open(t.Context(), again)
		pid := fmt.Sprintf("pid %d on host", os.Getpid())
		if !errors.Is(err, holdfast.ErrLocked) || !strings.Contains(err.Error(), pid) {
			t.Errorf("Open(%s) a second time = %v, want ErrLocked that names %q", path, err, pid)
		}
	}
	create(t, store, newRun(1))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	reopened := openAt(t, opts)
	if _, err := reopened.Run(t.Context(), "run-0001"); err != nil {
		t.Errorf("Run() after reopening = %v", err)
	}
}

func TestOpenOtherKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	run := newRun(1)
	plan := noise(100 << 10)
	write := openAt(t, datastore.Options{Path: path, Keys: testKeys(t, 'a')})
	run = claim(t, write, run)
	putArtefact(t, write, run.Ref(), "plan", plan)
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := datastore.Open(t.Context(), datastore.Options{Path: path, Keys: testKeys(t, 'b')})
	if err == nil || !strings.Contains(err.Error(), "another key") {
		t.Fatalf("Open() with another key = %v", err)
	}
	rotated := openAt(t, datastore.Options{Path: path, Keys: testKeys(t, 'b', 'a')})
	if got := artefact(t, rotated, run.ID, "plan"); !bytes.Equal(got, plan) {
		t.Error("an older key does not decrypt")
	}
}

func TestOpenNewerSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	opts := datastore.Options{Path: path, Keys: testKeys(t, 'k')}
	store, err := datastore.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`)
	if _, err := datastore.Open(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "schema is version 999") {
		t.Errorf("Open() of a newer schema = %v", err)
	}
}

// execute runs a statement on the database file behind the store's back.
func execute(t testing.TB, path, query string, args ...any) {
	t.Helper()
	if executeInstead(t, path, query) {
		return
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

// TestNothingSecretAtRest plants a word wherever people and engines can write
// one, and looks for it in every file.
func TestNothingSecretAtRest(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	dir := t.TempDir()
	store, err := datastore.Open(t.Context(), datastore.Options{Path: filepath.Join(dir, "holdfast.db"), Keys: testKeys(t, 'k')})
	if err != nil {
		t.Fatal(err)
	}
	plant(t, store, 1, secret)
	large := strings.Repeat(secret+" ", 10<<10)
	plant(t, store, 2, large)
	for _, closed := range []bool{false, true} { // with the write-ahead log, and without
		if closed {
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
		files := 0
		err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			files++
			data, err := os.ReadFile(path)
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s holds the secret in plain text", path)
			}
			if info, err := entry.Info(); err == nil && strings.HasPrefix(entry.Name(), "holdfast.db") && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return err
		})
		if err != nil || files < 4 {
			t.Errorf("looked into %d files, %v", files, err)
		}
	}
}

// plant writes secret into everything that is not a name or status.
func plant(t testing.TB, store *datastore.Store, planted int, secret string) {
	t.Helper()

	ctx := t.Context()
	document := holdfast.Cluster{Name: "c", Variables: map[string]any{"password": secret}}
	run := newRun(planted)
	run.Document, run.Kind, run.Detail = document, holdfast.RunApply, secret
	run.Failure = &holdfast.Failure{Detail: secret}
	run = claim(t, store, run)
	for _, name := range []string{
		protocol.ArtefactPlan, protocol.ArtefactDocument, protocol.ArtefactInfo,
		protocol.ArtefactOutputs, protocol.ArtefactErrored,
	} {
		putArtefact(t, store, run.Ref(), name, []byte(secret))
	}
	if err := store.PutBundle(ctx, holdfast.DigestOf([]byte(secret)), []byte(secret)); err != nil {
		t.Fatal(err)
	}
	must[holdfast.StateVersion](t)(store.PutState(ctx, holdfast.StateWrite{
		Location: run.StateLocation, By: run.Ref(), Data: stateJSON(1, "l", secret),
	}))
	must[holdfast.ClusterRecord](t)(store.SaveCluster(ctx, holdfast.ClusterRecord{
		Name: run.Cluster, WaitingDetail: secret, Drift: holdfast.DriftState{Detail: secret, Hold: secret},
		Conditions: []holdfast.Condition{{Message: secret}},
		Desired:    holdfast.Desired{Document: document, Faults: holdfast.Faults{{Message: secret}}},
		Applied:    holdfast.Applied{Document: document},
	}))
	ref := holdfast.PullRequestRef{Repo: "fleet", Number: planted}
	must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, holdfast.PullRequestRecord{
		PullRequest: holdfast.PullRequest{PullRequestRef: ref, Title: secret}, Detail: secret,
		Clusters: []holdfast.PullRequestCluster{{Name: "c", Document: document}},
	}))
	if err := store.SaveImpacts(ctx, ref, []rollout.Impact{{Template: "kubernetes", Refused: []rollout.ImpactRefusal{{Faults: holdfast.Faults{{Message: secret}}}}}}); err != nil {
		t.Fatal(err)
	}
	must[rollout.Upgrade](t)(store.SaveUpgrade(ctx, rollout.Upgrade{Repo: "fleet", Key: fmt.Sprint(planted), Trouble: secret}))
	want(t, store, outgoing.Post{Key: fmt.Sprint("comment:", planted), Kind: outgoing.PostComment, PullRequest: ref, Title: secret, Body: secret})
	if err := store.Suspend(ctx, holdfast.Suspension{Project: fmt.Sprint(planted), By: "ana", Reason: secret}); err != nil {
		t.Fatal(err)
	}
	must[int64](t)(store.AppendLog(ctx, run.Ref(), 0, []byte(secret)))
	must[bool](t)(store.StoreCommand(ctx, holdfast.Command{ID: fmt.Sprint(planted), PullRequest: ref, CommentID: "1", Text: secret}))
	must[holdfast.PullRequest](t)(store.SaveLocalPullRequest(ctx, holdfast.PullRequest{PullRequestRef: ref, Title: secret}))
	must[holdfast.Comment](t)(store.SaveLocalComment(ctx, holdfast.Comment{PullRequest: ref, Body: secret}))
}

// TestTampering changes and moves what is at rest: none of it is believed.
func TestTampering(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "holdfast.db")
	store := openAt(t, datastore.Options{Path: path})
	run := claim(t, store, newRun(1))
	large := noise(200 << 10)
	put := func(name string, data []byte) string {
		t.Helper()
		before := blobFiles(t, dir)
		putArtefact(t, store, run.Ref(), name, data)
		for file := range blobFiles(t, dir) {
			if !before[file] {
				return file
			}
		}
		return ""
	}
	reading := func(name string) error {
		r, err := store.Artefact(t.Context(), run.ID, name)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r)
		return errors.Join(err, r.Close())
	}
	a, b := put("a", large), put("b", large)
	put("small", []byte("small")) // in the row
	original, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	segment := 64<<10 + 16
	other, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	header := len(original) - len(large) - 16*4
	flip := func(at int) []byte {
		data := bytes.Clone(original)
		data[at] ^= 1
		return data
	}
	for name, data := range map[string][]byte{
		"format":           flip(0),
		"key id":           flip(1),
		"salt":             flip(header - 1),
		"first byte":       flip(header),
		"last byte":        flip(len(original) - 1),
		"cut in a segment": original[:len(original)-1],
		"cut at a segment": original[:header+segment],
		"without the last": original[:header+3*segment],
		"header alone":     original[:header],
		"empty":            {},
		"longer":           append(bytes.Clone(original), 0),
		"swapped segments": bytes.Join([][]byte{original[:header], original[header+segment : header+2*segment], original[header : header+segment], original[header+2*segment:]}, nil),
		"another's blob":   other,
	} {
		if err := os.WriteFile(a, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := reading("a"); err == nil {
			t.Errorf("%s: the artefact reads without an error", name)
		}
	}
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	if err := reading("a"); err == nil || errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("an artefact whose blob is gone = %v, want an error that is not ErrNotFound", err)
	}
	if err := reading("b"); err != nil {
		t.Errorf("the untouched artefact = %v", err)
	}
	execute(t, path, `UPDATE artefacts SET name = 'moved' WHERE name = 'small'`)
	if err := reading("moved"); err == nil {
		t.Error("a row that was renamed reads without an error")
	}
	create(t, store, newRun(2))
	execute(t, path, `UPDATE runs SET doc = (SELECT doc FROM runs AS r WHERE r.id = 'run-0001') WHERE id = 'run-0002'`)
	if _, err := store.Run(t.Context(), "run-0002"); err == nil {
		t.Error("a run with another's document reads without an error")
	}
}

// blobFiles are the files of the bucket beside a database in dir.
func blobFiles(t testing.TB, dir string) map[string]bool {
	t.Helper()
	files := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[path] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSweepRemovesOrphans(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	store := openAt(t, datastore.Options{Path: filepath.Join(dir, "holdfast.db"), Now: func() time.Time { return now }})
	run := claim(t, store, newRun(1))
	data := noise(100 << 10)
	putArtefact(t, store, run.Ref(), "plan", data)
	kept := blobFiles(t, dir)
	var ours string
	for file := range kept {
		ours = filepath.Dir(file)
	}
	foreign := filepath.Join(dir, "blobs", "foreign")
	for _, file := range []string{filepath.Join(ours, "orphan"), filepath.Join(ours, "orphan.1a2b.tmp"), foreign} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := must[int](t)(store.Sweep(context.Background(), time.Hour)); n != 0 {
		t.Errorf("Sweep() removed %d young blobs", n)
	}
	now = now.Add(2 * time.Hour)
	if n := must[int](t)(store.Sweep(t.Context(), time.Hour)); n != 2 {
		t.Errorf("Sweep() removed %d blobs, want the two orphans", n)
	}
	kept[foreign] = true
	if left := blobFiles(t, dir); !same(kept, left) {
		t.Errorf("Sweep() left %v, want %v", left, kept)
	}
	if got := artefact(t, store, run.ID, "plan"); !bytes.Equal(got, data) {
		t.Error("Sweep() took a blob that is in use")
	}
}
