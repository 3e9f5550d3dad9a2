package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/jsontree"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// init makes the root module ready to plan, from a prepared folder if there is
// one, else by the engine's init, whose result becomes one.
func (t *attempt) init(ctx context.Context) (err error) {
	if err := t.install(ctx); err != nil {
		return err
	}
	if t.module.Backend != "" && !t.sharesBackend() {
		if err := t.start(ctx, nil, false, "init", "-reconfigure", "-input=false", "-no-color"); err != nil {
			return err
		}
		if t.settings, err = t.readLeft(filepath.Join(t.root, dataDir, "terraform.tfstate"), maxLockFile); err != nil {
			return fmt.Errorf("read the backend's settings: %w", err)
		}
	}
	if t.lockFile, err = t.readLock(); err != nil {
		return fmt.Errorf("read lock file: %w", err)
	}
	if err := t.noteInput(ctx); err != nil {
		return err
	}
	if err := t.checkModules(ctx); err != nil {
		return err
	}
	if err := t.keepModules(ctx); err != nil || t.lockFile == nil {
		return err
	}
	return t.put(ctx, holdfast.ArtefactLockFile, bytes.NewReader(t.lockFile))
}

// install brings the providers and modules that the root module calls for.
func (t *attempt) install(ctx context.Context) error {
	lock, err := t.readLock()
	if err != nil {
		return fmt.Errorf("read lock file: %w", err)
	}
	cliConfig, err := t.cliConfig()
	if err != nil {
		return fmt.Errorf("read engine configuration: %w", err)
	}
	if err := t.prepare(ctx, lock, cliConfig); err != nil {
		return err
	}
	if err := t.link(); err != nil {
		return fmt.Errorf("use prepared folder: %w", err)
	}
	return nil
}

// readLock returns the lock file of the root module, nil if it has none.
func (t *attempt) readLock() ([]byte, error) {
	path := filepath.Join(t.root, engineLockFile)
	if !t.given {
		return readIfExists(path)
	}
	return t.readLeft(path, maxLockFile)
}

// validate prepares the root module and has the engine check it.
func (t *attempt) validate(ctx context.Context) error {
	t.begin(stepPrepare)
	if err := t.unpackBundle(ctx); err != nil {
		return err
	}
	if err := t.chooseEngine(ctx); err != nil {
		return err
	}
	t.begin(stepInit)
	if err := t.install(ctx); err != nil {
		return err
	}
	t.begin(stepValidate)
	if err := t.start(ctx, nil, false, "validate", "-no-color"); err != nil {
		return err
	}
	t.result.Status = holdfast.RunNoChanges
	return nil
}

// cliConfig returns the engine's own configuration as it will find it.
func (t *attempt) cliConfig() ([]byte, error) {
	if t.exec.cli.data != nil {
		return t.exec.cli.data, nil
	}
	env := t.env()
	if file := env["TF_CLI_CONFIG_FILE"]; file != "" {
		return readIfExists(file)
	}
	if home := env["HOME"]; home != "" {
		return readIfExists(filepath.Join(home, "."+t.engine.Name+"rc"))
	}
	return nil, nil
}

// sharesBackend reports whether the prepared folder has the backend as well: an
// empty http backend gets its address from the environment.
func (t *attempt) sharesBackend() bool {
	return t.a.OwnState && t.module.Backend == "http" && t.module.BareBackend
}

