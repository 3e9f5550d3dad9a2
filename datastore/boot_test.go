package datastore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/durable"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/statelock"
)

// TestWhatWaitsForTheDisk: what the attempts of runs that do not write leave and lock is
// committed without waiting for the disk; what may be the only account of what an engine has
// done is not.
func TestWhatWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	store, ctx := openSQLite(t), t.Context()
	plan, apply := newRun(1), newRun(2)
	apply.Kind = holdfast.RunApply
	plan, apply = claim(t, store, plan), claim(t, store, apply)
	held := statelock.StateLock{ID: "held", By: apply.Ref()}
	if err := store.LockState(ctx, apply.StateLocation, held); err != nil {
		t.Fatal(err)
	}
	if err := datastore.RefuseDurable(ctx, store); err != nil {
		t.Fatal(err)
	}
	put := func(run holdfast.Run, name string) func() error {
		return func() error { return store.PutArtefact(ctx, run.Ref(), name, strings.NewReader("{}")) }
	}
	lock := func(run holdfast.Run) func() error {
		return func() error {
			return store.LockState(ctx, run.StateLocation, statelock.StateLock{ID: "l", By: run.Ref()})
		}
	}
	end := func(run holdfast.Run) func() error {
		return func() error {
			run.Status = holdfast.RunPlanned
			_, err := store.EndAttempt(ctx, run.Ref(), run, nil)
			return err
		}
	}
	for _, step := range []struct {
		name  string
		waits bool
		do    func() error
	}{
		{"the document of a plan", false, put(plan, protocol.ArtefactDocument)},
		{"the lock of a plan", false, lock(plan)},
		{"the end of that lock", false, func() error { return store.UnlockState(ctx, plan.StateLocation, "l", plan.Ref()) }},
		{"a state that a plan cannot save", true, put(plan, protocol.ArtefactErrored)},
		{"the end of a plan", true, end(plan)},
		{"the end of an apply's lock", false, func() error { return store.UnlockState(ctx, apply.StateLocation, "held", apply.Ref()) }},
		{"the lock of an apply", true, lock(apply)},
		{"the document of an apply", true, put(apply, protocol.ArtefactDocument)},
		{"the resources of an apply", true, put(apply, protocol.ArtefactResources)},
		{"the plan of an apply, which is made of that document", false, put(apply, protocol.ArtefactPlan)},
		{"the state of an apply", true, func() error {
			_, err := store.PutState(ctx, holdfast.StateWrite{Location: apply.StateLocation, By: apply.Ref(), Data: stateJSON(1, "l", "")})
			return err
		}},
		{"the end of an apply", true, end(apply)},
		{"another run", true, func() error { return store.CreateRun(ctx, newRun(3)) }},
	} {
		if err := step.do(); (err != nil) != step.waits {
			t.Errorf("%s: %v where nothing waits for the disk, want an error: %t", step.name, err, step.waits)
		}
	}
}

// TestPowerCut: what was not on disk is known to be lost, perhaps, of the attempts of before;
// those of later, and what a restart of the server alone comes between, lack nothing.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "holdfast.db")
	open := func() *datastore.Store {
		t.Helper()
		return must[*datastore.Store](t)(datastore.Open(t.Context(), datastore.Options{Path: path, Keys: testKeys(t, 'k')}))
	}
	stop := func(store *datastore.Store) {
		t.Helper()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	store := open()
	first := claim(t, store, newRun(1))
	if store.MayLack(first.Ref()) {
		t.Error("the first attempt may lack something")
	}
	stop(store)
	onDisk := must[[]byte](t)(os.ReadFile(path))

	store = open()
	putArtefact(t, store, first.Ref(), protocol.ArtefactDocument, []byte("{}"))
	if unknown := durable.Boot() == ""; store.MayLack(first.Ref()) != unknown {
		t.Errorf("after a restart of the server the attempt may lack something: %t", !unknown)
	}
	stop(store)

	// The power fails, and the machine starts again.
	for _, log := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + log); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, onDisk, 0o600); err != nil {
		t.Fatal(err)
	}
	execute(t, path, `UPDATE counters SET value = value + 1 WHERE name = 'boot'`)
	for range 2 { // it stays so
		store = open()
		if _, err := store.Artefact(t.Context(), first.ID, protocol.ArtefactDocument); !errors.Is(err, holdfast.ErrNotFound) {
			t.Fatalf("the document is there: %v", err)
		}
		if !store.MayLack(first.Ref()) {
			t.Error("an attempt whose document is lost lacks nothing")
		}
		stop(store)
	}
	store = open()
	defer stop(store)
	if next := claim(t, store, newRun(2)); store.MayLack(next.Ref()) {
		t.Error("an attempt that was claimed after it may lack something")
	}
}
