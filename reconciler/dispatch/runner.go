package dispatch

// The limits of runners, and who executes what they have.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// places are the runners on record.
type places struct{ store Runners }

// mostOf is how many runs a runner may have at once; zero: any number.
func (p places) mostOf(ctx context.Context, runner string) (int, error) {
	if runner == "" || runner == holdfast.LocalRunner {
		return 0, nil
	}
	rec, err := p.store.Runner(ctx, runner)
	if errors.Is(err, holdfast.ErrNotFound) {
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("read the limit of runner %s: %w", runner, err)
	}
	return rec.Document.MaxRuns, nil
}

// waits says that a run is not handed out because its runner has as many as it may;
// empty if it has not.
func (p places) waits(ctx context.Context, run holdfast.Run, load load) (reason holdfast.Reason, detail string, err error) {
	runner := run.RunnerName()
	most, err := p.mostOf(ctx, runner)
	if err != nil || most == 0 || load.runners[runner] < most {
		return "", "", err
	}
	return holdfast.ReasonRunnerCapped, fmt.Sprintf("%d of %d runs of runner %s are running", load.runners[runner], most, runner), nil
}

// types are those of runners by name, the local one among them.
func (p places) types(ctx context.Context) (map[string]runnerspec.Type, error) {
	records, err := p.store.Runners(ctx)
	if err != nil {
		return nil, fmt.Errorf("list runners: %w", err)
	}
	types := map[string]runnerspec.Type{holdfast.LocalRunner: runnerspec.Local}
	for _, rec := range records {
		types[rec.Document.Name] = rec.Document.Type
	}
	return types, nil
}

// allServed reports whether each runner with runs that wait has living agents for all kinds
// of runs. For a runner whose agents are started for each run, its launcher reports that.
func (d sweep) allServed(ctx context.Context, types map[string]runnerspec.Type) (bool, error) {
	for runner, kind := range types {
		if !kind.Standing() || !slices.ContainsFunc(holdfast.AgentKinds(), func(kind holdfast.RunKind) bool {
			return !d.takes(runner, kind, "", kind == holdfast.RunPlan && d.forks.some())
		}) {
			continue
		}
		some, err := d.opts.Store.AnyQueued(ctx, holdfast.ClaimFilter{Runner: runner})
		if err != nil {
			return false, fmt.Errorf("look at the queue of runner %s: %w", runner, err)
		}
		if some {
			return false, nil
		}
	}
	return true, nil
}

// nobodyFor says why no living agent executes a run; empty if one does, or one is started
// for it.
func (d sweep) nobodyFor(run holdfast.Run, types map[string]runnerspec.Type) string {
	runner, kind, project := run.RunnerName(), run.Kind, run.Document.Project
	held := d.forks.holds(run)
	agent := "agent"
	if runner != holdfast.LocalRunner {
		agent += " of runner " + runner
	}
	switch t, known := types[runner]; {
	case d.takes(runner, kind, project, held != ""), known && !t.Standing():
		return ""
	case d.takes(runner, kind, project, false):
		return held + ": it needs an agent that isolates engines, and none has connected recently"
	}
	if why := d.refusedFor(runner, kind, project); why != nil {
		return fmt.Sprintf("each %s for %s runs of project %q is refused: %v", agent, kind, project, why)
	}
	return fmt.Sprintf("no %s for %s runs of project %q has connected recently", agent, kind, project)
}
