// What an apply leaves in the state: outputs and resources.

package attempt

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// keepApplied keeps the outputs and resources of the state after an apply. A failure
// does not undo the apply, so it is only logged.
func (t *applying) keepApplied(ctx context.Context) {
	t.Begin(stepOutputs)
	var found plan.Contents
	err := t.whenDiskIsBack(ctx, func() (err error) {
		found, err = t.readContents(ctx, artefactTimeout)
		return err
	})
	t.Log.Release(true)
	if err != nil {
		t.unkept(ctx, "outputs and resources", err)
		return
	}
	t.unkept(ctx, "outputs", t.whenDiskIsBack(ctx, func() error { return t.keepOutputs(ctx, found) }))
	t.unkept(ctx, "resources", t.whenDiskIsBack(ctx, func() error { return t.keepResources(ctx, found) }))
}

// whenDiskIsBack does what nobody else would do before the next apply, and tries again
// for a while as long as this machine is the cause of failures.
func (t *applying) whenDiskIsBack(ctx context.Context, do func() error) error {
	const first, most = 100 * time.Millisecond, 10 * time.Second
	last := time.Now().Add(artefactTimeout)
	for pause := first; ; pause = min(2*pause, most) {
		err := do()
		if !failure.LocalFault(err) || time.Now().Add(pause).After(last) {
			return err
		}
		if pause == first {
			t.logger.WarnContext(ctx, "results of an apply are stored when the disk is back", "err", t.Redact.String(err.Error()))
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// keepUnchanged keeps the outputs of the state that an apply had nothing to change
// in: the plan has read it, and nobody has written it since.
func (t *applying) keepUnchanged(ctx context.Context) {
	t.Begin(stepOutputs)
	state := t.pulled
	if t.watched {
		state = t.newest.get()
	}
	found, err := plan.ContentsOf(state)
	if err != nil { // the engine has encrypted it
		found, err = t.pullContents(ctx, artefactTimeout)
	}
	t.Log.Release(true)
	if err == nil {
		err = t.whenDiskIsBack(ctx, func() error { return t.keepOutputs(ctx, found) })
	}
	t.unkept(ctx, "outputs", err)
}

// readContents returns what the state holds now: as the session has seen it on its way,
// otherwise, or if the engine has encrypted it, as the engine reads it.
func (t *applying) readContents(ctx context.Context, within time.Duration) (plan.Contents, error) {
	if seen := t.newest.get(); t.watched && seen != nil {
		if found, err := plan.ContentsOf(seen); err == nil {
			return found, nil
		}
	}
	return t.pullContents(ctx, within)
}

// pullContents lets the engine read the state, and learns the secrets in it.
func (t *applying) pullContents(ctx context.Context, within time.Duration) (plan.Contents, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	state, err := t.pullState(ctx)
	if err != nil {
		return plan.Contents{}, err
	}
	secrets, _ := redact.OfState(state)
	t.Redact.Add(secrets...)
	t.rememberSettings(state)
	return plan.ContentsOf(state)
}

func (t *applying) keepOutputs(ctx context.Context, found plan.Contents) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), artefactTimeout)
	defer cancel()
	list := make([]holdfast.Output, len(found.Outputs))
	for i, output := range found.Outputs {
		if !output.Sensitive {
			output.Value = t.Redact.JSON(output.Value) // a mark may have been taken off
		}
		list[i] = output
	}
	return t.putJSON(ctx, protocol.ArtefactOutputs, list)
}

func (t *applying) keepResources(ctx context.Context, found plan.Contents) error {
	list := cleanResources(t.Redact, found.Resources)
	if err := t.putResources(ctx, list); err != nil {
		return err
	}
	t.left = list
	return nil
}

// unkept logs that something of the state could not be kept; err nil: it was.
func (t *attempt) unkept(ctx context.Context, what string, err error) {
	if err == nil {
		return
	}
	t.Say("the %s in the state could not be read or kept: %v", what, err)
	t.logger.WarnContext(ctx, "contents of the state were not stored", "what", what, "err", t.Redact.String(err.Error()))
}

func (t *attempt) putResources(ctx context.Context, list []holdfast.Resource) error {
	if len(list) == plan.MaxResources {
		t.Say("only the first %d resources in the state are listed", plan.MaxResources)
	}
	return t.putJSON(ctx, protocol.ArtefactResources, list)
}
