package datastore_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/statelock"
)

// stateRun is a queued run that pushes u.
func stateRun(n int, u holdfast.UnsavedState) holdfast.Run {
	run := newRun(n)
	run.Cluster, run.Kind, run.StateLocation = u.Cluster, holdfast.RunState, u.Location
	run.State = &holdfast.StateJob{Action: holdfast.StatePush, Unsaved: u}
	return run
}

func standing(t *testing.T, store *datastore.Store, want int) holdfast.UnsavedState {
	t.Helper()
	list := must[[]holdfast.UnsavedState](t)(store.UnsavedStates(t.Context(), ""))
	if len(list) != want {
		t.Fatalf("%d unsaved states stand, want %d: %+v", len(list), want, list)
	}
	if want == 0 {
		return holdfast.UnsavedState{}
	}
	return list[0]
}

// ticking returns a clock that is never twice at the same time.
func ticking() func() time.Time {
	var ticks atomic.Int64
	return func() time.Time { return noon.Add(time.Duration(ticks.Add(1))) }
}

// TestUnsavedStates: which ends of attempts leave a state that could not be
// saved.
func TestUnsavedStates(t *testing.T) {
	t.Parallel()
	unsaved := &holdfast.Failure{Cause: holdfast.CauseStateUnsaved}
	for name, test := range map[string]struct {
		kind     holdfast.RunKind
		location string
		failure  *holdfast.Failure
		rescued  bool
		want     int
	}{
		"an apply whose backend was away":            {holdfast.RunApply, "pg:db", unsaved, true, 1},
		"one that could not keep it either":          {holdfast.RunApply, "pg:db", unsaved, false, 1},
		"a killed one, found by the next agent":      {holdfast.RunApply, "pg:db", &holdfast.Failure{Cause: holdfast.ReasonAgentKilled}, true, 1},
		"a destroy":                                  {holdfast.RunDestroy, "pg:db", unsaved, true, 1},
		"an apply that failed otherwise":             {holdfast.RunApply, "pg:db", &holdfast.Failure{Cause: "Network"}, false, 0},
		"our own backend, pushed after all":          {holdfast.RunApply, "clusters/a", &holdfast.Failure{Cause: "Network"}, true, 0},
		"our own backend, not pushed":                {holdfast.RunApply, "clusters/a", unsaved, true, 1},
		"a run that only says so, and never applies": {holdfast.RunPlan, "pg:db", unsaved, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db")})
			run := newRun(1)
			run.Cluster, run.Kind, run.StateLocation = "a", test.kind, test.location
			run = claim(t, store, run)
			if test.rescued {
				putArtefact(t, store, run.Ref(), protocol.ArtefactErrored, stateJSON(3, "lin", "x"))
			}
			run.Failure = test.failure
			end(t, store, run, holdfast.RunErrored)
			u := standing(t, store, test.want)
			if test.want > 0 && (u.Location != test.location || u.Cluster != "a" || u.Run != run.ID || u.Attempt != 1) {
				t.Errorf("%+v stands", u)
			}
		})
	}
}

