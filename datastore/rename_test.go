package datastore_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
)

// writeState stores states of a cluster, by an apply that ends.
func writeState(t testing.TB, store *datastore.Store, n int, cluster string, states ...[]byte) {
	t.Helper()
	run := newRun(n)
	run.Kind, run.Cluster, run.StateLocation = holdfast.RunApply, cluster, "clusters/"+cluster
	run = claim(t, store, run)
	for _, data := range states {
		must[holdfast.StateVersion](t)(store.PutState(t.Context(), holdfast.StateWrite{Location: run.StateLocation, By: run.Ref(), Data: data}))
	}
	end(t, store, run, holdfast.RunApplied)
}

func testRename(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	from := save(t, store, holdfast.ClusterRecord{Name: "a", Applied: holdfast.Applied{Run: "run-0001"}},
		holdfast.Transition{What: "phase", To: "Active"})
	small, large := stateJSON(1, "lin", "small"), stateJSON(2, "lin", strings.Repeat("large", 10_000))
	writeState(t, store, 1, "a", small, large)
	if err := store.SaveResources(ctx, "a", []holdfast.Resource{{Address: "x.y", Type: "x", Run: "run-0001", ChangedAt: noon}}); err != nil {
		t.Fatal(err)
	}

	to := holdfast.ClusterRecord{Name: "b", Applied: from.Applied}
	from.Phase, from.Deletion = holdfast.PhaseDeleted, &holdfast.Deletion{At: noon, Reason: "Renamed", To: "b"}
	renamed := holdfast.Transition{What: "phase", From: "Active", To: "Active", Reason: "Renamed", At: noon.Add(time.Second)}
	if err := store.RenameCluster(ctx, from, to, renamed, holdfast.Transition{Cluster: "a", What: "phase", To: "Deleted"}); err != nil {
		t.Fatal(err)
	}

	// The state reads back under the new name, and its versions continue to count.
	if _, _, err := store.State(ctx, "clusters/a"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("State() under the old name = %v, want ErrNotFound", err)
	}
	for version, want := range map[int64][]byte{1: small, 2: large} {
		if data, v, err := store.StateAt(ctx, "clusters/b", version); err != nil || !bytes.Equal(data, want) || v.Location != "clusters/b" {
			t.Errorf("StateAt(%d) = %d bytes at %q, %v", version, len(data), v.Location, err)
		}
	}
	writeState(t, store, 2, "b", large, stateJSON(3, "lin", "new"))
	if _, v, err := store.State(ctx, "clusters/b"); err != nil || v.Version != 3 || v.Serial != 3 {
		t.Errorf("State() after an apply = %+v, %v", v, err)
	}
	got := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "b"))
	old := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "a"))
	if got.Version != 1 || got.StateSerial != 3 || old.Version != 2 || old.StateSerial != 0 || old.Deletion == nil || old.Deletion.To != "b" {
		t.Errorf("records after the rename: %+v and %+v", old, got)
	}
	if got := must[[]holdfast.Resource](t)(store.Resources(ctx, holdfast.ResourceFilter{})); len(got) != 1 || got[0].Cluster != "b" || got[0].Run != "run-0001" {
		t.Errorf("Resources() = %+v", got)
	}
	renamed.Cluster = "b"
	history := must[[]holdfast.Transition](t)(store.Transitions(ctx, "b", 0))
	if len(history) != 2 || history[0] != renamed || history[1].To != "Active" {
		t.Errorf("Transitions(b) = %+v", history)
	}
	if history := must[[]holdfast.Transition](t)(store.Transitions(ctx, "a", 0)); len(history) != 1 || history[0].To != "Deleted" {
		t.Errorf("Transitions(a) = %+v", history)
	}

	// And once more, to a name that was there before, and back.
	third := holdfast.ClusterRecord{Name: "c"}
	if err := store.RenameCluster(ctx, got, third); err != nil {
		t.Fatal(err)
	}
	third.Version = 1
	if err := store.RenameCluster(ctx, third, old); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[int64][]byte{1: small, 2: large, 3: stateJSON(3, "lin", "new")} {
		if data, _, err := store.StateAt(ctx, "clusters/a", version); err != nil || !bytes.Equal(data, want) {
			t.Errorf("StateAt(%d) after three renames = %d bytes, %v", version, len(data), err)
		}
	}
}

func testRenameRefusals(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	a, b := save(t, store, holdfast.ClusterRecord{Name: "a"}), save(t, store, holdfast.ClusterRecord{Name: "b"})
	writeState(t, store, 1, "a", stateJSON(1, "lin", "a"))
	refused := func(name string, from, to holdfast.ClusterRecord, want error) {
		t.Helper()
		err := store.RenameCluster(ctx, from, to, holdfast.Transition{What: "phase", To: "Active"})
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("RenameCluster(%s) = %v, want %v", name, err, want)
		}
		if _, v, err := store.State(ctx, "clusters/a"); err != nil || v.Version != 1 {
			t.Errorf("State() after RenameCluster(%s) was refused = %+v, %v", name, v, err)
		}
		for _, c := range []holdfast.ClusterRecord{a, b} {
			if got := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, c.Name)); got.Version != c.Version {
				t.Errorf("%q after RenameCluster(%s) was refused has version %d, want %d", c.Name, name, got.Version, c.Version)
			}
			if got := must[[]holdfast.Transition](t)(store.Transitions(ctx, c.Name, 0)); len(got) != 0 {
				t.Errorf("history of %q after RenameCluster(%s) was refused = %+v", c.Name, name, got)
			}
		}
	}
	refused("itself", a, a, nil)
	refused("no name", a, holdfast.ClusterRecord{}, nil)
	stale := a
	stale.Version = 9
	refused("old version of from", stale, b, holdfast.ErrConflict)
	stale = b
	stale.Version = 0
	refused("old version of to", a, stale, holdfast.ErrConflict)
	for i, cluster := range []string{"a", "b"} {
		run := newRun(10 + i)
		run.Cluster, run.StateLocation = cluster, "s3://bucket/elsewhere"
		run = claim(t, store, run)
		refused("a running run of "+cluster, a, b, holdfast.ErrConflict)
		end(t, store, run, holdfast.RunPlanned)
	}
	run := newRun(20)
	run.StateLocation = "clusters/b"
	run = claim(t, store, run)
	refused("a run at the other's state", a, b, holdfast.ErrConflict)
	end(t, store, run, holdfast.RunInterrupted)
	writeState(t, store, 2, "b", stateJSON(1, "other", "b"))
	refused("a state of its own", a, b, holdfast.ErrConflict)
	if data, _, err := store.State(ctx, "clusters/b"); err != nil || !bytes.Contains(data, []byte("other")) {
		t.Errorf("State() of b = %s, %v", data, err)
	}
}

