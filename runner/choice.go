package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/failure"
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
	t.readModule(t.engine.Name)
	t.result.EngineName, t.result.EngineVersion = t.engine.Name, t.engine.Version
	t.say("using %s %s", t.engine.Name, t.engine.Version)
	return nil
}

// checkWriter refuses an engine that nobody has named for a state that the other
// one has written: a cluster that is taken over from elsewhere would be converted
// by its first apply. Of a cluster that was applied here, and of a state of
// Holdfast's own, it is known who wrote it.
func (t *attempt) checkWriter() error {
	if t.a.OwnState || t.a.Exact || t.a.Engine.Name != "" || t.a.PinName != "" {
		return nil
	}
	wrote, why := engine.WriterOf(t.pulled)
	if wrote == "" || wrote == t.engine.Name {
		return nil
	}
	return &failure.Error{
		Cause: holdfast.CauseInvalidConfiguration,
		Err:   fmt.Errorf("the state was written by %s (%s), and nothing says that %s shall take it over", wrote, why, t.engine.Name),
		Hint:  fmt.Sprintf("set spec.engine.name to %s to keep the engine, or to %s to change it", wrote, t.engine.Name),
	}
}
