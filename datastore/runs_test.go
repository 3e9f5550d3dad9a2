package datastore_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/protocol"
)

func testRuns(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	pr := holdfast.PullRequestRef{Repo: "fleet", Number: 7}

	full := newRun(1)
	full.PullRequest, full.Kind, full.Status = pr, holdfast.RunApply, holdfast.RunErrored
	full.Reviews = []holdfast.Review{{Run: "run-0000", Fingerprint: "sha256:f"}}
	full.Failure = &holdfast.Failure{Step: "apply", Summary: "boom", Diagnostics: []holdfast.Diagnostic{{Summary: "s"}}}
	full.Counts = holdfast.Counts{Create: 2}
	full.NotBefore, full.HeartbeatAt, full.PostedAt = noon.Add(1), noon.Add(2), noon.Add(3)
	full.StartedAt, full.FinishedAt, full.Step = noon.Add(4), noon.Add(5), "apply"
	full.Document.Project = "payments"
	create(t, store, full, newRun(2), newRun(3))

	got := must[holdfast.Run](t)(store.Run(ctx, full.ID))
	full.Version, full.Runner = 1, holdfast.LocalRunner
	if diff := differ(full, got); diff != "" {
		t.Errorf("Run() differs from what was created (-want +got):\n%s", diff)
	}
	if err := store.CreateRun(ctx, newRun(1)); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("CreateRun of an id that exists = %v, want ErrConflict", err)
	}
	if err := store.CreateRun(ctx, holdfast.Run{ID: "x"}); err == nil {
		t.Error("CreateRun of a run without a cluster is not an error")
	}
	if _, err := store.Run(ctx, "none"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Run(none) = %v, want ErrNotFound", err)
	}

	for name, test := range map[string]struct {
		filter holdfast.RunFilter
		want   []string
	}{
		"all, newest first": {holdfast.RunFilter{}, []string{"run-0003", "run-0002", "run-0001"}},
		"limit":             {holdfast.RunFilter{Limit: 1}, []string{"run-0003"}},
		"cluster":           {holdfast.RunFilter{Cluster: "c002"}, []string{"run-0002"}},
		"pull request":      {holdfast.RunFilter{PullRequest: &pr}, []string{"run-0001"}},
		"tracked branch":    {holdfast.RunFilter{PullRequest: &holdfast.PullRequestRef{}}, []string{"run-0003", "run-0002"}},
		"kinds":             {holdfast.RunFilter{Kinds: []holdfast.RunKind{holdfast.RunApply, holdfast.RunDestroy}}, []string{"run-0001"}},
		"statuses": {
			holdfast.RunFilter{Cluster: "c003", Statuses: []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRunning}},
			[]string{"run-0003"},
		},
		"projects": {holdfast.RunFilter{Projects: []string{"payments", "shop"}}, []string{"run-0001"}},
		"none":     {holdfast.RunFilter{Cluster: "c"}, nil},
	} {
		if diff := differ(test.want, ids(must[[]holdfast.Run](t)(store.Runs(ctx, test.filter)))); diff != "" {
			t.Errorf("Runs(%s) (-want +got):\n%s", name, diff)
		}
	}
}

func testClaims(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	_, err := store.SaveCluster(ctx, holdfast.ClusterRecord{Name: "c001", Applied: holdfast.Applied{Run: "run-old"}})
	if err != nil {
		t.Fatal(err)
	}
	same := newRun(2)
	same.StateLocation = "clusters/c001"
	retrying := newRun(3)
	retrying.Status, retrying.NotBefore = holdfast.RunRetrying, noon.Add(time.Minute)
	ended := newRun(4)
	ended.Status = holdfast.RunPlanned
	create(t, store, newRun(1), same, retrying, ended, newRun(5))

	run := must[holdfast.Run](t)(store.ClaimRun(ctx, "run-0001", protocol.AgentRef{ID: "agent-a"}, noon, 2))
	want := newRun(1)
	want.Status, want.Attempt, want.Fence, want.Agent, want.Version = holdfast.RunRunning, 1, 1, "agent-a", 2
	want.HeartbeatAt, want.StartedAt, want.AppliedRun, want.Runner = noon, noon, "run-old", holdfast.LocalRunner
	if diff := differ(want, run); diff != "" {
		t.Errorf("ClaimRun() (-want +got):\n%s", diff)
	}
	if diff := differ(run, must[holdfast.Run](t)(store.Run(ctx, run.ID))); diff != "" {
		t.Errorf("Run() after ClaimRun() (-claimed +stored):\n%s", diff)
	}

	for name, test := range map[string]struct {
		id   string
		at   time.Time
		want error
	}{
		"running already":              {"run-0001", noon, holdfast.ErrConflict},
		"location has a running run":   {"run-0002", noon, holdfast.ErrConflict},
		"retrying before its time":     {"run-0003", noon, holdfast.ErrConflict},
		"ended":                        {"run-0004", noon, holdfast.ErrConflict},
		"unknown":                      {"run-9999", noon, holdfast.ErrNotFound},
		"retrying when its time comes": {"run-0003", noon.Add(time.Minute), nil},
	} {
		// Map order does not matter: the one that succeeds stays within the limit.
		if _, err := store.ClaimRun(ctx, test.id, protocol.AgentRef{ID: "agent-b"}, test.at, 2); !errors.Is(err, test.want) {
			t.Errorf("ClaimRun(%s) = %v, want %v", name, err, test.want)
		}
	}
	if _, err := store.ClaimRun(ctx, "run-0005", protocol.AgentRef{ID: "agent-b"}, noon, 2); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("ClaimRun beyond the limit = %v, want ErrConflict", err)
	}
	if second, err := store.ClaimRun(ctx, "run-0005", protocol.AgentRef{ID: "agent-b"}, noon, 3); err != nil || second.Fence <= run.Fence {
		t.Errorf("ClaimRun within the limit = fence %d, %v; want a fence beyond %d", second.Fence, err, run.Fence)
	}
}