// A cluster that was destroyed has left an empty state: its name may be taken.
func testRenameOverEmpty(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	a, b := save(t, store, holdfast.ClusterRecord{Name: "a"}), save(t, store, holdfast.ClusterRecord{Name: "b"})
	empty := []byte(`{"version":4,"serial":9,"lineage":"old","resources":[]}`)
	writeState(t, store, 1, "b", stateJSON(8, "old", "b"), empty)
	writeState(t, store, 2, "a", stateJSON(1, "lin", "a1"), stateJSON(2, "lin", "a2"))
	if err := store.RenameCluster(ctx, a, b); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[int64][]byte{
		1: stateJSON(8, "old", "b"), 2: empty, 3: stateJSON(1, "lin", "a1"), 4: stateJSON(2, "lin", "a2"),
	} {
		if data, _, err := store.StateAt(ctx, "clusters/b", version); err != nil || !bytes.Equal(data, want) {
			t.Errorf("StateAt(%d) = %s, %v", version, data, err)
		}
	}
	if data, v, err := store.State(ctx, "clusters/b"); err != nil || v.Version != 4 || !bytes.Equal(data, stateJSON(2, "lin", "a2")) {
		t.Errorf("State() = version %d, %v", v.Version, err)
	}
	if got := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "b")).StateSerial; got != 2 {
		t.Errorf("StateSerial = %d, want that of the state that moved", got)
	}
	writeState(t, store, 3, "b", stateJSON(3, "lin", "a3"))
	if _, v, err := store.State(ctx, "clusters/b"); err != nil || v.Version != 5 || v.Serial != 3 {
		t.Errorf("State() after an apply = %+v, %v", v, err)
	}
	if got := must[[]holdfast.StateVersion](t)(store.StateVersions(ctx, "clusters/a")); len(got) != 0 {
		t.Errorf("StateVersions() of the old name = %+v", got)
	}

	// What cannot be read is not known to be empty.
	c, d := save(t, store, holdfast.ClusterRecord{Name: "c"}), save(t, store, holdfast.ClusterRecord{Name: "d"})
	writeState(t, store, 4, "c", stateJSON(1, "c", "c"))
	writeState(t, store, 5, "d", []byte(`{"serial":1,"lineage":"d","encrypted_data":"x"}`))
	if err := store.RenameCluster(ctx, c, d); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("RenameCluster() over an encrypted state = %v, want ErrConflict", err)
	}
}

// A lock that a dead apply left on a state, in a database of an older version,
// neither bars a rename nor goes with the state.
func TestRenameWithLocksLeftBehind(t *testing.T) {
	t.Parallel()
	path, ctx := filepath.Join(memory.Dir(t), "holdfast.db"), t.Context()
	store := openAt(t, datastore.Options{Path: path})
	a := save(t, store, holdfast.ClusterRecord{Name: "a"})
	run := newRun(1)
	run.Cluster, run.StateLocation = "a", "clusters/a"
	run = claim(t, store, run)
	end(t, store, run, holdfast.RunInterrupted)
	leaveLock(t, path, "clusters/a", run.Ref())
	leaveLock(t, path, "clusters/b", run.Ref())
	if err := store.RenameCluster(ctx, a, holdfast.ClusterRecord{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{"clusters/a", "clusters/b"} {
		if _, err := store.StateLock(ctx, location); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("StateLock(%s) = %v, want ErrNotFound", location, err)
		}
	}
}

// Only a rename moves a state: whoever writes to the file cannot.
func TestRenameBehindOurBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(memory.Dir(t), "holdfast.db")
	store := openAt(t, datastore.Options{Path: path})
	for i, name := range []string{"a", "b"} {
		writeState(t, store, i, name, stateJSON(1, name, name))
	}
	from := save(t, store, holdfast.ClusterRecord{Name: "a"})
	if err := store.RenameCluster(t.Context(), from, holdfast.ClusterRecord{Name: "c"}); err != nil {
		t.Fatal(err)
	}
	for _, forgery := range []string{
		`UPDATE state_versions SET location = 'clusters/d' WHERE location = 'clusters/b'`,
		`UPDATE state_versions SET origin = (SELECT origin FROM state_versions WHERE location = 'clusters/c') WHERE location = 'clusters/d'`,
		`UPDATE state_versions SET location = 'clusters/d', version = 2 WHERE location = 'clusters/c'`,
	} {
		execute(t, path, forgery)
		if _, _, err := store.State(t.Context(), "clusters/d"); err == nil || errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("State() after %s = %v, want an error", forgery, err)
		}
	}
}
