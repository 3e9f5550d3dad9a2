// The step plan.

package attempt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/planfile"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// planning makes the plan, checks it against what the run was given, and keeps it.
type planning struct{ *attempt }

// makePlan plans, and reads and keeps the plan.
func (t *planning) makePlan(ctx context.Context) error {
	t.Begin(stepPlan)
	if err := os.Remove(t.planFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove former plan: %w", err)
	}
	t.taken = false
	made := filepath.Join(t.work, workspace.PlanName)
	args := []string{
		"plan", "-input=false", "-no-color", "-detailed-exitcode",
		"-lock-timeout=" + t.lockTimeout(), "-out=" + t.seen(made),
	}
	if t.destroys() {
		args = append(args, "-destroy")
	}
	printed := journal.NewExcerpt(8 << 20)
	t.Log.Begin(journal.DuringPlan(t.stateKnown))
	ended := t.start(ctx, printed, false, args...)
	if ended != nil && exitCode(ended) != 2 {
		t.Log.Release(t.stateKnown())
		return ended
	}
	if err := ctx.Err(); err != nil {
		return err // the engine ended well, but the plan is no longer wanted
	}
	// All that the engine has started is dead: what it left is what it made.
	if err := t.takeFile(made, t.planFile, t.exec.opts.Limits.Plan); err != nil && !errors.Is(err, os.ErrNotExist) {
		return &failure.Error{Cause: holdfast.CauseUnreadablePlan, Err: fmt.Errorf("plan: %w", err)}
	}
	if info, err := os.Stat(t.planFile); err != nil || info.Size() == 0 {
		return t.noPlanFile(ended)
	}
	t.taken = true
	if err := t.setAside(ctx); err != nil {
		return err
	}
	return t.readPlan(ctx, printed.String())
}

// noPlanFile is why there is no plan file: ended is how the engine ended, nil if it
// ended well.
func (t *planning) noPlanFile(ended error) error {
	if err := probeSpace(t.dir); failure.DiskFull(err) {
		return &failure.Error{
			Cause: holdfast.CauseDiskFull, Transient: true, Hint: failure.HintDisk,
			Err: fmt.Errorf("plan: the engine could not write the plan file: %w", err),
		}
	}
	if ended != nil {
		return ended // 2 is also the exit code of a Go program that was refused memory
	}
	return &failure.Error{Cause: holdfast.CauseUnreadablePlan, Err: errors.New("plan: the engine left no plan file")}
}

// probeSpace writes a small file in a folder, and removes it.
func probeSpace(dir string) error {
	const size = 64 << 10
	f, err := os.CreateTemp(dir, ".space-*")
	if err != nil {
		return fmt.Errorf("look for space: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, size))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("look for space: %w", err)
	}
	return nil
}

// setAside puts what the plan has left in the workspace out of the way, and lays
// it out again. It is an error if the plan has changed what the bundle brought:
// what is applied would be something else than what is in the repository.
func (t *planning) setAside(ctx context.Context) error {
	left := filepath.Join(t.dir, leftDir)
	if err := os.Rename(t.work, left); err != nil {
		return fmt.Errorf("set workspace aside: %w", err)
	}
	if err := t.layOut(ctx); err != nil {
		return err
	}
	// An apply would find it, and nothing else continues beyond these bounds.
	if err := folders.Check(ctx, filepath.Join(left, filepath.Base(t.bundle)), folders.Workspace()); err != nil {
		return tooLarge(fmt.Errorf("plan: check the files that it left in the workspace: %w", err))
	}
	changed, err := t.changedBy(ctx, left)
	if err != nil {
		return fmt.Errorf("compare workspace: %w", err)
	}
	if changed != "" {
		return &failure.Error{
			Cause: holdfast.CauseUntrustedPlan, Err: fmt.Errorf("plan: code that it executed has changed %s, a file of the repository", changed),
			Hint: "an apply finds the files of the repository as they were reviewed: let code that is executed in plans write to new files",
		}
	}
	if err := t.furnish(); err != nil {
		return fmt.Errorf("lay out workspace: %w", err)
	}
	if err := t.checkPlanned(ctx); err != nil {
		if known := new(failure.Error); errors.As(err, &known) {
			return err
		}
		cause := holdfast.CauseUntrustedPlan
		if errors.Is(err, planfile.ErrUnsupported) {
			cause = holdfast.CauseUnreadablePlan
		}
		if errors.Is(err, planfile.ErrOtherState) && !t.a.OwnState { // it was written between our look and the plan
			return &failure.Error{Cause: holdfast.CauseStalePlan, Transient: true, Err: fmt.Errorf("plan: %w", err)}
		}
		return &failure.Error{Cause: cause, Err: fmt.Errorf("plan: %w", err)}
	}
	return nil
}

// noteState keeps the state as it is before the plan, where we do not see it on its
// way to the engine and init has not read it: nothing that a plan executes has been there
// yet.
func (t *planning) noteState(ctx context.Context) (err error) {
	if t.watched || t.withoutState() || t.pulled != nil {
		return nil
	}
	if t.pulled, err = t.pullState(ctx); err == nil {
		t.rememberSettings(t.pulled)
	}
	return err
}

// withoutState reports whether an empty state stands in for one that no server
// has been asked for.
func (t *attempt) withoutState() bool {
	addr, _, _ := t.session.StateAddress()
	return t.a.OwnState && addr == ""
}

// pullState returns the state as the engine reads it from its backend.
func (t *attempt) pullState(ctx context.Context) ([]byte, error) {
	raw := journal.NewBounded(workspace.MaxState)
	if err := t.start(ctx, raw, true, "state", "pull"); err != nil {
		return nil, err
	}
	document, err := raw.Bytes()
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return document, nil
}
