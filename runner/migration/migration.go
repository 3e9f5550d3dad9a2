package migration

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// Steps are how an attempt says what it does.
type Steps interface {
	// Begin begins a step, by its name.
	Begin(step string)
	// AwaitLeave waits until the server has allowed the state to be moved.
	AwaitLeave(ctx context.Context) error
	// Say writes a line into the log.
	Say(format string, args ...any)
}

// State is the state at one of its two places: the current one at first.
type State interface {
	// Turn has what follows work with the state at the new place, or at the current one.
	Turn(ctx context.Context, there bool) error
	// Pull returns the state, as the engine reads it.
	Pull(ctx context.Context) ([]byte, error)
	// Push has the engine write a state; force: over any other one.
	Push(ctx context.Context, state []byte, force bool) error
	// Plan plans what was applied last, and returns what that would change, in the engine's
	// words; empty: nothing.
	Plan(ctx context.Context) (changes string, err error)
}

// Names of steps.
const (
	stepPlan     = "plan"
	stepWait     = "wait"
	stepPush     = "push"
	stepValidate = "validate"
)

// mover moves one state.
type mover struct {
	steps Steps
	state State
}

// Move moves a state.
func Move(ctx context.Context, steps Steps, state State, move holdfast.StateMove) error {
	return (&mover{steps, state}).move(ctx, move)
}

// move moves the state.
func (m *mover) move(ctx context.Context, move holdfast.StateMove) error {
	if move.Copied {
		return m.proveCopy(ctx, move)
	}
	m.steps.Begin(stepPlan)
	state, err := m.state.Pull(ctx)
	if err != nil {
		return err
	}
	if err := m.provePlan(ctx, stepPlan, "where the state is"); err != nil {
		return err
	}
	m.steps.Begin(stepWait)
	if err := m.steps.AwaitLeave(ctx); err != nil {
		return err
	}
	if err := m.state.Turn(ctx, true); err != nil {
		return err
	}
	if err := m.bring(ctx, state, move.To); err != nil {
		return err
	}
	if err := m.provePlan(ctx, stepValidate, "at the new place"); err != nil {
		return err
	}
	return m.proveUnchanged(ctx, state, move)
}

// proveUnchanged is an error if the state at the current place is no longer what was copied:
// somebody else has written it meanwhile, whom no lock of ours has kept from that. Holdfast's own
// backend lets nobody.
func (m *mover) proveUnchanged(ctx context.Context, copied []byte, move holdfast.StateMove) error {
	if holdfast.OwnState(move.From) {
		return nil
	}
	if err := m.state.Turn(ctx, false); err != nil {
		return err
	}
	was, err := readSnapshot(copied)
	if err != nil {
		return err
	}
	is, err := m.snapshotThere(ctx)
	if err != nil || was.same(is) {
		return err
	}
	return &failure.Error{
		Cause: holdfast.CauseMigrationUnproven,
		Err:   fmt.Errorf("migrate: the state at %s has changed while it was copied: it had serial %d and has %d", move.From, was.Serial, is.Serial),
		Hint:  "the state stays at its current place: make sure that nothing else writes it, then repeat the command",
	}
}

// proveCopy proves that a state was copied to the new place.
func (m *mover) proveCopy(ctx context.Context, move holdfast.StateMove) error {
	m.steps.Begin(stepWait)
	if err := m.steps.AwaitLeave(ctx); err != nil {
		return err
	}
	m.steps.Begin(stepValidate)
	state, err := m.state.Pull(ctx)
	if err != nil {
		return err
	}
	if read, err := readSnapshot(state); err != nil || read.Lineage == "" {
		return &failure.Error{
			Cause: holdfast.CauseMigrationUnproven, Err: errors.Join(fmt.Errorf("migrate: there is no state at %s", move.To), err),
			Hint: "copy the state there, with its lineage and serial, then repeat the command",
		}
	}
	return m.provePlan(ctx, stepValidate, "at the new place")
}

// provePlan is an error unless a plan of what was applied has no changes. The step says to the
// server at which of the two places a lock was held.
func (m *mover) provePlan(ctx context.Context, step, where string) error {
	m.steps.Begin(step)
	m.steps.Say("the plan %s must have no changes", where)
	changes, err := m.state.Plan(ctx)
	if err != nil || changes == "" {
		return err
	}
	return &failure.Error{
		Cause: holdfast.CauseMigrationUnproven,
		Err:   fmt.Errorf("migrate: the plan of what was applied last has changes %s: %s", where, strings.TrimSuffix(changes, ":")),
		Hint:  "the state stays at its current place; revert the drift or apply what was reviewed, then repeat the command",
	}
}
