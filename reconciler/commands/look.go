package commands

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Reconcile asks for another look: at a repository, at a cluster, or, with
// neither, at everything.
func (o *Operator) Reconcile(ctx context.Context, repo, cluster string) error {
	if cluster != "" {
		rec, err := o.opts.Store.Cluster(ctx, cluster)
		if err != nil {
			return fmt.Errorf("read cluster %q: %w", cluster, err)
		}
		if _, ok := o.repos[rec.Owner]; !ok && rec.Owner != "" {
			return &holdfast.RefusedError{Text: string(unwatched(rec.Owner))}
		}
		o.Agenda.RequestCluster(cluster)
		repo = rec.Owner
	}
	if repo == "" {
		for name := range o.repos {
			if err := o.Publisher.Retry(ctx, holdfast.PullRequestRef{Repo: name}); err != nil {
				return err
			}
			o.Intake.LookAgain(name)
		}
		return nil
	}
	if _, ok := o.repos[repo]; !ok {
		return fmt.Errorf("repository %q: %w", repo, holdfast.ErrNotFound)
	}
	if err := o.Publisher.Retry(ctx, holdfast.PullRequestRef{Repo: repo}); err != nil {
		return err
	}
	o.Intake.LookAgain(repo) // what is wrong there may have been mended elsewhere
	return nil
}

// Watches reports whether the configuration has a repository.
func (o *Operator) Watches(repo string) bool {
	_, ok := o.repos[repo]
	return ok
}
