package reconciler

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/reconciler/runners"
)

func newRunners(r *Reconciler) *runners.Keeper {
	sources := runners.Sources{
		Catalogs: r.catalogs, Documents: r.opts.Grants.Runners.Documents,
		Head: func(ctx context.Context, repo string) (holdfast.Revision, error) {
			state, err := r.opts.Store.RepositoryState(ctx, repo)
			if err != nil {
				return "", fmt.Errorf("read which head of %q was taken in: %w", repo, err)
			}
			return state.Head, nil
		},
	}
	var names []string
	for _, repo := range r.opts.Sources.Repositories {
		names = append(names, repo.Name)
		if len(repo.Runners) > 0 {
			sources.Repositories = append(sources.Repositories, runners.Repository{
				Name: repo.Name, Branch: repo.Branch, Globs: repo.Runners, Forge: r.opts.Sources.Forges[repo.Name],
			})
		}
	}
	return runners.NewKeeper(runners.Options{
		Store: r.opts.Store, Allow: r.opts.Grants.Runners.Allow, Repositories: names, Sources: sources,
		Moves: r.places.Moves, Listener: runners.Listener{Taken: r.publish.RunnersTaken, Moved: r.dispatcher.Queued}, Logger: r.opts.Telemetry.Logger, Now: r.opts.Now,
	})
}

// RefreshRunner pins an environment to the runner that the rules say now, as actor asks;
// dry says only what would be.
func (r *Reconciler) RefreshRunner(
	ctx context.Context, env holdfast.EnvironmentKey, dry bool, actor string,
) (before, after holdfast.Environment, err error) {
	return r.runners.Refresh(ctx, env, dry, actor)
}

// ProposeRunner makes a pull request that changes the document of a runner, and asks for a
// look at it.
func (r *Reconciler) ProposeRunner(ctx context.Context, p proposals.RunnerChange) (proposals.RunnerOutcome, error) {
	made, err := r.runners.Propose(ctx, p)
	if err == nil {
		r.Enqueue(holdfast.SourceRequest{Repo: made.PullRequest.Repo, PullRequest: made.PullRequest.Number})
	}
	return made, err
}

// RunnerFaults are sentences on which runners are not as Git says.
func (r *Reconciler) RunnerFaults() []string { return r.runners.Faults() }
