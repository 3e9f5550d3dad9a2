// Runs that put a state right: push and unlock.

package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// stateJob puts a state right, by order of a person or of the server.
type stateJob struct{ *attempt }

// putRight does what a run of kind state is for. Nothing is planned, and no
// resource is touched.
func (t *stateJob) putRight(ctx context.Context, job *holdfast.StateJob) error {
	if job.Migrates() {
		err := t.migrate(ctx, *job.Move)
		if err == nil {
			t.result.Status = holdfast.RunApplied
		}
		return err
	}
	if t.a.Kind.Writes() { // others get no leave: losing the lease ends them
		t.Begin(stepWait)
		if err := t.awaitLeave(ctx); err != nil {
			return err
		}
	}
	var err error
	switch job.Action {
	case holdfast.StatePush:
		err = t.pushRescued(ctx)
	case holdfast.StateUnlock:
		t.Begin(stepUnlock)
		err = failure.OfRelease(t.start(ctx, nil, false, "force-unlock", "-force", job.LockID))
	default:
		err = &failure.Error{Cause: holdfast.CauseInternal, Err: fmt.Errorf("state: there is no action %q", job.Action)}
	}
	if err == nil {
		t.result.Status = holdfast.RunApplied
	}
	return err
}

// pushRescued pushes the state that an engine could not save. The engine itself
// holds its lineage and serial against what the backend has.
func (t *stateJob) pushRescued(ctx context.Context) error {
	t.Begin(stepPush)
	if err := t.fetchRescued(ctx); err != nil {
		return err
	}
	err := t.start(ctx, nil, false, "state", "push", "-lock-timeout="+t.lockTimeout(), t.seen(t.planFile))
	var known *failure.Error
	if errors.As(err, &known) && failure.RefusedPush.MatchString(known.Err.Error()+known.Detail) {
		known.Cause, known.Transient = holdfast.CauseConflict, false
		known.Hint = "the backend has another state now, or a newer one: `holdfast state get` writes the rescued one, " +
			"`holdfast state push` takes a file that has both, `holdfast state waive` discards it"
	}
	return err
}

// fetchRescued puts the state next to the workspace, where the plan file of an
// apply is: the engine can read it, and not write it.
func (t *stateJob) fetchRescued(ctx context.Context) error {
	from, err := t.session.StoredArtefact(ctx, t.a.Run, protocol.ArtefactErrored)
	if err != nil {
		return &failure.Error{
			Cause: holdfast.CauseArtefactUnavailable, Transient: !errors.Is(err, holdfast.ErrNotFound), Err: fmt.Errorf("push: get the rescued state: %w", err),
		}
	}
	defer from.Close()
	to, err := os.OpenFile(t.planFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	n, err := io.Copy(to, io.LimitReader(from, workspace.MaxState+1))
	if err == nil {
		err = t.exec.opts.Isolation.Starter.Show(to, t.slot)
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("push: write the rescued state: %w", err)
	}
	if n > workspace.MaxState {
		return &failure.Error{Cause: holdfast.CauseArtefactUnavailable, Err: errors.New("push: the rescued state is too large")}
	}
	t.taken = true
	return nil
}
