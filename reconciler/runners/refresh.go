package runners

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Refresh pins an environment to the runner that the rules say now, as actor asks; dry says
// only what would be. One that has no cluster left has no runner after it. The errors are
// those of Store.RefreshEnvironment.
func (k *Keeper) Refresh(
	ctx context.Context, env holdfast.EnvironmentKey, dry bool, actor string,
) (before, after holdfast.Environment, err error) {
	before, after, err = k.opts.Store.RefreshEnvironment(ctx, env, true)
	if err == nil && before.Runner != after.Runner && after.Runner != "" {
		err = k.keepsStates(ctx, env, after.Runner)
	}
	if err != nil || dry || before == after {
		return before, after, err
	}
	// What it says is what is seen now: the next look may find another rule.
	detail := fmt.Sprintf("from runner %s to %s, by rule %s", before.Runner, after.Runner, after.Rule)
	if after.Runner == "" {
		detail = fmt.Sprintf("from runner %s to none: it has no cluster left", before.Runner)
	}
	entry := holdfast.NewAuditEntry(k.opts.Now(), actor, "environment.refresh", env.String(), detail)
	before, after, err = k.opts.Store.RefreshEnvironment(ctx, env, false, entry)
	if err != nil || before.Runner == after.Runner {
		return before, after, err
	}
	k.opts.Logger.InfoContext(ctx, "environment has moved", "project", env.Project, "environment", env.Name,
		"from", before.Runner, "to", after.Runner)
	k.opts.Listener.Moved(ctx)
	if err := k.Again(ctx); err != nil { // what it had may be free to go; the next sweep tries again
		k.opts.Logger.WarnContext(ctx, "documents of runners were not looked at again", "err", err)
	}
	return before, after, nil
}

// keepsStates refuses a runner for an environment that would have its states elsewhere than
// these are.
func (k *Keeper) keepsStates(ctx context.Context, env holdfast.EnvironmentKey, runner string) error {
	is, err := k.known(ctx)
	if err != nil {
		return err
	}
	storages := []*holdfast.StateStorage{nil}
	if rec, ok := is.runner(runner); ok {
		if storages[0] = rec.Document.Storage; rec.Next != nil {
			storages = append(storages, rec.Next.Storage)
		}
	}
	clusters, err := k.clustersOf(ctx, env)
	if err != nil {
		return err
	}
	moves, err := k.opts.Moves(ctx, clusters, storages...)
	if err != nil || len(moves) == 0 {
		return err
	}
	return &holdfast.RefusedError{
		Reason: holdfast.ReasonStateWouldMove, Command: "holdfast state migrate " + moves[0].Cluster,
		Text: fmt.Sprintf("environment %s cannot move to runner %s: %s", env, runner, MovesText(moves)),
	}
}
