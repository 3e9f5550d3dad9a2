// Runs that move a state to another place.

package attempt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// A migration plans at the present place of the state, copies the state, and plans at the new
// one; both plans have no changes, and the state at the present place is still what was copied. Nothing is removed at the present place, which counts until
// the server has the result: whatever dies in between can be begun again from the start.

// side is with which place of its state an attempt works.
type side int

// The sides.
const (
	sideNew    side = iota // where the root module says; there is no other one but in a migration
	sideFormer             // where it said before
)

// migrating moves a state.
type migrating struct{ *attempt }

// beginMigration has the attempt begin with the present place of the state.
func (t *attempt) beginMigration(move holdfast.StateMove) {
	t.backend.side = sideFormer
	if move.Copied {
		t.backend.side = sideNew
	}
	t.useSide(move)
}

// useSide has the attempt reach the state as its side has it.
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

// layState has the root module say where the state is on the side of the attempt. What it says
// after a migration is in a file, and what that says before, if anything, is next to it.
func (t *space) layState() error {
	if t.backend.side != sideFormer {
		return nil
	}
	over := filepath.Join(t.root, holdfast.StateOverrideFile)
	err := os.Rename(filepath.Join(t.root, holdfast.FormerStateOverrideFile), over)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Remove(over)
	}
	if err != nil {
		return fmt.Errorf("lay out where the state is: %w", err)
	}
	return nil
}

// move moves the state.
func (t *migrating) move(ctx context.Context, move holdfast.StateMove) error {
	if move.Copied {
		return t.proveCopy(ctx, move)
	}
	t.begin(stepPlan)
	state, err := t.pullState(ctx)
	if err != nil {
		return err
	}
	t.learn(state)
	if err := t.provePlan(ctx, stepPlan, "where the state is"); err != nil {
		return err
	}
	t.begin(stepWait)
	if err := t.awaitLeave(ctx); err != nil {
		return err
	}
	if err := t.turn(ctx, move, sideNew); err != nil {
		return err
	}
	if err := t.bring(ctx, state, move.To); err != nil {
		return err
	}
	if err := t.provePlan(ctx, stepValidate, "at the new place"); err != nil {
		return err
	}
	return t.proveUnchanged(ctx, state, move)
}