func testClaimable(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	// c001: a plan, then an apply; c002: something runs; c003: a retry, not yet
	// due; c004: ended; c005: two plans; c006: an apply, the youngest of all.
	at := func(n, cluster int, kind holdfast.RunKind) holdfast.Run {
		run := newRun(n)
		run.Kind, run.Cluster, run.StateLocation = kind, fmt.Sprintf("c%03d", cluster), fmt.Sprintf("clusters/c%03d", cluster)
		return run
	}
	retry := at(30, 3, holdfast.RunPlan)
	retry.Status, retry.NotBefore = holdfast.RunRetrying, noon.Add(time.Hour)
	ended := at(40, 4, holdfast.RunPlan)
	ended.Status = holdfast.RunPlanned
	create(t, store,
		at(10, 1, holdfast.RunPlan), at(11, 1, holdfast.RunApply),
		at(21, 2, holdfast.RunApply), retry, ended,
		at(50, 5, holdfast.RunPlan), at(51, 5, holdfast.RunDrift), at(60, 6, holdfast.RunDestroy))
	claim(t, store, at(20, 2, holdfast.RunPlan))
	sample, drift := at(1, 7, holdfast.RunPlan), at(2, 8, holdfast.RunDrift) // the oldest: of samples there may be thousands
	sample.Sample = true
	create(t, store, drift, sample)

	for _, test := range []struct {
		at    time.Time
		limit int
		want  []string
	}{
		{noon, 10, []string{"run-0011", "run-0060", "run-0050", "run-0001", "run-0002"}},
		{noon, 2, []string{"run-0011", "run-0060"}},
		{noon.Add(time.Hour), 10, []string{"run-0011", "run-0060", "run-0030", "run-0050", "run-0001", "run-0002"}},
		{noon, 0, nil},
	} {
		got := must[[]string](t)(store.Claimable(ctx, holdfast.ClaimFilter{Now: test.at, Limit: test.limit}))
		if diff := differ(test.want, got); diff != "" {
			t.Errorf("Claimable(%s, %d) (-want +got):\n%s", test.at, test.limit, diff)
		}
	}
}

