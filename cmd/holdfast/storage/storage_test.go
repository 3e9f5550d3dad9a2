package storage_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/storage"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/flock"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/protocol"
)

// machine has a holdfast.yaml and a data folder with a run that has left a blob.
type machine struct {
	t        testing.TB
	dir      string
	out, err bytes.Buffer
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	m := &machine{t: t, dir: memory.Dir(t)}
	m.write("holdfast.yaml", "dataDir: data\n")
	m.write("data/key", strings.Repeat("ab", seal.KeySize))
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, filepath.FromSlash(name)) }

func (m *machine) write(name, text string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// fill has a server store something.
func (m *machine) fill() {
	m.t.Helper()
	secret, err := seal.LoadKey(m.path("data/key"))
	if err != nil {
		m.t.Fatal(err)
	}
	ring, err := seal.NewKeyring(secret)
	if err != nil {
		m.t.Fatal(err)
	}
	store, err := datastore.Open(m.t.Context(), datastore.Options{Path: m.path("data/db/holdfast.db"), Keys: ring})
	if err != nil {
		m.t.Fatal(err)
	}
	run := holdfast.Run{
		ID: "run-1", Cluster: "alpha", Kind: holdfast.RunApply, Status: holdfast.RunQueued, CreatedAt: time.Now(),
		RunSpec: holdfast.RunSpec{StateLocation: "clusters/alpha"},
	}
	if err = store.CreateRun(m.t.Context(), run); err == nil {
		run, err = store.ClaimRun(m.t.Context(), run.ID, protocol.AgentRef{ID: "agent"}, time.Now(), 0)
	}
	if err == nil {
		err = store.PutArtefact(m.t.Context(), run.Ref(), "document", strings.NewReader(strings.Repeat("large ", 10_000)))
	}
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// do runs a command, and returns its error and the hint.
func (m *machine) do(args ...string) (problem string, ok bool) {
	m.t.Helper()
	m.out.Reset()
	m.err.Reset()
	app := &cli.App{In: strings.NewReader(""), Getenv: os.Getenv, Version: "test"}
	app.Printer = table.Printer{Out: &m.out, Err: &m.err, Now: time.Now}
	root := &cobra.Command{Use: "holdfast", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(storage.NewDatastoreCommand(app), storage.NewBackupCommand(app), storage.NewRestoreCommand(app))
	root.SetOut(io.Discard)
	switch args[0] {
	case "backup", "restore", "check":
		args = append(args, "--config", m.path("holdfast.yaml"))
	}
	if args[0] == "check" || args[0] == "copy" {
		args = append([]string{"datastore"}, args...)
	}
	root.SetArgs(args)
	if err := root.ExecuteContext(m.t.Context()); err != nil {
		return err.Error() + "\n" + hint.Of(err), false
	}
	return "", true
}

func (m *machine) must(args ...string) {
	m.t.Helper()
	if problem, ok := m.do(args...); !ok {
		m.t.Fatalf("%v: %s", args, problem)
	}
}

func (m *machine) refused(says string, args ...string) {
	m.t.Helper()
	if problem, ok := m.do(args...); ok || !strings.Contains(problem, says) {
		m.t.Errorf("%v: %q, want %q", args, problem, says)
	}
}

// TestBackupAndRestore: the file is its owner's, replaces an older one only when it is complete,
// and has no key unless that is wanted.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.refused("nothing to back up", "backup", m.path("saved"))
	m.fill()
	m.write("saved", "an older one")
	m.write("saved.tmp", "one that was interrupted")
	m.must("backup", m.path("saved"))
	if said := m.err.String(); !strings.Contains(said, "1 run") || !strings.Contains(said, "The encryption key is not in it") {
		t.Errorf("backup says %q", said)
	}
	if info, err := os.Stat(m.path("saved")); err != nil || info.Mode().Perm() != 0o600 || info.Size() < 1000 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if left, _ := filepath.Glob(m.path("saved.tmp")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	m.refused("has records already", "restore", m.path("saved"))

	m.must("restore", m.path("saved"), "--data-dir", m.path("other"))
	if said := m.out.String(); !strings.Contains(said, "put it at "+m.path("other/key")) {
		t.Errorf("restore says %q", said)
	}
	m.write("third/key", strings.Repeat("cd", seal.KeySize))
	m.refused("another key", "restore", m.path("saved"), "--data-dir", m.path("third"))

	m.must("backup", m.path("with-key"), "--with-key")
	if said := m.err.String(); !strings.Contains(said, "WARNING") {
		t.Errorf("backup --with-key says %q", said)
	}
	m.must("restore", m.path("with-key"), "--data-dir", m.path("fourth"))
	if key, err := os.ReadFile(m.path("fourth/key")); err != nil || string(key) != strings.Repeat("ab", seal.KeySize) {
		t.Errorf("the restored key: %q, %v", key, err)
	}
	m.write("holdfast.yaml", "dataDir: fourth\n")
	m.must("check", "--deep")
	if said := m.out.String(); !strings.Contains(said, "1 records refer to blobs: 0 missing") {
		t.Errorf("check says %q", said)
	}
}

// TestTwoBackupsToOneFile: the second one is refused, as neither is to get the file of the other under
// the name. What a killed one has left is not in the way.
func TestTwoBackupsToOneFile(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.fill()
	m.write("saved.tmp/holdfast.db", "of one that was killed")
	other, err := os.Open(m.path("saved.tmp"))
	if err == nil {
		err = flock.Exclusive(other)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.refused("another holdfast backup is writing", "backup", m.path("saved"))
	if _, err := os.Stat(m.path("saved.tmp/holdfast.db")); err != nil {
		t.Errorf("the file of the other one: %v", err)
	}
	if err := flock.Release(other); err != nil {
		t.Fatal(err)
	}
	m.must("backup", m.path("saved"))
	if left, _ := filepath.Glob(m.path("saved.*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	m.refused("is a folder", "backup", m.path("data"))
}

// TestBackupOfWhatIsDamaged: there is a file, and the command fails.
func TestBackupOfWhatIsDamaged(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.fill()
	blobs, err := filepath.Glob(m.path("data/db/blobs/*/*/*/*"))
	if err != nil || len(blobs) != 1 {
		t.Fatalf("%v, %v", blobs, err)
	}
	if err := os.Remove(blobs[0]); err != nil {
		t.Fatal(err)
	}
	m.refused("holdfast datastore check", "backup", m.path("saved"))
	if _, err := os.Stat(m.path("saved")); err != nil {
		t.Error(err)
	}
	m.refused("exit code 1", "check", "-o", "json")
	var result struct {
		Problems []struct{ Problem, Record string }
		Counts   map[string]int
	}
	if err := json.Unmarshal(m.out.Bytes(), &result); err != nil || len(result.Problems) != 1 || result.Problems[0].Record != "run-1/1/document" ||
		result.Counts["missing"] != 1 {
		t.Errorf("check prints %s: %v", m.out.String(), err)
	}
}

// TestRefusals say what to do instead.
func TestRefusals(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.fill()
	m.refused("want a configuration file", "copy", "--to", "postgres://holdfast:secret@db/holdfast")
	m.refused("does not say where to copy to", "copy", "--to", m.path("holdfast.yaml"))
	m.write("new.yaml", "dataDir: elsewhere\ndatastore: {url: 'postgres://holdfast@127.0.0.1:1/holdfast'}\n")
	m.refused("use the same dataDir", "copy", "--from", m.path("holdfast.yaml"), "--to", m.path("new.yaml"))
	m.refused("use the same dataDir", "copy", "--from", "sqlite:"+m.path("data/db/holdfast.db"), "--to", m.path("new.yaml"))
	m.write("blobs.yaml", "dataDir: data\ndatastore: {url: 'postgres://holdfast@127.0.0.1:1/holdfast', blobs: {url: 's3://b?region=r'}}\n")
	m.refused("datastore.blobs.url differs", "copy", "--from", m.path("holdfast.yaml"), "--to", m.path("blobs.yaml"))
	m.refused("PostgreSQL already", "copy", "--from", m.path("new.yaml"), "--to", m.path("new.yaml"))
	m.write("holdfast.yaml", "dataDir: data\ndatastore: {url: 'postgres://holdfast@127.0.0.1:1/holdfast'}\n")
	m.refused("pg_dump", "backup", m.path("saved"))
	m.refused("in PostgreSQL", "restore", m.path("saved"))
}