// TestLateUnsavedStates: a state that could not be saved stands also if it comes when
// its attempt is over, once, and displaces none of a later run.
func TestLateUnsavedStates(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db"), Now: ticking()})
	dead := func(n int, kind holdfast.RunKind, location string) holdfast.Run {
		run := newRun(n)
		run.Cluster, run.Kind, run.StateLocation = "a", kind, location
		run = claim(t, store, run)
		end(t, store, run, holdfast.RunInterrupted)
		return run
	}
	late := func(run holdfast.Run) {
		putArtefact(t, store, run.Ref(), protocol.ArtefactErrored, stateJSON(3, "lin", "x"))
	}
	entry := holdfast.AuditEntry{At: noon, Actor: "admin", Action: "state.waive", Object: "a"}
	own := dead(1, holdfast.RunApply, "clusters/a")
	late(own) // the engine could not ask whether there is a state, and uploaded none
	if u := standing(t, store, 1); u.Location != "clusters/a" || u.Run != own.ID || u.Version != 0 {
		t.Errorf("%+v stands, want the file of our own backend's state", u)
	}
	if err := store.WaiveUnsaved(ctx, standing(t, store, 1), entry); err != nil {
		t.Fatal(err)
	}

	first, second := dead(2, holdfast.RunApply, "pg:db"), dead(3, holdfast.RunDestroy, "pg:db")
	third := dead(4, holdfast.RunApply, "pg:db")
	late(first)
	u := standing(t, store, 1)
	if u.Location != "pg:db" || u.Run != first.ID || u.Attempt != 1 || u.Version != 0 {
		t.Errorf("%+v stands", u)
	}
	if err := store.WaiveUnsaved(ctx, u, entry); err != nil {
		t.Fatal(err)
	}
	late(first) // the answer was lost
	standing(t, store, 0)
	late(second)
	late(first)
	if u := standing(t, store, 1); u.Run != second.ID {
		t.Errorf("%+v stands, want that of the later run", u)
	}

	// What came while another one stood stands after it.
	late(third)
	if err := store.WaiveUnsaved(ctx, standing(t, store, 1), entry); err != nil {
		t.Fatal(err)
	}
	if u := standing(t, store, 1); u.Run != third.ID {
		t.Errorf("%+v stands, want what came late", u)
	}
	if err := store.WaiveUnsaved(ctx, standing(t, store, 1), entry); err != nil {
		t.Fatal(err)
	}
	standing(t, store, 0)
}

// TestLateUploads: an upload that is refused while the state of another run stands is to
// be pushed after that, if it is newer than what was pushed.
func TestLateUploads(t *testing.T) {
	t.Parallel()
	for serial, want := range map[int64]int{3: 1, 2: 0} {
		store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db"), Now: ticking()})
		var over []holdfast.Run
		for n := range 2 {
			run := newRun(n + 1)
			run.Cluster, run.Kind, run.StateLocation = "a", holdfast.RunApply, "clusters/a"
			run = claim(t, store, run)
			end(t, store, run, holdfast.RunInterrupted)
			over = append(over, run)
		}
		put := func(by holdfast.Run, serial int64, text string) error {
			_, err := store.PutState(t.Context(), holdfast.StateWrite{Location: "clusters/a", By: by.Ref(), Data: stateJSON(serial, "lin", text)})
			return err
		}
		if err := put(over[1], 2, "second"); !errors.Is(err, holdfast.ErrFenced) {
			t.Fatal(err)
		}
		u := standing(t, store, 1)
		if err := put(over[0], serial, "first"); !errors.Is(err, holdfast.ErrFenced) {
			t.Fatal(err)
		}
		push := stateRun(3, u)
		if err := store.PushUnsaved(t.Context(), u, push); err != nil {
			t.Fatal(err)
		}
		push = must[holdfast.Run](t)(store.ClaimRun(t.Context(), push.ID, protocol.AgentRef{ID: "agent"}, noon, 0))
		if err := put(push, 2, "second"); err != nil {
			t.Fatal(err)
		}
		end(t, store, push, holdfast.RunApplied)
		if u := standing(t, store, want); want > 0 && u.Run != over[0].ID {
			t.Errorf("%+v stands, want what came late", u)
		}
	}
}