// prepare opens the folder that init would make with that lock file, and makes it
// if there is none. Of several attempts that need the same one, one makes it and
// the others wait.
func (t *attempt) prepare(ctx context.Context, lock, cliConfig []byte) error {
	var names initcache.Names
	names.Key, names.KeyOf = t.sharedNames(lock, cliConfig)
	if err := t.expectModules(ctx); err != nil {
		return err
	}
	unlock, err := t.exec.shared.Lock(ctx, names.Key)
	if err != nil {
		return fmt.Errorf("wait for prepared folder: %w", err)
	}
	defer unlock()
	if t.openPrepared(names) {
		return nil
	}
	if names.Former, err = t.bringModules(ctx); err != nil {
		return err
	}
	args := []string{"init", "-input=false", "-no-color"}
	if !t.sharesBackend() {
		args = append(args, "-backend=false")
	}
	if err := t.start(ctx, nil, false, args...); err != nil {
		return err
	}
	if lock, err = t.readLock(); err != nil {
		return fmt.Errorf("read lock file: %w", err)
	}
	from := initcache.Source{
		Root: t.root, Owner: os.Geteuid(), Mirrors: t.exec.mirrors(), Unpinned: t.module.Unpinned,
		Backend: t.module.Backend == "http" && t.module.BareBackend,
	}
	if t.exec.mode().OwnUser() {
		from.Owner = t.slot.UID
	}
	names.Final, names.FinalOf = t.sharedNames(lock, cliConfig)
	fetched, err := t.exec.shared.Publish(ctx, from, names)
	if err != nil {
		return tooLarge(fmt.Errorf("keep what init prepared: %w", err))
	}
	t.exec.shared.Prune()
	var ok bool
	if t.prepared, ok = t.exec.shared.OpenOf(names.FinalOf, fetched); !ok {
		t.prepared, ok = t.exec.shared.Open(names.Final)
	}
	if !ok {
		return errors.New("prepared folder vanished")
	}
	// What init has left beside is nobody's business, and its workspace is an
	// engine's.
	if err := t.layOut(ctx); err != nil {
		return err
	}
	return t.writeBackend()
}

// makePlan plans, and reads and keeps the plan.
func (t *attempt) makePlan(ctx context.Context) error {
	t.begin(stepPlan)
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
	t.log.Begin(journal.DuringPlan(t.stateKnown))
	ended := t.start(ctx, printed, false, args...)
	if ended != nil && exitCode(ended) != 2 {
		t.log.Release(t.stateKnown())
		return ended
	}
	if err := ctx.Err(); err != nil {
		return err // the engine ended well, but the plan is no longer wanted
	}
	// All that the engine has started is dead: what it left is what it made.
	if err := t.takeFile(made, t.planFile, t.exec.opts.MaxPlan); err != nil && !errors.Is(err, os.ErrNotExist) {
		return &failure.Error{Cause: holdfast.CauseUnreadablePlan, Err: fmt.Errorf("plan: %w", err)}
	}
	if info, err := os.Stat(t.planFile); (err != nil || info.Size() == 0) && ended != nil {
		return ended // 2 is also how a program written in Go ends that was refused memory
	} else if err != nil || info.Size() == 0 {
		return &failure.Error{Cause: holdfast.CauseUnreadablePlan, Err: errors.New("plan: the engine left no plan file")}
	}
	t.taken = true
	if err := t.setAside(ctx); err != nil {
		return err
	}
	return t.readPlan(ctx, printed.String())
}

// lockTimeout is how long the engine waits for the state's lock.
func (t *attempt) lockTimeout() string {
	if t.a.LockTimeout != nil {
		return seconds(*t.a.LockTimeout)
	}
	return seconds(t.exec.opts.LockTimeout)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }

// apply applies the plan file. From its start on the engine is interrupted only
// by ctx.
func (t *attempt) apply(ctx context.Context) error {
	t.begin(stepWait)
	if err := t.awaitLeave(ctx); err != nil {
		return err
	}
	t.begin(stepApply)
	if err := t.bringBack(ctx); err != nil {
		return err
	}
	if err := t.give(ctx); err != nil {
		return err
	}
	t.result.Applying = true
	t.progress = journal.NewProgress()
	t.log.Begin(journal.DuringApply)
	before := t.newest.get()
	err := t.start(ctx, t.progress, false, "apply", "-input=false", "-no-color", "-auto-approve",
		"-lock-timeout="+t.lockTimeout(), t.seen(t.planFile))
	if err != nil {
		t.log.Release(true)
		err = t.rescueState(ctx, err)
		t.keepLeft(ctx, err)
		return err
	}
	if err := t.checkRecorded(before); err != nil {
		t.log.Release(true)
		t.keepLeft(ctx, err)
		return err
	}
	t.result.Status = holdfast.RunApplied
	t.outputs(ctx)
	t.keepApplied(ctx)
	return nil
}

