// What init makes of the root module's own backend.

package attempt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// Init writes down how a backend is configured: its type and arguments, and a hash of
// them. That is the same for the same code and engine each time, and costs a start of the
// engine. So an Executor remembers it, and lets the engine read the state with it at
// once.
//
// Init does more than that: it checks that the store exists. Some engines read a store
// that is gone as one without a state, and would plan to create all of it again. So what
// is remembered counts only if a state was read by it. Otherwise init is started as if
// nothing were remembered, and what is wrong is reported as init says it.

// configureBackend makes the root module's own backend ready: by what is remembered of
// it, otherwise by init.
func (t *initializing) configureBackend(ctx context.Context) (err error) {
	t.settingsName = t.nameSettings()
	if t.a.State == nil { // what puts a state right has init look at the store
		if read, err := t.readByRemembered(ctx); read || err != nil {
			return err
		}
	}
	if err := t.start(ctx, nil, false, "init", "-reconfigure", "-input=false", "-no-color"); err != nil {
		return err
	}
	if t.settings, err = t.readLeft(t.settingsFile(), maxLockFile); err != nil {
		return fmt.Errorf("read the backend's settings: %w", err)
	}
	if !t.a.OwnState && t.exec.mode().OwnRoot() {
		if err := checkLocalState(t.settings, t.exec.opts.Isolation); err != nil {
			return err
		}
	}
	if t.initLeftMore() {
		t.settingsName = ""
	}
	return nil
}

func (t *space) settingsFile() string { return filepath.Join(t.root, dataDir, "terraform.tfstate") }

// workspaceFile names the engine's workspace, if one was selected.
const workspaceFile = "environment"

// nameSettings names what init would make of the backend by all that this depends on,
// empty if it is not to be remembered. A cluster, and each set of credentials, has its own;
// and as plans may be of code that nobody has reviewed, so have applies.
func (t *initializing) nameSettings() holdfast.Digest {
	cliConfig, err := t.cliConfig()
	if err != nil || !t.rememberable() {
		return ""
	}
	d := holdfast.NewDigester("backend settings")
	d.Add(t.a.Identities.Name())
	d.Add(t.a.Cluster, t.a.StateLocation, strconv.FormatBool(t.a.Kind.Writes()), t.module.BackendText)
	d.Add(engine.PreparedKey(t.engine, t.module, t.a, t.prepared.Lock, cliConfig, false))
	env := t.env()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		d.Add(name, env[name])
	}
	return d.Digest()
}

// rememberable reports whether what init makes of the backend depends on nothing but what
// names it, and whether an engine that reads the state by it does no more than that.
func (t *initializing) rememberable() bool {
	m, env := t.module, t.env()
	_, selected := os.Lstat(filepath.Join(t.root, dataDir, workspaceFile))
	switch {
	case t.a.OwnState: // the backend is Holdfast's
		return false
	case m.BackendText == "", m.Whole, m.Opaque, m.Dynamic, m.Plugins:
		return false
	case env["TF_CLI_ARGS_init"] != "": // it can give the backend arguments, such as passwords
		return false
	case !errors.Is(selected, fs.ErrNotExist), cmp.Or(env["TF_WORKSPACE"], "default") != "default":
		return false // engines make a workspace that is gone when they read it; init does not
	}
	return true
}

// readByRemembered lets the engine read the state by what is remembered of the backend,
// and reports whether it did. If not, the workspace is as it was.
func (t *initializing) readByRemembered(ctx context.Context) (read bool, err error) {
	if t.settings = t.exec.settings.Get(t.settingsName); t.settings == nil {
		return false, nil
	}
	if err := replaceFile(t.settingsFile(), t.settings); err != nil {
		return false, fmt.Errorf("use the backend's settings: %w", err)
	}
	state, err := t.pullState(ctx)
	switch {
	case ctx.Err() != nil:
		return false, cmp.Or(err, context.Cause(ctx))
	case err == nil && engine.Present(state, t.prepared.Lock):
		t.Say("the backend is configured as in an earlier run")
		t.pulled = state
		return true, nil
	}
	t.Say("no state was read with the backend configured as in an earlier run: init configures it again")
	t.exec.settings.Forget(t.settingsName)
	t.settings = nil
	if err := t.layOut(ctx); err != nil {
		return false, err
	}
	if err := errors.Join(t.writeBackend(), t.link()); err != nil {
		return false, fmt.Errorf("lay out workspace: %w", err)
	}
	return false, nil
}

// initLeftMore reports whether init has done more than to configure the backend: it has
// completed the lock file, or selected a workspace.
func (t *initializing) initLeftMore() bool {
	lock, err := t.readLock()
	selected, errSelected := t.readLeft(filepath.Join(t.root, dataDir, workspaceFile), maxLockFile)
	return errors.Join(err, errSelected) != nil || selected != nil || !bytes.Equal(lock, t.prepared.Lock)
}

// rememberSettings remembers the configuration of the backend that a state was read
// from. Settings with something secret in them are not kept for longer than the
// attempt.
func (t *attempt) rememberSettings(state []byte) {
	text := string(t.settings)
	switch {
	case t.settingsName == "", text == "", len(text) > initcache.MaxSettings:
	case t.exec.settings.Get(t.settingsName) != nil: // they were used
	case t.Redact.String(text) != text, redact.Names(text):
	case engine.Present(state, t.prepared.Lock):
		t.exec.settings.Keep(t.settingsName, t.settings)
	}
}