func testAttempts(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	first := claim(t, store, newRun(1))

	beaten := must[holdfast.Run](t)(store.Beat(ctx, first.Ref(), "plan", noon.Add(time.Second)))
	if beaten.Step != "plan" || !beaten.HeartbeatAt.Equal(noon.Add(time.Second)) || beaten.Version != first.Version {
		t.Errorf("Beat() = step %q at %s version %d", beaten.Step, beaten.HeartbeatAt, beaten.Version)
	}
	if again := must[holdfast.Run](t)(store.Beat(ctx, first.Ref(), "", noon.Add(2*time.Second))); again.Step != "plan" {
		t.Errorf("Beat() without a step = step %q, want that of before", again.Step)
	}

	// The record was read before the beats: the last one is not lost by its write, and its
	// step ends with the attempt.
	retry := first
	retry.Status, retry.Reason, retry.NotBefore, retry.Retries = holdfast.RunRetrying, "Throttled", noon.Add(time.Minute), 1
	retry.Failure = &holdfast.Failure{Summary: "slow down", Transient: true}
	retry.Attempt, retry.Fence, retry.Agent = 99, 99, "somebody"
	stored := must[holdfast.Run](t)(store.EndAttempt(ctx, first.Ref(), retry, nil))
	if stored.Step != "" || !stored.HeartbeatAt.Equal(noon.Add(2*time.Second)) || stored.Ref() != first.Ref() || stored.Agent != "agent" || stored.Version != first.Version+1 {
		t.Errorf("EndAttempt() = %+v", stored)
	}

	for name, err := range map[string]error{
		"Beat":       second(store.Beat(ctx, first.Ref(), "apply", noon)),
		"EndAttempt": second(store.EndAttempt(ctx, first.Ref(), stored, nil)),
		"unknown run": second(store.EndAttempt(ctx, holdfast.AttemptRef{Run: "run-9999", Attempt: 1, Fence: 1},
			holdfast.Run{ID: "run-9999", Status: holdfast.RunErrored}, nil)),
	} {
		if !errors.Is(err, holdfast.ErrFenced) {
			t.Errorf("%s of an attempt that is over = %v, want ErrFenced", name, err)
		}
	}

	next := must[holdfast.Run](t)(store.ClaimRun(ctx, first.ID, protocol.AgentRef{ID: "agent-2"}, noon.Add(time.Hour), 0))
	if next.Attempt != 2 || next.Fence <= first.Fence || next.Reason != "" || !next.NotBefore.IsZero() || !next.StartedAt.Equal(noon) {
		t.Errorf("second ClaimRun() = %+v", next)
	}
	if _, err := store.Beat(ctx, first.Ref(), "apply", noon); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("Beat of a former attempt = %v, want ErrFenced", err)
	}
	stale := next
	stale.Version, stale.Status = next.Version-1, holdfast.RunPlanned
	if _, err := store.EndAttempt(ctx, next.Ref(), stale, nil); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("EndAttempt with an old version = %v, want ErrConflict", err)
	}
	if _, err := store.EndAttempt(ctx, next.Ref(), next, nil); err == nil {
		t.Error("EndAttempt of a run that continues running is not an error")
	}
	next.FinishedAt, next.Reason = noon.Add(2*time.Hour), "Done"
	end(t, store, next, holdfast.RunPlanned)

	want := []holdfast.Attempt{
		{Run: first.ID, Attempt: 1, Fence: first.Fence, Agent: "agent", Status: holdfast.RunErrored, Reason: "Throttled", ClaimedAt: noon, EndedAt: noon},
		{
			Run: first.ID, Attempt: 2, Fence: next.Fence, Agent: "agent-2", Status: holdfast.RunPlanned, Reason: "Done",
			ClaimedAt: noon.Add(time.Hour), EndedAt: noon.Add(2 * time.Hour),
		},
	}
	if diff := differ(want, must[[]holdfast.Attempt](t)(store.Attempts(ctx, first.ID))); diff != "" {
		t.Errorf("Attempts() (-want +got):\n%s", diff)
	}
}

func testUpdates(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	run := claim(t, store, newRun(1))
	must[holdfast.Run](t)(store.Beat(ctx, run.Ref(), "apply", noon.Add(time.Minute)))

	run.Cancel = "Superseded"
	updated := must[holdfast.Run](t)(store.UpdateRun(ctx, run))
	if updated.Version != run.Version+1 || updated.Step != "apply" || !updated.HeartbeatAt.Equal(noon.Add(time.Minute)) {
		t.Errorf("UpdateRun() = version %d, step %q, heartbeat %s", updated.Version, updated.Step, updated.HeartbeatAt)
	}
	if diff := differ(updated, must[holdfast.Run](t)(store.Run(ctx, run.ID))); diff != "" {
		t.Errorf("Run() after UpdateRun() (-returned +stored):\n%s", diff)
	}
	if _, err := store.UpdateRun(ctx, run); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("UpdateRun with an old version = %v, want ErrConflict", err)
	}
	if _, err := store.UpdateRun(ctx, newRun(9)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("UpdateRun of an unknown run = %v, want ErrNotFound", err)
	}
	if _, err := store.UpdateRun(ended(t), updated); err == nil {
		t.Error("UpdateRun with a context that is done is not an error")
	}

	// An update that ends the run ends its attempt; no update begins one.
	updated.Status = holdfast.RunInterrupted
	updated = must[holdfast.Run](t)(store.UpdateRun(ctx, updated))
	attempts := must[[]holdfast.Attempt](t)(store.Attempts(ctx, run.ID))
	if len(attempts) != 1 || attempts[0].Status != holdfast.RunInterrupted || attempts[0].EndedAt.IsZero() {
		t.Errorf("Attempts() after an update that ended the run = %+v", attempts)
	}
	updated.Status = holdfast.RunRunning
	if _, err := store.UpdateRun(ctx, updated); err == nil {
		t.Error("UpdateRun that makes a run running is not an error: its old attempt would live again")
	}
}