// awaitLeave waits until the apply may begin.
func (t *attempt) awaitLeave(ctx context.Context) error {
	const pause = 200 * time.Millisecond
	timeout := time.NewTimer(t.exec.opts.ApplyWait)
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
			return &failure.Error{
				Cause: holdfast.ReasonLeaseLost, Transient: true, NotBegun: true,
				Err: errors.New("apply: not begun, the server did not confirm the lock in time"),
			}
		}
	}
}

// rescueState looks for the state that an engine could not save, keeps it and
// tries to push it. It returns the failure, completed by what came of that.
func (t *attempt) rescueState(ctx context.Context, ended error) error {
	left, file := filepath.Join(t.root, holdfast.ArtefactErrored), filepath.Join(t.dir, holdfast.ArtefactErrored)
	if err := t.takeFile(left, file, workspace.MaxState); errors.Is(err, os.ErrNotExist) {
		return ended
	} else if err != nil {
		t.say("the engine left a state that cannot be used: %v", err)
		return ended
	}
	var known *failure.Error
	if !errors.As(ended, &known) {
		known = &failure.Error{Cause: holdfast.CauseStateUnsaved, Err: ended}
	}
	t.keep = true
	if err := t.putFile(ctx, holdfast.ArtefactErrored, file); err != nil {
		known.Detail += fmt.Sprintf("\n\nThe engine could not save the state. It is in the folder %s on the agent: %v",
			t.exec.spaces.OwnDir(t.a.AttemptRef), err)
	} else {
		t.keep = false
	}
	if !t.a.OwnState {
		// Another run would begin with the old state, and make everything twice.
		known.Cause, known.Transient = holdfast.CauseStateUnsaved, false
		known.Hint = hintUnsaved
		return known
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), artefactTimeout)
	defer cancel()
	if err := t.start(ctx, nil, false, "state", "push", t.seen(left)); err != nil {
		known.Cause, known.Transient = holdfast.CauseStateUnsaved, false
		known.Hint = hintUnsaved
		t.say("the state could not be pushed: %v", err)
		return known
	}
	t.keep = false
	known.Detail = strings.TrimSpace(known.Detail + "\n\nThe engine could not save the state at first; it was pushed afterwards, nothing is lost.")
	return known
}

// hintUnsaved is what to do about a state that an engine could not save.
const hintUnsaved = "the engine could not save the state: it is kept, and nothing is planned or applied before it is pushed; " +
	"that is tried automatically, `holdfast state push` does it now, `holdfast state get` writes it to a file, `holdfast state waive` gives it up"

// maxOutputs bounds the output values that are read.
const maxOutputs = 64 << 20

// outputs reads and keeps the output values. That it cannot does not make an
// apply undone, so it is only logged.
func (t *attempt) outputs(ctx context.Context) {
	t.begin(stepOutputs)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), artefactTimeout)
	defer cancel()
	raw := journal.NewBounded(maxOutputs)
	err := t.start(ctx, raw, true, "output", "-json", "-no-color")
	var values map[string]struct {
		Sensitive bool            `json:"sensitive"`
		Value     json.RawMessage `json:"value"`
	}
	if err == nil {
		var document []byte
		if document, err = raw.Bytes(); err == nil {
			err = json.Unmarshal(document, &values)
		}
	}
	list := make([]holdfast.Output, 0, len(values))
	for _, output := range values {
		var value any
		if output.Sensitive && jsontree.Decode(output.Value, &value) == nil {
			t.redact.Add(jsontree.AppendStrings(nil, value)...)
		}
	}
	for name, output := range values {
		if !output.Sensitive {
			output.Value = t.redact.JSON(output.Value) // a mark may have been taken off
		}
		list = append(list, holdfast.Output{Name: name, Sensitive: output.Sensitive, Value: output.Value})
	}
	t.log.Release(true)
	slices.SortFunc(list, func(a, b holdfast.Output) int { return strings.Compare(a.Name, b.Name) })
	if err == nil {
		err = t.putJSON(ctx, holdfast.ArtefactOutputs, list)
	}
	if err != nil {
		t.say("the outputs could not be read: %v", err)
		t.logger.WarnContext(ctx, "outputs not kept", "err", t.redact.String(err.Error()))
	}
}
