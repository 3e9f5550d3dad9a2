package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

func (t *attempt) chooseEngine(ctx context.Context) error {
	w, err := wish(t.a, t.module, t.root, t.bundle)
	var changed *changedEngineError
	switch {
	case err != nil && t.a.Exact:
		return &attemptError{cause: holdfast.CauseNoEngine, err: err, hint: noExactHint}
	case err != nil && !errors.As(err, &changed):
		return &attemptError{cause: holdfast.CauseInvalidConfiguration, err: err}
	case err == nil:
		t.engine, err = t.exec.engines.choose(ctx, w)
	}
	if err != nil {
		return engineFault(err, t.a.Exact)
	}
	if err := t.module.heldTo(t.engine.name, t.a.Engine.Name, t.a.OwnState); err != nil {
		return &attemptError{cause: holdfast.CauseInvalidConfiguration, err: err}
	}
	t.readModule(t.engine.name)
	t.result.EngineName, t.result.EngineVersion = t.engine.name, t.engine.version
	t.say("using %s %s", t.engine.name, t.engine.version)
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
	wrote, why := writerOf(t.pulled)
	if wrote == "" || wrote == t.engine.name {
		return nil
	}
	return &attemptError{
		cause: holdfast.CauseInvalidConfiguration,
		err:   fmt.Errorf("the state was written by %s (%s), and nothing says that %s shall take it over", wrote, why, t.engine.name),
		hint:  fmt.Sprintf("set spec.engine.name to %s to keep the engine, or to %s to change it", wrote, t.engine.name),
	}
}