// proveUnchanged is an error if the state at the present place is no longer what was copied:
// somebody else has written it meanwhile, whom no lock of ours has kept from that. Holdfast's own
// backend lets nobody.
func (t *migrating) proveUnchanged(ctx context.Context, copied []byte, move holdfast.StateMove) error {
	if holdfast.OwnState(move.From) {
		return nil
	}
	if err := t.turn(ctx, move, sideFormer); err != nil {
		return err
	}
	was, err := readSnapshot(copied)
	if err != nil {
		return err
	}
	is, err := t.snapshotThere(ctx)
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
func (t *migrating) proveCopy(ctx context.Context, move holdfast.StateMove) error {
	t.begin(stepWait)
	if err := t.awaitLeave(ctx); err != nil {
		return err
	}
	t.begin(stepValidate)
	state, err := t.pullState(ctx)
	if err != nil {
		return err
	}
	t.learn(state)
	if read, err := readSnapshot(state); err != nil || read.Lineage == "" {
		return &failure.Error{
			Cause: holdfast.CauseMigrationUnproven, Err: errors.Join(fmt.Errorf("migrate: there is no state at %s", move.To), err),
			Hint: "copy the state there, with its lineage and serial, then repeat the command",
		}
	}
	return t.provePlan(ctx, stepValidate, "at the new place")
}

// planSummary is the line in which an engine says how much a plan would change.
var planSummary = regexp.MustCompile(`(?m)^(Plan: .*|Changes to Outputs:)`)

// provePlan is an error unless a plan of what was applied has no changes. The step tells the server
// at which of the two places a lock was held.
func (t *migrating) provePlan(ctx context.Context, step, where string) error {
	t.begin(step)
	t.say("the plan %s must have no changes", where)
	printed := journal.NewExcerpt(1 << 20)
	err := t.start(ctx, printed, false, "plan", "-input=false", "-no-color", "-detailed-exitcode", "-lock-timeout="+t.lockTimeout())
	const changes = 2
	if err == nil || exitCode(err) != changes {
		return err
	}
	found := planSummary.FindString(printed.String())
	if found == "" {
		return err // 2 is also how a program written in Go ends that was refused memory
	}
	return &failure.Error{
		Cause: holdfast.CauseMigrationUnproven,
		Err:   fmt.Errorf("migrate: the plan of what was applied last has changes %s: %s", where, strings.TrimSuffix(found, ":")),
		Hint:  "the state stays at its current place; revert the drift or apply what was reviewed, then repeat the command",
	}
}

// turn lays the workspace out with the state at one of its places.
func (t *migrating) turn(ctx context.Context, move holdfast.StateMove, where side) error {
	t.begin(stepInit)
	t.prepared.Release()
	t.prepared, t.backend, t.settings, t.settingsName, t.pulled = initcache.Folder{}, backendFile{}, nil, "", nil
	t.backend.side = where
	t.useSide(move)
	if err := t.layOut(ctx); err != nil {
		return err
	}
	t.readModule(ctx, t.engine.Name)
	kind, _, _ := strings.Cut(move.To, ":")
	if own := t.a.OwnState; where == sideNew && (!own && kind != t.module.Backend || own && t.module.HeldTo(t.engine.Name, t.engine.Name, own) != nil) {
		return &failure.Error{
			Cause: holdfast.CauseInvalidConfiguration, Err: fmt.Errorf("migrate: the code keeps the state in %s, whatever %s says", t.module.Backend, holdfast.StateOverrideFile),
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

// snapshot is a state as it is compared: without what an engine writes of itself.
type snapshot struct {
	Lineage string
	Serial  int64
	rest    map[string]any
}

func readSnapshot(state []byte) (snapshot, error) {
	var s snapshot
	if len(bytes.TrimSpace(state)) == 0 {
		return s, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(state))
	decoder.UseNumber()
	if err := decoder.Decode(&s.rest); err != nil {
		return s, fmt.Errorf("read state: %w", err)
	}
	s.Lineage, _ = s.rest["lineage"].(string)
	if n, ok := s.rest["serial"].(json.Number); ok {
		var err error
		if s.Serial, err = n.Int64(); err != nil {
			return s, fmt.Errorf("read state: %w", err)
		}
	}
	s.rest = map[string]any{"resources": s.rest["resources"], "outputs": s.rest["outputs"]}
	return s, nil
}

// empty reports whether nothing is lost with it.
func (s snapshot) empty() bool {
	resources, _ := s.rest["resources"].([]any)
	outputs, _ := s.rest["outputs"].(map[string]any)
	return len(resources) == 0 && len(outputs) == 0
}

func (s snapshot) same(other snapshot) bool {
	return s.Lineage == other.Lineage && s.Serial == other.Serial && reflect.DeepEqual(s.rest, other.rest)
}

// bring copies the state to the new place, with its lineage and its serial, unless it is there
// already. What else is there, or newer, is not written over.
func (t *migrating) bring(ctx context.Context, state []byte, to string) error {
	t.begin(stepPush)
	was, err := readSnapshot(state)
	if err != nil {
		return err
	}
	there, err := t.snapshotThere(ctx)
	if err != nil {
		return err
	}
	switch {
	case was.Lineage == "" && there.empty(), was.Lineage != "" && was.same(there):
		t.say("the state is at %s already", to)
		return nil
	case was.Lineage != "" && (there.empty() || there.Lineage == was.Lineage && there.Serial < was.Serial):
	default:
		return occupied(to, there)
	}
	if err := t.pushOver(ctx, state, was, there); err != nil {
		return err
	}
	if there, err = t.snapshotThere(ctx); err != nil {
		return err
	}
	if !was.same(there) {
		return &failure.Error{Cause: holdfast.CauseMigrationUnproven, Err: fmt.Errorf("migrate: what is read at %s is not what was written there: %q, serial %d", to, there.Lineage, there.Serial)}
	}
	return nil
}

func occupied(to string, there snapshot) error {
	return &failure.Error{
		Cause: holdfast.CauseMigrationUnproven,
		Err:   fmt.Errorf("migrate: there is another state at %s already: lineage %q, serial %d", to, there.Lineage, there.Serial),
		Hint:  "nothing is written over: look whose it is, and remove it or name another place",
	}
}

func (t *migrating) snapshotThere(ctx context.Context) (snapshot, error) {
	state, err := t.pullState(ctx)
	if err != nil {
		return snapshot{}, err
	}
	t.learn(state)
	return readSnapshot(state)
}

// pushOver has the engine write the state over what is there. Where there is none, engines make
// up a lineage of their own: so that an empty state comes first. They count the serial up: so
// that they are given the one before.
func (t *migrating) pushOver(ctx context.Context, state []byte, was, there snapshot) error {
	if there.Lineage == "" {
		nothing, err := withFields(state, map[string]any{"serial": 1, "resources": []any{}, "outputs": map[string]any{}, "check_results": nil})
		if err != nil {
			return err
		}
		if err := t.push(ctx, nothing); err != nil {
			return err
		}
	}
	before, err := withFields(state, map[string]any{"serial": was.Serial - 1})
	if err != nil {
		return err
	}
	return t.push(ctx, before, "-force")
}

// withFields is a state with other values of fields; nil takes one away.
func withFields(state []byte, fields map[string]any) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(state, &all); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	for name, value := range fields {
		if value == nil {
			delete(all, name)
			continue
		}
		data, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("write state: %w", err)
		}
		all[name] = data
	}
	return json.Marshal(all)
}

// push has the engine write a state, which is next to the workspace, where the engine can read
// it, and not write it.
func (t *migrating) push(ctx context.Context, state []byte, options ...string) error {
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
	args := append([]string{"state", "push", "-lock-timeout=" + t.lockTimeout()}, options...)
	return t.start(ctx, nil, false, append(args, t.seen(t.planFile))...)
}
