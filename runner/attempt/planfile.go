// What is in a plan file, checked against what the run was given.

package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/planfile"
)

// checkPlanned compares what is in the plan file with what the run was given, in
// the workspace that has just been laid out: an engine that applies the file takes
// code, variables and backend from it, whoever wrote it.
func (t *planning) checkPlanned(ctx context.Context) error {
	archive, err := planfile.Open(t.planFile, t.exec.opts.Limits.Plan)
	if err != nil {
		return err
	}
	defer archive.Close()
	bundle, err := os.OpenRoot(t.bundle)
	if err != nil {
		return err
	}
	defer bundle.Close()
	modules, err := t.installed(bundle).Modules()
	if err != nil {
		return fmt.Errorf("read the modules: %w", err)
	}
	if err := archive.CheckCode(modules, t.inRepository); err != nil {
		return err
	}
	if err := archive.CheckLock(t.lockFile); err != nil {
		return err
	}
	planned, err := archive.Plan(t.engine.Name == modulecode.Tofu)
	if err != nil {
		return err
	}
	if err := t.checkPlan(planned); err != nil {
		return err
	}
	return t.checkState(ctx, archive, planned)
}

// checkPlan compares what the plan was made with.
func (t *planning) checkPlan(planned *planfile.Plan) error {
	settings, err := readIfExists(t.settingsFile())
	if err != nil {
		return err
	}
	backend, err := planfile.ReadBackend(settings)
	if err != nil {
		return err
	}
	given, err := t.variables().Given(t.env())
	if err != nil {
		return err
	}
	return errors.Join(planned.CheckBackend(backend), planned.CheckMode(t.destroys()), planned.CheckVariables(given))
}

// checkState compares the state that the plan's changes start from with the one
// that the engine was given.
func (t *planning) checkState(ctx context.Context, archive *planfile.Archive, planned *planfile.Plan) (err error) {
	state := t.pulled
	switch {
	case t.withoutState():
	case t.sealed.Load(): // only an engine can read it
		if state, err = t.pullState(ctx); err != nil {
			return err
		}
	case t.watched:
		state = t.newest.get()
	}
	given, err := planfile.ReadState(bytes.NewReader(state))
	if err != nil {
		return fmt.Errorf("read the state: %w: that is %w", err, planfile.ErrUnsupported)
	}
	prior, err := archive.State()
	if err != nil {
		return err
	}
	found, err := planned.CheckState(given, prior)
	t.compared = comparedOf(found, given)
	return err
}

func comparedOf(found planfile.Differences, given *planfile.State) plan.Compared {
	c := plan.Compared{Outputs: map[string]plan.GivenOutput{}}
	for _, u := range found.Unshown {
		c.Unshown = append(c.Unshown, plan.Unshown(u))
	}
	for _, use := range found.Providers {
		c.Providers = append(c.Providers, plan.ProviderUse(use))
	}
	for _, d := range found.Drifted {
		drifted := plan.Drifted{Address: d.Address, Deposed: d.Deposed, Type: d.Type, Provider: d.Provider}
		for _, a := range d.Attributes {
			drifted.Attributes = append(drifted.Attributes, plan.DriftedAttribute(a))
		}
		c.Drifted = append(c.Drifted, drifted)
	}
	for name, output := range given.Outputs {
		c.Outputs[name] = plan.GivenOutput(output)
	}
	return c
}