func testManyClaims(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	const tries = 500
	create(t, store, newRun(1))
	var granted atomic.Int64
	var group sync.WaitGroup
	for i := range tries {
		group.Go(func() {
			_, err := store.ClaimRun(ctx, "run-0001", protocol.AgentRef{ID: fmt.Sprint("agent-", i)}, noon, 0)
			switch {
			case err == nil:
				granted.Add(1)
			case !errors.Is(err, holdfast.ErrConflict):
				t.Errorf("ClaimRun() = %v, want ErrConflict", err)
			}
		})
	}
	group.Wait()
	if granted.Load() != 1 {
		t.Errorf("%d of %d claims were granted, want 1", granted.Load(), tries)
	}
}

// testEverythingAtOnce runs whole lives of runs next to one another and next to
// readers: nobody is told that the database is busy.
func testEverythingAtOnce(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	const workers, each = 6, 5
	life := func(n int) error {
		run := newRun(n)
		run.Kind = holdfast.RunApply
		if err := store.CreateRun(ctx, run); err != nil {
			return err
		}
		run, err := store.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: "agent"}, noon, 0)
		if err != nil {
			return err
		}
		var offset int64
		for range 5 {
			_, beat := store.Beat(ctx, run.Ref(), "apply", noon)
			offset, err = store.AppendLog(ctx, run.Ref(), offset, []byte("line\n"))
			_, state := store.PutState(ctx, holdfast.StateWrite{Location: run.StateLocation, By: run.Ref(), Data: stateJSON(offset, "l", "s")})
			_, listed := store.Runs(ctx, holdfast.RunFilter{Statuses: []holdfast.RunStatus{holdfast.RunRunning}})
			_, claimable := store.Claimable(ctx, holdfast.ClaimFilter{Now: noon, Limit: 10})
			put := store.PutArtefact(ctx, run.Ref(), "plan", strings.NewReader("plan"))
			if err := errors.Join(beat, err, state, listed, claimable, put); err != nil {
				return err
			}
		}
		run.Status = holdfast.RunApplied
		_, err = store.EndAttempt(ctx, run.Ref(), run, nil)
		return err
	}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := range each {
				if err := life(worker*each + i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	runs := must[[]holdfast.Run](t)(store.Runs(ctx, holdfast.RunFilter{Statuses: []holdfast.RunStatus{holdfast.RunApplied}}))
	fences := map[int64]bool{}
	for _, run := range runs {
		fences[run.Fence] = true
	}
	if len(runs) != workers*each || len(fences) != workers*each {
		t.Errorf("%d runs ended with %d fences, want %d of both", len(runs), len(fences), workers*each)
	}
}

// second returns the error of two results.
func second[T any](_ T, err error) error { return err }

// TestStepEndsWithTheAttempt: whoever has read a run before its last sign of life ends it
// without the step of that, and with the time.
func TestStepEndsWithTheAttempt(t *testing.T) {
	t.Parallel()
	store, ctx := openSQLite(t), t.Context()
	run := claim(t, store, newRun(1))
	beat := noon.Add(time.Second)
	must[holdfast.Run](t)(store.Beat(ctx, run.Ref(), "plan", beat))
	run.Step = ""
	end(t, store, run, holdfast.RunPlanned)
	if got := must[holdfast.Run](t)(store.Run(ctx, run.ID)); got.Step != "" || !got.HeartbeatAt.Equal(beat) {
		t.Errorf("it ended in the step %q, with a sign of life at %s", got.Step, got.HeartbeatAt)
	}
}

// TestBriefDecodesNothing: it is right where the record cannot be decoded.
func TestBriefDecodesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(memory.Dir(t), "holdfast.db")
	store := openAt(t, datastore.Options{Path: path})
	run := newRun(1)
	run.Bundle = "sha256:b"
	run = claim(t, store, run)
	execute(t, path, `UPDATE runs SET doc = x'00'`)
	got := must[holdfast.RunBrief](t)(store.Brief(t.Context(), run.ID))
	want := holdfast.RunBrief{
		AttemptRef: run.Ref(), Cluster: run.Cluster, Kind: run.Kind, Status: holdfast.RunRunning, StateLocation: run.StateLocation, Bundle: "sha256:b",
	}
	if got != want {
		t.Errorf("Brief() = %+v, want %+v", got, want)
	}
	if _, err := store.Brief(t.Context(), "run-none"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Brief() of no run = %v", err)
	}
}