// TestRefusedUploadsOfAnApply: what an apply uploads beside its engine, under a lock that
// is not the state's, is not its state if that was saved afterwards. The last word counts:
// of an engine whose state was refused at the end, that stands.
func TestRefusedUploadsOfAnApply(t *testing.T) {
	t.Parallel()
	const refused, taken = "not-the-lock", "lock"
	for name, c := range map[string]struct {
		uploads []string // the locks that they name
		status  holdfast.RunStatus
		want    int
		earlier int
	}{
		"refused, then saved":             {[]string{refused, refused, taken}, holdfast.RunApplied, 0, 0},
		"saved, then refused":             {[]string{taken, refused}, holdfast.RunApplied, 1, 0},
		"only refused":                    {[]string{refused}, holdfast.RunApplied, 1, 0},
		"refused three times":             {[]string{refused, refused, refused}, holdfast.RunApplied, 1, 2},
		"refused, then saved, and failed": {[]string{refused, taken}, holdfast.RunErrored, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db")})
			run := newRun(1)
			run.Cluster, run.Kind, run.StateLocation = "a", holdfast.RunApply, "clusters/a"
			run = claim(t, store, run)
			if err := store.LockState(t.Context(), "clusters/a", statelock.StateLock{ID: taken, By: run.Ref()}); err != nil {
				t.Fatal(err)
			}
			for i, id := range c.uploads {
				_, err := store.PutState(t.Context(), holdfast.StateWrite{
					Location: "clusters/a", LockID: id, By: run.Ref(), Data: stateJSON(int64(i+1), "lin-"+id, "x"),
				})
				if id == taken && err != nil || id == refused && err == nil {
					t.Fatalf("upload %d under %q: %v", i, id, err)
				}
			}
			end(t, store, run, c.status)
			if u := standing(t, store, c.want); u.Earlier != c.earlier {
				t.Errorf("%d were refused before it, want %d", u.Earlier, c.earlier)
			}
		})
	}
}

// TestUnsavedStateHoldsBack: nothing but a run of kind state is handed out, and a
// plan that was made meanwhile is not taken, until the state is pushed.
func TestUnsavedStateHoldsBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db")})
	apply := newRun(1)
	apply.Cluster, apply.Kind, apply.StateLocation = "a", holdfast.RunApply, "clusters/a"
	apply = claim(t, store, apply)
	end(t, store, apply, holdfast.RunInterrupted)
	plan := newRun(2)
	plan.Cluster, plan.StateLocation = "a", "clusters/a"
	plan = claim(t, store, plan)

	// The dead apply's engine lived: what it uploads now is refused, and stands.
	_, err := store.PutState(ctx, holdfast.StateWrite{Location: "clusters/a", By: apply.Ref(), Data: stateJSON(1, "lin", "late")})
	if !errors.Is(err, holdfast.ErrFenced) {
		t.Fatalf("PutState() by an attempt that is over = %v", err)
	}
	u := standing(t, store, 1)
	planned := plan
	planned.Status = holdfast.RunPlanned
	if _, err := store.EndAttempt(ctx, plan.Ref(), planned, nil); !errors.Is(err, holdfast.ErrUnsaved) {
		t.Errorf("EndAttempt() of a plan of the old state = %v, want ErrUnsaved", err)
	}
	planned.Status = holdfast.RunQueued
	if _, err := store.EndAttempt(ctx, plan.Ref(), planned, nil); err != nil {
		t.Fatal(err)
	}
	filter := holdfast.ClaimFilter{Now: noon.Add(time.Hour), Limit: 9}
	if got := must[[]string](t)(store.Claimable(ctx, filter)); len(got) != 0 {
		t.Errorf("Claimable() = %+v while the state stands", got)
	}
	if _, err := store.ClaimRun(ctx, plan.ID, protocol.AgentRef{ID: "agent"}, noon, 0); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("ClaimRun() of a plan while the state stands = %v, want ErrConflict", err)
	}

	push := stateRun(3, u)
	if err := store.PushUnsaved(ctx, u, push); err != nil {
		t.Fatal(err)
	}
	if err := store.PushUnsaved(ctx, u, stateRun(4, u)); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("a second PushUnsaved() = %v, want ErrConflict", err)
	}
	if got := must[[]string](t)(store.Claimable(ctx, filter)); len(got) != 1 || got[0] != push.ID {
		t.Errorf("Claimable() = %+v, want the push", got)
	}
	push = must[holdfast.Run](t)(store.ClaimRun(ctx, push.ID, protocol.AgentRef{ID: "agent"}, noon, 0))
	file := must[io.ReadCloser](t)(store.OpenUnsaved(ctx, u))
	data := must[[]byte](t)(io.ReadAll(file))
	_ = file.Close()
	if string(data) != string(stateJSON(1, "lin", "late")) {
		t.Errorf("OpenUnsaved() = %s", data)
	}
	if _, err := store.PutState(ctx, holdfast.StateWrite{Location: "clusters/a", By: push.Ref(), Data: data}); err != nil {
		t.Fatal(err)
	}
	end(t, store, push, holdfast.RunApplied)
	standing(t, store, 0)
	if got := must[[]string](t)(store.Claimable(ctx, filter)); len(got) != 1 || got[0] != plan.ID {
		t.Errorf("Claimable() = %+v, want the plan after the push", got)
	}
}

