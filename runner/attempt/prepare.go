// The step init.

package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/plan"
)

// initializing makes the root module ready to plan.
type initializing struct {
	*attempt

	expected []holdfast.Digest // of fetched modules, that prepared should have; none: any
}

// init makes the root module ready to plan, from a prepared folder if there is one,
// otherwise by the engine's init, whose result becomes one.
func (t *initializing) init(ctx context.Context) (err error) {
	if err := t.install(ctx); err != nil {
		return err
	}
	if t.module.Backend != "" && !t.sharesBackend() {
		if err := t.configureBackend(ctx); err != nil {
			return err
		}
	}
	if t.lockFile, err = t.readLock(); err != nil {
		return fmt.Errorf("read lock file: %w", err)
	}
	if err := t.noteInput(ctx); err != nil {
		return err
	}
	if err := t.compareModules(ctx); err != nil {
		return err
	}
	if err := t.keepModules(ctx); err != nil || t.lockFile == nil {
		return err
	}
	return t.put(ctx, protocol.ArtefactLockFile, bytes.NewReader(t.lockFile))
}

// install brings the providers and modules that the root module calls for.
func (t *initializing) install(ctx context.Context) error {
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

// cliConfig returns the engine's own configuration as it will find it.
func (t *initializing) cliConfig() ([]byte, error) {
	if t.exec.cli.Data != nil {
		return t.exec.cli.Data, nil
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

// prepare opens the folder that init would make with that lock file, and makes it if
// there is none. If several attempts need the same one, one makes it and the others
// wait.
func (t *initializing) prepare(ctx context.Context, lock, cliConfig []byte) error {
	var names initcache.Names
	names.Key, names.KeyOf = t.sharedNames(lock, cliConfig)
	if err := t.expectModules(ctx); err != nil {
		return err
	}
	unlock, err := t.exec.inits.Lock(ctx, names.Key)
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
		Root: t.root, Seen: t.seen(t.root), Owner: os.Geteuid(), Mirrors: t.exec.mirrors(),
		Backend: t.sharesBackend(), Unpinned: t.unpinned,
	}
	if t.exec.mode().OwnUser() {
		from.Owner = t.slot.UID
	}
	names.Final, names.FinalOf = t.sharedNames(lock, cliConfig)
	fetched, err := t.exec.inits.Publish(ctx, from, names)
	if err != nil {
		return tooLarge(fmt.Errorf("keep what init prepared: %w", err))
	}
	t.exec.inits.Prune()
	if !t.openPublished(names, fetched) {
		return errors.New("prepared folder vanished")
	}
	// What init has left next to it is not kept, as its workspace belongs to an engine.
	if err := t.layOut(ctx); err != nil {
		return err
	}
	return t.writeBackend()
}

// openPublished opens the folder that was made with those fetched modules, if it has any,
// and never one that others have made with the same names.
func (t *initializing) openPublished(names initcache.Names, fetched holdfast.Digest) (ok bool) {
	if fetched == "" {
		t.prepared, ok = t.exec.inits.Open(names.Final)
	} else {
		t.prepared, ok = t.exec.inits.OpenOf(names.FinalOf, fetched)
	}
	return ok
}

// sharedNames returns the names of the folder that init makes with that lock file.
func (t *initializing) sharedNames(lock, cliConfig []byte) (key, keyOf string) {
	return engine.PreparedKey(t.engine, t.module, t.a, lock, cliConfig, false), engine.PreparedKey(t.engine, t.module, t.a, lock, cliConfig, true)
}

// noteInput notes the digest of all that the plan is made of, and keeps the
// parts.
func (t *initializing) noteInput(ctx context.Context) error {
	fetched := t.prepared.Fetched
	d := holdfast.NewDigester("input")
	d.Add(string(t.a.SourceDigest), t.engine.Name, t.engine.Version, string(t.lockFile), string(fetched))
	if t.unit.digest != "" {
		d.Add("terragrunt", string(t.unit.digest))
	}
	if t.destroys() {
		d.Add("destroy") // of the same code it is the opposite
	}
	t.result.InputDigest = d.Digest()
	t.input = plan.Input{
		Destroy: t.destroys(), Source: t.a.SourceDigest, Engine: t.engine.Name + " " + t.engine.Version,
		Providers: modulecode.LockedProviders(t.lockFile), Modules: fetched,
		Fetched: fetchedModules(t.prepared), Secrets: t.secrets.Prints, Unit: t.unit.digest,
	}
	if t.lockFile != nil {
		t.input.LockFile = holdfast.DigestOf(t.lockFile)
	}
	return t.putJSON(ctx, protocol.ArtefactInput, t.input)
}

// readLock returns the lock file of the root module, nil if it has none.
func (t *space) readLock() ([]byte, error) {
	path := filepath.Join(t.root, engineLockFile)
	if !t.given {
		return readIfExists(path)
	}
	return t.readLeft(path, maxLockFile)
}

// sharesBackend reports whether the prepared folder has the backend as well: an
// empty http backend gets its address from the environment.
func (t *space) sharesBackend() bool {
	return t.a.OwnState && t.module.Backend == "http" && t.module.BareBackend
}
