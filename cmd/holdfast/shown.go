package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/show"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// lookAtPlans prints which plans clusters wait with, as the server names them, and returns
// their runs: an apply of what somebody else has planned or merged since is refused.
func (a *app) lookAtPlans(ctx context.Context, cl *client.Client, clusters []string, format string) ([]string, error) {
	shown := []string{} // none is another thing than not to have looked
	for _, name := range clusters {
		cluster, err := cl.Cluster(ctx, name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, err
		}
		if cluster.PlannedRun == "" {
			continue
		}
		run, err := cl.Run(ctx, cluster.PlannedRun)
		if err != nil {
			return nil, err
		}
		shown = append(shown, run.ID)
		if format == "table" {
			a.namePlan(run)
		}
	}
	return shown, nil
}

// namePlan prints which plan a person's word is about.
func (a *app) namePlan(run v1.Run) {
	of, counts := "", cmp.Or(show.CountsText(run.Counts), "no changes")
	if !run.PullRequest.IsZero() {
		of = " of " + holdfast.PullRequestRef(run.PullRequest).String()
	}
	_, _ = fmt.Fprintf(a.Out, "%s: the plan of %s%s (%s), made %s ago\n",
		run.Cluster, run.ID, of, counts, table.ShortDuration(a.Now().Sub(run.FinishedAt)))
}