// TestPushThatWasRefused: an agent that says so has not pushed a state to our own
// backend, which has to have it.
func TestPushThatWasRefused(t *testing.T) {
	t.Parallel()
	store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db")})
	apply := newRun(1)
	apply.Cluster, apply.Kind, apply.StateLocation = "a", holdfast.RunApply, "clusters/a"
	apply = claim(t, store, apply)
	apply.Failure = &holdfast.Failure{Cause: holdfast.CauseStateUnsaved}
	end(t, store, apply, holdfast.RunErrored)
	u := standing(t, store, 1)
	push := stateRun(2, u)
	if err := store.PushUnsaved(t.Context(), u, push); err != nil {
		t.Fatal(err)
	}
	push = must[holdfast.Run](t)(store.ClaimRun(t.Context(), push.ID, protocol.AgentRef{ID: "agent"}, noon, 0))
	end(t, store, push, holdfast.RunApplied)
	standing(t, store, 1)
}

// TestWaiveUnsaved: giving up is on record, and another file takes the place of
// what was rescued.
func TestWaiveUnsaved(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db")})
	apply := newRun(1)
	apply.Cluster, apply.Kind, apply.StateLocation = "a", holdfast.RunApply, "pg:db"
	apply = claim(t, store, apply)
	apply.Failure = &holdfast.Failure{Cause: holdfast.CauseStateUnsaved}
	end(t, store, apply, holdfast.RunErrored)
	u := standing(t, store, 1)
	if _, err := store.OpenUnsaved(ctx, u); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("OpenUnsaved() of what reached nobody = %v, want ErrNotFound", err)
	}
	if _, err := store.ReplaceUnsaved(ctx, u, "run-0001", []byte(`{"no":"state"}`)); err == nil {
		t.Error("ReplaceUnsaved() took what is not a state")
	}
	next := must[holdfast.UnsavedState](t)(store.ReplaceUnsaved(ctx, u, "run-0001", stateJSON(4, "lin", "mine")))
	entry := holdfast.AuditEntry{Actor: "ana", Action: "state.waive", Object: "a", Detail: "it is known"}
	if err := store.WaiveUnsaved(ctx, u, entry); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("WaiveUnsaved() of what was replaced = %v, want ErrConflict", err)
	}
	// A push that is queued between a look and a decision is not passed over.
	push := newRun(2)
	push.Cluster, push.Kind = "a", holdfast.RunState
	push.State = &holdfast.StateJob{Action: holdfast.StatePush, From: apply.ID, Unsaved: next}
	if err := store.PushUnsaved(ctx, next, push); err != nil {
		t.Fatal(err)
	}
	if err := store.WaiveUnsaved(ctx, next, entry); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("WaiveUnsaved() of what is being pushed = %v, want ErrConflict", err)
	}
	if _, err := store.ReplaceUnsaved(ctx, next, "run-0001", stateJSON(5, "lin", "other")); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("ReplaceUnsaved() of what is being pushed = %v, want ErrConflict", err)
	}
	if err := store.WaiveUnsaved(ctx, standing(t, store, 1), entry); err != nil {
		t.Fatal(err)
	}
	standing(t, store, 0)
	if trail := must[[]holdfast.AuditEntry](t)(store.AuditTrail(ctx, "a", 0)); len(trail) != 1 || trail[0].Actor != "ana" {
		t.Errorf("audit trail %+v", trail)
	}
}

