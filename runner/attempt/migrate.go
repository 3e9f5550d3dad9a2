// Runs that move a state to another place.

package attempt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/migration"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// side is the place of its state that an attempt works with.
type side int

// The sides.
const (
	sideNew    side = iota // where the root module says; there is no other one but in a migration
	sideFormer             // where it said before
)

// migrating executes, for package migration, what moves a state.
type migrating struct {
	*attempt

	to string // the new place
}

// migrate moves the state.
func (t *attempt) migrate(ctx context.Context, move holdfast.StateMove) error {
	m := &migrating{t, move.To}
	return migration.Move(ctx, m, m, move)
}

// AwaitLeave waits until the state may be moved.
func (t *migrating) AwaitLeave(ctx context.Context) error { return t.awaitLeave(ctx) }

// beginMigration has the attempt begin with the current place of the state.
func (t *attempt) beginMigration(move holdfast.StateMove) {
	t.backend.side = sideFormer
	if move.Copied {
		t.backend.side = sideNew
	}
	t.useSide(move)
}

// useSide makes the attempt use the state at its side.
func (t *attempt) useSide(move holdfast.StateMove) {
	at := move.To
	if t.backend.side == sideFormer {
		at = move.From
	}
	own := holdfast.OwnState(at)
	t.a.OwnState, t.space.a.OwnState = own, own
	_, watches := t.session.(StateWatcher)
	t.watched = own && watches
}

// layState makes the root module name the place of the state on the attempt's side. Its
// content after a migration is in a file, and the one before, if any, is next to it.
func (t *space) layState() error {
	if t.backend.side != sideFormer {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(t.root, rootmodule.UnitFile)); err == nil {
		return nil // it is laid out again once it is rendered
	}
	over := filepath.Join(t.root, rootmodule.StateOverrideFile)
	err := os.Rename(filepath.Join(t.root, rootmodule.FormerStateOverrideFile), over)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Remove(over)
	}
	if err != nil {
		return fmt.Errorf("lay out where the state is: %w", err)
	}
	return nil
}

// planSummary is the line in which an engine says how much a plan would change.
var planSummary = regexp.MustCompile(`(?m)^(Plan: .*|Changes to Outputs:)`)

// Plan plans what was applied last.
func (t *migrating) Plan(ctx context.Context) (changes string, err error) {
	printed := journal.NewExcerpt(1 << 20)
	err = t.start(ctx, printed, false, "plan", "-input=false", "-no-color", "-detailed-exitcode", "-lock-timeout="+t.lockTimeout())
	const differs = 2
	if err == nil || exitCode(err) != differs {
		return "", err
	}
	if changes = planSummary.FindString(printed.String()); changes == "" {
		return "", err // 2 is also the exit code of a Go program that was refused memory
	}
	return changes, nil
}

// Pull reads the state.
func (t *migrating) Pull(ctx context.Context) ([]byte, error) {
	state, err := t.pullState(ctx)
	if err == nil {
		t.learn(state)
	}
	return state, err
}

// Turn lays the workspace out with the state at one of its places.
func (t *migrating) Turn(ctx context.Context, there bool) error {
	where := sideFormer
	if there {
		where = sideNew
	}
	t.Begin(stepInit)
	t.prepared.Release()
	t.prepared, t.backend, t.settings, t.settingsName, t.pulled = initcache.Folder{}, backendFile{}, nil, "", nil
	t.backend.side = where
	t.useSide(*t.a.State.Move)
	if err := t.layOut(ctx); err != nil {
		return err
	}
	t.readModule(ctx, t.engine.Name)
	kind, _, _ := strings.Cut(t.to, ":")
	if own := t.a.OwnState; where == sideNew && (!own && kind != t.module.Backend || own && t.module.HeldTo(t.engine.Name, t.engine.Name, own) != nil) {
		return &failure.Error{
			Cause: holdfast.CauseInvalidConfiguration, Err: fmt.Errorf("migrate: the code keeps the state in %s, whatever %s says", t.module.Backend, rootmodule.StateOverrideFile),
			Hint: "another override file has a block that says where the state is: remove that",
		}
	}
	if err := t.chooseBackend(); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(t.root, engineLockFile), t.lockFile); err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	return (&initializing{attempt: t.attempt}).init(ctx)
}

// Push makes the engine write a state, which is next to the workspace, where the engine can
// read it, but not write it.
func (t *migrating) Push(ctx context.Context, state []byte, force bool) error {
	if len(state) > workspace.MaxState {
		return &failure.Error{Cause: holdfast.CauseArtefactUnavailable, Err: errors.New("migrate: the state is too large")}
	}
	file, err := os.OpenFile(t.planFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err = file.Write(state); err == nil {
		err = t.exec.opts.Isolation.Starter.Show(file, t.slot)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("migrate: write the state: %w", err)
	}
	t.taken = true
	defer func() {
		t.taken = false
		_ = os.Remove(t.planFile)
	}()
	args := []string{"state", "push", "-lock-timeout=" + t.lockTimeout()}
	if force {
		args = append(args, "-force")
	}
	return t.start(ctx, nil, false, append(args, t.seen(t.planFile))...)
}
