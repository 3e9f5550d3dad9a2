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

// lookAtPlans prints which plans the clusters of an apply or an approval wait with, as the
// server names them, and returns their runs: another plan, which somebody has made or
// merged since, is refused. It returns nil for commands that are not about such plans.
func (a *app) lookAtPlans(ctx context.Context, cl *client.Client, req v1.CommandRequest, format string) ([]string, error) {
	merge := !req.PullRequest.IsZero()
	if req.Run != "" || req.Verb != holdfast.VerbApply && (req.Verb != holdfast.VerbApprove || merge) {
		return nil, nil
	}
	clusters, err := clustersOf(ctx, cl, req)
	if err != nil {
		return nil, err
	}
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
		if merge && run.Kind == holdfast.RunDrift { // it is not about the merge
			continue
		}
		shown = append(shown, run.ID)
		if format == "table" {
			a.namePlan(run)
		}
	}
	return shown, nil
}

// clustersOf returns the clusters that a command is for: of a pull request those that
// its merge has changed. What is not there has none: the answer to the command says so.
func clustersOf(ctx context.Context, cl *client.Client, req v1.CommandRequest) ([]string, error) {
	if req.Run != "" {
		run, err := cl.Run(ctx, req.Run)
		if errors.Is(err, holdfast.ErrNotFound) {
			return nil, nil
		}
		return []string{run.Cluster}, err
	}
	if req.PullRequest.IsZero() || len(req.Clusters) > 0 {
		return req.Clusters, nil
	}
	answer, err := cl.PullRequest(ctx, req.PullRequest)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && answer.PullRequest.State != holdfast.PullRequestMerged {
		return nil, nil
	}
	var clusters []string
	for _, c := range answer.PullRequest.Clusters {
		if !c.Sample {
			clusters = append(clusters, c.Name)
		}
	}
	return clusters, err
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