// saveLate uploads a state, or leaves an errored.tfstate, by an attempt that is over.
func saveLate(t *testing.T, store *datastore.Store, by holdfast.Run, serial int64, text string) error {
	t.Helper()
	data := stateJSON(serial, "lin", text)
	if !holdfast.OwnState(by.StateLocation) {
		return store.PutArtefact(t.Context(), by.Ref(), protocol.ArtefactErrored, bytes.NewReader(data))
	}
	_, err := store.PutState(t.Context(), holdfast.StateWrite{Location: by.StateLocation, By: by.Ref(), Data: data})
	return err
}

// TestNothingComesAfterTheLastWord: an agent sends the result of an attempt last. What
// comes with the attempt's credential afterwards is kept, and never becomes the state.
func TestNothingComesAfterTheLastWord(t *testing.T) {
	t.Parallel()
	for _, status := range []holdfast.RunStatus{
		holdfast.RunApplied, holdfast.RunNoChanges, holdfast.RunPlanned, holdfast.RunErrored, holdfast.RunCanceled, holdfast.RunRetrying,
	} {
		for _, location := range []string{"clusters/a", "pg:db"} {
			t.Run(string(status)+" "+location, func(t *testing.T) {
				t.Parallel()
				store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db"), Now: ticking()})
				run := newRun(1)
				run.Cluster, run.Kind, run.StateLocation = "a", holdfast.RunApply, location
				run = claim(t, store, run)
				own := holdfast.OwnState(location)
				if own {
					if err := saveLate(t, store, run, 1, "saved"); err != nil {
						t.Fatal(err)
					}
				}
				if !status.Good() {
					run.Failure = &holdfast.Failure{Cause: "Network"}
				}
				end(t, store, run, status)
				if err := saveLate(t, store, run, 2, "late"); !errors.Is(err, holdfast.ErrFenced) {
					t.Errorf("the late state is taken: %v", err)
				}
				standing(t, store, 0)
				if !own {
					return
				}
				versions := must[[]holdfast.StateVersion](t)(store.StateVersions(t.Context(), location))
				if len(versions) != 2 || !versions[0].Quarantined || versions[1].Quarantined {
					t.Errorf("the versions are %+v", versions)
				}
			})
		}
	}
}

// TestLateStateOfAnAttemptThatWasFoundDead: the agent that says so may have a copy of the
// folder of the one that executes it.
func TestLateStateOfAnAttemptThatWasFoundDead(t *testing.T) {
	t.Parallel()
	for _, reason := range []holdfast.Reason{holdfast.ReasonAgentKilled, holdfast.ReasonLeaseLost} {
		for _, location := range []string{"clusters/a", "pg:db"} {
			store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db"), Now: ticking()})
			run := newRun(1)
			run.Cluster, run.Kind, run.StateLocation = "a", holdfast.RunApply, location
			run = claim(t, store, run)
			run.Reason, run.Failure = reason, &holdfast.Failure{Cause: reason, Transient: true}
			end(t, store, run, holdfast.RunRetrying)
			if err := saveLate(t, store, run, 2, "late"); err != nil && !errors.Is(err, holdfast.ErrFenced) {
				t.Fatal(err)
			}
			standing(t, store, 1)
		}
	}
}

// TestAStateThatADiskKeptBack: an attempt has said that its state could not be saved, and
// its agent could not even keep it, until it was started again. It is taken once.
func TestAStateThatADiskKeptBack(t *testing.T) {
	t.Parallel()
	for _, location := range []string{"clusters/a", "pg:db"} {
		for _, kept := range []bool{false, true} {
			store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db"), Now: ticking()})
			run := newRun(1)
			run.Cluster, run.Kind, run.StateLocation = "a", holdfast.RunApply, location
			run = claim(t, store, run)
			if kept {
				putArtefact(t, store, run.Ref(), protocol.ArtefactErrored, stateJSON(2, "lin", "the engine's"))
			}
			run.Failure = &holdfast.Failure{Cause: holdfast.CauseStateUnsaved}
			end(t, store, run, holdfast.RunErrored)
			standing(t, store, 1)
			if err := saveLate(t, store, run, 2, "the engine's"); !kept && location == "pg:db" && err != nil {
				t.Errorf("%s: it is refused: %v", location, err)
			}
			if err := saveLate(t, store, run, 3, "another"); !errors.Is(err, holdfast.ErrFenced) {
				t.Errorf("%s, kept %t: a second one is taken: %v", location, kept, err)
			}
			file := must[io.ReadCloser](t)(store.OpenUnsaved(t.Context(), standing(t, store, 1)))
			data := must[[]byte](t)(io.ReadAll(file))
			_ = file.Close()
			if string(data) != string(stateJSON(2, "lin", "the engine's")) {
				t.Errorf("%s, kept %t: %s would be pushed", location, kept, data)
			}
		}
	}
}

