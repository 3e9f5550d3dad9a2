// What an attempt is made of, before its engine starts: bundle, engine, backend,
// secrets.

package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/secrets"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

func (t *attempt) chooseEngine(ctx context.Context) error {
	w, err := engine.WishOf(t.a, t.module, t.root, t.bundle)
	var changed *engine.ChangedError
	switch {
	case err != nil && t.a.Exact:
		return &failure.Error{Cause: holdfast.CauseNoEngine, Err: err, Hint: engine.HintExact}
	case err != nil && !errors.As(err, &changed):
		return &failure.Error{Cause: holdfast.CauseInvalidConfiguration, Err: err}
	case err == nil:
		t.engine, err = t.exec.engines.Choose(ctx, w)
	}
	if err != nil {
		return engine.Fault(err, t.a.Exact)
	}
	if err := t.module.HeldTo(t.engine.Name, t.a.Engine.Name, t.a.OwnState); err != nil {
		return &failure.Error{Cause: holdfast.CauseInvalidConfiguration, Err: err}
	}
	t.readModule(ctx, t.engine.Name)
	t.result.EngineName, t.result.EngineVersion = t.engine.Name, t.engine.Version
	t.Say("using %s %s", t.engine.Name, t.engine.Version)
	return nil
}

// checkWriter refuses an engine that nobody has named for a state that the other one
// has written: that of a cluster that is taken over from elsewhere, or of which no
// apply has ended yet, would be converted by the next one. For a cluster that was
// applied here it is known who wrote it.
func (t *planning) checkWriter(state []byte) error {
	if t.a.Exact || t.a.Engine.Name != "" || t.a.PinName != "" {
		return nil
	}
	wrote, why := engine.WriterOf(state)
	if wrote == "" || wrote == t.engine.Name {
		return nil
	}
	return &failure.Error{
		Cause: holdfast.CauseInvalidConfiguration,
		Err:   fmt.Errorf("the state was written by %s (%s), and nothing says that %s should take it over", wrote, why, t.engine.Name),
		Hint:  fmt.Sprintf("set spec.engine.name to %s to keep the engine, or to %s to change it", wrote, t.engine.Name),
	}
}

// unpackBundle makes the workspace and reads the root module in it.
func (t *attempt) unpackBundle(ctx context.Context) error {
	var err error
	if t.place, err = t.exec.spaces.Take(t.a); err != nil {
		return err
	}
	t.dir = t.place.Dir
	if err := t.exec.opts.Isolation.Starter.Admit(t.dir, t.slot); err != nil {
		return err
	}
	t.work, t.planFile = filepath.Join(t.dir, "work"), filepath.Join(t.dir, workspace.PlanName)
	t.bundle = filepath.Join(t.work, "bundle")
	if t.root, err = workspace.Inside(t.bundle, t.a.Dir); err != nil {
		return &failure.Error{Cause: holdfast.CauseBundleUnusable, Err: fmt.Errorf("root module: %w", err)}
	}
	if err := t.layOut(ctx); err != nil {
		return err
	}
	if err := t.renderUnit(ctx); err != nil {
		return err
	}
	tool := cmp.Or(t.a.Engine.Name, t.a.PinName)
	if t.a.Exact {
		tool = t.a.PinName
	}
	t.readModule(ctx, tool)
	if t.unit.digest != "" && !t.a.OwnState && t.module.Backend == "" {
		return elsewhere()
	}
	if err := t.module.Unread; err != nil && ctx.Err() == nil {
		return &failure.Error{
			Cause: holdfast.CauseInvalidConfiguration, Err: fmt.Errorf("secret values: %w", err),
			Hint: "divide the file, or give secret variables their values by secrets",
		}
	}
	return t.chooseBackend()
}

// readModule reads the root module as code for an engine; empty: for the one that
// would be chosen for it.
func (t *attempt) readModule(ctx context.Context, tool string) {
	t.module = modulecode.Read(ctx, t.root, t.bundle, tool)
	if t.unit.requires != "" {
		t.module.Requires = append(t.module.Requires, t.unit.requires)
	}
	t.Redact.Add(t.module.Secrets...)
	for _, name := range t.module.Sensitive {
		t.Redact.Add(modulecode.VariableSecrets(cmp.Or(t.a.Env[modulecode.VariablePrefix+name], t.exec.opts.Engines.Env[modulecode.VariablePrefix+name]))...)
	}
}

// chooseBackend makes the root module use Holdfast's own backend where it has
// none of its own, and an empty local state where there is no server to ask.
func (t *space) chooseBackend() error {
	if !t.a.OwnState {
		return nil
	}
	name, kind := "", "http"
	if addr, _, _ := t.session.StateAddress(); addr == "" {
		name, kind = "holdfast_backend_override.tf", "local"
	} else if t.module.Backend == "" {
		name = "holdfast_backend.tf"
	}
	if name == "" {
		return nil
	}
	t.module.Backend, t.module.BareBackend = kind, true
	t.backend.name, t.backend.code = name, fmt.Sprintf("terraform {\n  backend %q {}\n}\n", kind)
	return t.writeBackend()
}

// takeSecrets looks up the values of the root module's secret variables.
func (t *attempt) takeSecrets(ctx context.Context) (err error) {
	resolver := secrets.Resolver{
		Assignment: t.a, Opts: t.exec.opts.Secrets,
		Env: t.storeEnv(), Dir: t.dir, Redactor: t.Redact, Say: t.Say,
	}
	t.secrets, err = resolver.Take(ctx, t.root)
	return err
}
