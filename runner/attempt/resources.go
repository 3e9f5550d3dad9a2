// What a state holds.

package attempt

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

const (
	// maxRemaining bounds what is reported of what a failed destroy has left.
	maxRemaining = 200
)

// stateKnown reports whether the secrets of the state are known before the engine
// prints anything of it.
func (t *attempt) stateKnown() bool { return t.watched && t.sharesBackend() && !t.sealed.Load() }

// keepPlanned keeps what the state holds as the plan has it, which costs no
// engine: the resources after a drift check and a plan without changes, the
// outputs of a cluster that may be adopted and has no apply that would tell.
// Sensitive ones go without their values.
func (t *planning) keepPlanned(ctx context.Context, found plan.Result) error {
	if addr, _, _ := t.session.StateAddress(); t.a.OwnState && addr == "" {
		return nil // an empty stand-in was planned against
	}
	if t.counts.Zero() && !t.a.Kind.Writes() && !t.destroys() && len(found.Outputs) > 0 {
		for i := range found.Outputs {
			found.Outputs[i].Value = t.Redact.JSON(found.Outputs[i].Value)
		}
		if err := t.putJSON(ctx, protocol.ArtefactOutputs, found.Outputs); err != nil {
			return err
		}
	}
	if t.a.Kind != holdfast.RunDrift && !t.counts.Zero() {
		return nil
	}
	return t.putResources(ctx, cleanResources(t.Redact, found.Resources))
}

// keepLeft keeps outputs and resources of the state after an apply that failed, if they
// are known: not while the newest state is saved nowhere, and not if the engine refused
// to begin.
func (t *applying) keepLeft(ctx context.Context, before []byte, ended error) {
	var known *failure.Error
	if errors.As(ended, &known) && (known.Cause == holdfast.CauseStateUnsaved || known.Cause == holdfast.CauseStalePlan) {
		return
	}
	if ctx.Err() != nil && !t.watched {
		if reason, _ := failure.StopReason(ctx); reason == holdfast.ReasonLeaseLost || reason == holdfast.ReasonAgentKilled {
			return // there is no time for another engine
		}
	}
	t.unkept(ctx, "outputs and resources", t.whenDiskIsBack(ctx, func() error {
		found, err := t.readContents(ctx, t.exec.opts.Waits.Left)
		if err != nil {
			return err
		}
		t.noteSaved(before, found)
		return errors.Join(t.keepOutputs(ctx, found), t.keepResources(ctx, found))
	}))
}

// remaining returns the addresses that a failed destroy has left in the state.
func (t *attempt) remaining() []string {
	if t.a.Kind != holdfast.RunDestroy {
		return nil
	}
	var list []string
	for _, resource := range t.left[:min(len(t.left), maxRemaining)] {
		list = append(list, resource.Address)
	}
	return list
}

// cleanResources returns a copy of the list without secrets: an id that is or
// has one is left out as a whole.
func cleanResources(r *redact.Redactor, list []holdfast.Resource) []holdfast.Resource {
	list = slices.Clone(list)
	for i := range list {
		resource := &list[i]
		resource.Address = r.Known(resource.Address)
		if r.String(resource.ID) != resource.ID {
			resource.ID = ""
		}
	}
	return list
}