// TestWhatStandsNext: of what came while the state of another run stood, that of an attempt
// which may have been executed still, or which came before the attempt's last word.
func TestWhatStandsNext(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]holdfast.RunStatus{"dead": holdfast.RunInterrupted, "refused": holdfast.RunErrored} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db"), Now: ticking()})
			apply := func(n int) holdfast.Run {
				run := newRun(n)
				run.Cluster, run.Kind, run.StateLocation = "a", holdfast.RunApply, "clusters/a"
				return claim(t, store, run)
			}
			first := apply(1)
			end(t, store, first, holdfast.RunInterrupted)
			done := apply(2)
			end(t, store, done, holdfast.RunApplied)
			run := apply(3)
			if err := saveLate(t, store, first, 1, "first"); !errors.Is(err, holdfast.ErrFenced) {
				t.Fatal(err)
			}
			u := standing(t, store, 1)
			if ended == holdfast.RunInterrupted {
				end(t, store, run, ended)
			} else if err := store.LockState(t.Context(), "clusters/a", statelock.StateLock{ID: "lock", By: run.Ref()}); err != nil {
				t.Fatal(err)
			}
			_, err := store.PutState(t.Context(), holdfast.StateWrite{
				Location: "clusters/a", LockID: "another", By: run.Ref(), Data: stateJSON(2, "lin", "refused"),
			})
			if err == nil {
				t.Fatal("the state was taken")
			}
			if ended != holdfast.RunInterrupted {
				run.Failure = &holdfast.Failure{Cause: "Network"}
				end(t, store, run, ended)
			}
			if err := saveLate(t, store, done, 3, "done"); !errors.Is(err, holdfast.ErrFenced) {
				t.Fatal(err)
			}
			if err := store.WaiveUnsaved(t.Context(), u, holdfast.AuditEntry{At: noon, Actor: "admin", Action: "state.waive", Object: "a"}); err != nil {
				t.Fatal(err)
			}
			if u := standing(t, store, 1); u.Run != run.ID {
				t.Errorf("%+v stands, want that of %s", u, run.ID)
			}
		})
	}
}

// TestReplaceUnsavedKeepsTheBlob: after a commit whose end nobody knows a record may refer to
// the blob.
func TestReplaceUnsavedKeepsTheBlob(t *testing.T) {
	t.Parallel()
	opts := datastore.Options{Path: emptyPath(t), Blobs: fakeBucket(t)}
	store := openAt(t, opts)
	apply := newRun(1)
	apply.Cluster, apply.Kind, apply.StateLocation = "a", holdfast.RunApply, "pg:db"
	apply = claim(t, store, apply)
	apply.Failure = &holdfast.Failure{Cause: holdfast.CauseStateUnsaved}
	end(t, store, apply, holdfast.RunErrored)
	u := standing(t, store, 1)
	if err := datastore.RefuseDurable(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	state := stateJSON(4, "lin", strings.Repeat("x", 100<<10))
	if _, err := store.ReplaceUnsaved(t.Context(), u, "run-0001", state); err == nil {
		t.Fatal("a write was durable that was to fail")
	}
	if keys := keysIn(t, opts.Blobs); len(keys) != 1 {
		t.Errorf("the bucket has %v, want the blob", keys)
	}
}
