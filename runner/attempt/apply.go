// The step apply, and states that an engine could not save.

package attempt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// validate prepares the root module and lets the engine check it.
func (t *attempt) validate(ctx context.Context) error {
	t.Begin(stepPrepare)
	if err := t.unpackBundle(ctx); err != nil {
		return err
	}
	if err := t.chooseEngine(ctx); err != nil {
		return err
	}
	t.Begin(stepInit)
	if err := (&initializing{attempt: t}).install(ctx); err != nil {
		return err
	}
	t.Begin(stepValidate)
	if err := t.start(ctx, nil, false, "validate", "-no-color"); err != nil {
		return err
	}
	t.result.Status = holdfast.RunNoChanges
	return nil
}

// lockTimeout is how long the engine waits for the state's lock.
func (t *attempt) lockTimeout() string {
	if t.a.LockTimeout != nil {
		return seconds(*t.a.LockTimeout)
	}
	return seconds(t.exec.opts.Waits.Lock)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }

// applying applies a plan that was reviewed, and keeps its outcome.
type applying struct{ *attempt }

// apply applies the plan file. From its start on the engine is interrupted only by ctx.
func (t *applying) apply(ctx context.Context) error {
	t.Begin(stepWait)
	if err := t.awaitLeave(ctx); err != nil {
		return err
	}
	t.Begin(stepApply)
	if err := t.bringBack(ctx); err != nil {
		return err
	}
	if err := t.give(ctx); err != nil {
		return err
	}
	t.result.Applying = true
	t.progress = journal.NewProgress(t.NoteProgress)
	t.Log.Begin(journal.DuringApply)
	before := t.newest.get()
	err := t.start(ctx, t.progress, false, "apply", "-input=false", "-no-color", "-auto-approve",
		"-lock-timeout="+t.lockTimeout(), t.seen(t.planFile))
	t.EndProgress()
	if err != nil {
		t.Log.Release(true)
		err = t.rescueState(ctx, err)
		t.keepLeft(ctx, before, err)
		return err
	}
	if err := t.checkRecorded(before); err != nil {
		t.Log.Release(true)
		t.keepLeft(ctx, before, err)
		return err
	}
	t.result.Status = holdfast.RunApplied
	t.keepApplied(ctx)
	return nil
}

// awaitLeave waits until the apply may begin.
func (t *attempt) awaitLeave(ctx context.Context) error {
	const pause = 200 * time.Millisecond
	timeout := time.NewTimer(t.exec.opts.Waits.Apply)
	defer timeout.Stop()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.session.MayApply() {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-timeout.C:
			return failure.NoLeave(t.session.Unkept())
		}
	}
}

// rescueState looks for the state that an engine could not save, keeps it and tries to
// push it. It returns the failure, completed by the result. A state that cannot be
// kept, for whatever reason, stays where the engine left it.
func (t *applying) rescueState(ctx context.Context, ended error) error {
	left := filepath.Join(t.root, protocol.ArtefactErrored)
	if found, err := t.openLeft(left, workspace.MaxState); errors.Is(err, os.ErrNotExist) {
		return ended
	} else if err == nil {
		_ = found.Close()
	}
	patient, done := t.pastStop(ctx)
	defer done()
	err := t.whenDiskIsBack(patient, func() error { return t.putLeft(ctx, protocol.ArtefactErrored, left, workspace.MaxState) })
	var known *failure.Error
	if !errors.As(ended, &known) {
		known = &failure.Error{Cause: holdfast.CauseStateUnsaved, Err: ended}
	}
	if t.keep = err != nil; t.keep {
		known.Detail += fmt.Sprintf("\n\nThe engine could not save the state. It is in the folder %s on the agent: %v\n"+
			"`holdfast state push CLUSTER FILE` pushes it from there.", t.exec.spaces.OwnDir(t.a.AttemptRef), err)
	}
	if !t.a.OwnState {
		// Another run would begin with the old state, and create everything twice.
		known.Cause, known.Transient = holdfast.CauseStateUnsaved, false
		known.Hint = hintUnsaved
		return known
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), artefactTimeout)
	defer cancel()
	if err := t.start(ctx, nil, false, "state", "push", t.seen(left)); err != nil {
		known.Cause, known.Transient = holdfast.CauseStateUnsaved, false
		known.Hint = hintUnsaved
		t.Say("the state could not be pushed: %v", err)
		return known
	}
	t.keep = false
	known.Detail = strings.TrimSpace(known.Detail + "\n\nThe engine could not save the state at first; it was pushed afterwards, nothing is lost.")
	return known
}

// pastStop returns a context that ends later than ctx, by the time that an engine has to end.
func (t *attempt) pastStop(ctx context.Context) (context.Context, context.CancelFunc) {
	later, done := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(t.exec.opts.Waits.Grace, done) })
	return later, done
}

// hintUnsaved is what to do about a state that an engine could not save.
const hintUnsaved = "the engine could not save the state: it is kept, and nothing is planned or applied before it is pushed; " +
	"that is tried automatically, `holdfast state push` does it now, `holdfast state get` writes it to a file, `holdfast state waive` discards it"
