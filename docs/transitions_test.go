package docs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/plandoctest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

var statuses = []holdfast.RunStatus{
	holdfast.RunQueued, holdfast.RunRunning, holdfast.RunRetrying, holdfast.RunPlanned, holdfast.RunApplied,
	holdfast.RunNoChanges, holdfast.RunErrored, holdfast.RunCanceled, holdfast.RunInterrupted,
}

// TestTransitions does to runs of every status whatever is ever done to a run,
// and compares what came of it with the table.
func TestTransitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, from := range statuses {
		w.claim(from)
		w.cancel(from)
	}
	for _, result := range results() {
		w.finish(result)
	}
	w.preempt()
	if diff := cmp.Diff(documentedTransitions(t), w.seen); diff != "" {
		t.Errorf("the table of transitions is not what the code does (-page +code):\n%s", diff)
	}
}

// results are all ways in which an attempt ends.
func results() []protocol.Result {
	var out []protocol.Result
	for _, status := range statuses {
		if !status.Done() {
			continue
		}
		for _, applying := range []bool{false, true} {
			for _, failure := range []*holdfast.Failure{nil, {Summary: "it broke"}, {Summary: "it broke", Transient: true}} {
				for _, reason := range []holdfast.Reason{"", holdfast.ReasonLeaseLost} {
					out = append(out, protocol.Result{Status: status, Applying: applying, Failure: failure, Reason: reason})
				}
			}
		}
	}
	return out
}

// world is a reconciler with a real store, and without repositories.
type world struct {
	t     *testing.T
	store *datastore.Store
	rec   *reconciler.Reconciler
	seen  map[string]bool
	n     int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	keys, err := seal.NewKeyring(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	store, err := datastore.Open(t.Context(), datastore.Options{Path: filepath.Join(t.TempDir(), "holdfast.db"), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	rec, err := reconciler.New(reconciler.Options{
		Store: store, Limits: reconciler.Limits{Runs: 1000},
		Sources: reconciler.Sources{
			Git: struct{ reconciler.Git }{}, Commands: func(holdfast.Comment) []holdfast.Command { return nil },
		},
		Replica: reconciler.Replica{
			Locker: lock.NewMemory(), Identity: "test", FingerprintKey: make([]byte, 32), TokenKey: make([]byte, 32),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, store: store, rec: rec, seen: make(map[string]bool)}
}

// run stores a run of its own cluster with that status.
func (w *world) run(kind holdfast.RunKind, status holdfast.RunStatus) holdfast.Run {
	w.t.Helper()
	w.n++
	ctx, now := w.t.Context(), time.Now()
	name := fmt.Sprintf("cluster-%d", w.n)
	if _, err := w.store.SaveCluster(ctx, holdfast.ClusterRecord{Name: name, Owner: "fleet", Phase: holdfast.PhasePending}); err != nil {
		w.t.Fatal(err)
	}
	run := holdfast.Run{
		ID: holdfast.NewID("run", now), Cluster: name, Kind: kind, Status: status,
		CreatedAt: now,
		RunSpec:   holdfast.RunSpec{StateLocation: "clusters/" + name},
	}
	if status == holdfast.RunRunning {
		run.Status = holdfast.RunQueued
	}
	if err := w.store.CreateRun(ctx, run); err != nil {
		w.t.Fatal(err)
	}
	if status != holdfast.RunRunning {
		return w.read(run.ID)
	}
	claimed, err := w.store.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: "agent"}, now, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return claimed
}

func (w *world) read(id string) holdfast.Run {
	w.t.Helper()
	run, err := w.store.Run(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return run
}

func (w *world) note(before holdfast.Run) {
	w.t.Helper()
	if after := w.read(before.ID); after.Status != before.Status {
		w.seen[string(before.Status)+" → "+string(after.Status)] = true
	}
}

func (w *world) claim(from holdfast.RunStatus) {
	before := w.run(holdfast.RunPlan, from)
	if _, err := w.store.ClaimRun(w.t.Context(), before.ID, protocol.AgentRef{ID: "agent"}, time.Now(), 0); err != nil && !errors.Is(err, holdfast.ErrConflict) {
		w.t.Errorf("claim a run that is %s: %v", from, err)
	}
	w.note(before)
}

func (w *world) cancel(from holdfast.RunStatus) {
	before := w.run(holdfast.RunPlan, from)
	w.command(holdfast.VerbCancel, before.Cluster)
	w.note(before)
	if after := w.read(before.ID); from == holdfast.RunRunning && after.Cancel == "" {
		w.t.Error("a running run was not asked to stop")
	}
}

func (w *world) command(verb holdfast.Verb, cluster string) {
	w.t.Helper()
	_, err := w.rec.Command(w.t.Context(), holdfast.Command{
		Author: "somebody", Trusted: true, Verb: verb, Clusters: []string{cluster},
	})
	if err != nil {
		w.t.Errorf("%s %s: %v", verb, cluster, err)
	}
}

func (w *world) finish(result protocol.Result) {
	w.t.Helper()
	for _, kind := range []holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply, holdfast.RunDrift, holdfast.RunDestroy} {
		before := w.run(kind, holdfast.RunRunning)
		result.Fence = before.Fence
		w.leave(before, &result)
		if err := w.rec.Dispatcher().Finish(w.t.Context(), before.Ref(), result); err != nil {
			w.t.Errorf("finish with %s: %v", result.Status, err)
		}
		w.note(before)
		after := w.read(before.ID)
		if result.Applying && !after.Status.Done() {
			w.t.Errorf("an attempt that had begun to apply ended as %s and left its run %s", result.Status, after.Status)
		}
		if err := w.rec.Dispatcher().Finish(context.WithoutCancel(w.t.Context()), before.Ref(), result); !errors.Is(err, holdfast.ErrFenced) {
			w.t.Errorf("a second result was not refused: %v", err)
		}
	}
}

// leave leaves the plan document of a result that ended well.
func (w *world) leave(run holdfast.Run, result *protocol.Result) {
	w.t.Helper()
	if !result.Status.Good() {
		return
	}
	var plan holdfast.Plan
	if result.Status != holdfast.RunNoChanges {
		plan.Counts.Create = 1
	}
	document, info, digest, err := plandoctest.Artefacts(plan)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, data := range map[string][]byte{protocol.ArtefactDocument: document, protocol.ArtefactInfo: info} {
		if err := w.store.PutArtefact(w.t.Context(), run.Ref(), name, bytes.NewReader(data)); err != nil {
			w.t.Fatal(err)
		}
	}
	result.PlanDigest = digest
}

// preempt has a plan step back for an apply.
func (w *world) preempt() {
	before := w.run(holdfast.RunPlan, holdfast.RunRunning)
	before.Cancel = holdfast.ReasonPreempted
	before, err := w.store.UpdateRun(w.t.Context(), before)
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.rec.Dispatcher().Finish(w.t.Context(), before.Ref(), protocol.Result{
		Fence: before.Fence, Status: holdfast.RunCanceled, Reason: holdfast.ReasonCanceled,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.note(before)
	if after := w.read(before.ID); after.Reason != holdfast.ReasonPreempted || !strings.HasPrefix(after.ID, "run-") {
		w.t.Errorf("the plan is queued again for %q", after.Reason)
	}
}
