package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/show"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// lookAtPlans prints which plans clusters wait with, and returns the runs that are the
// newest ones of what is confirmed: an apply of what somebody else has planned since is
// refused.
func (a *app) lookAtPlans(ctx context.Context, cl *client.Client, clusters []string, format string) ([]string, error) {
	var shown []string
	for _, cluster := range clusters {
		run, err := newestEnded(ctx, cl, cluster)
		if err != nil {
			return nil, err
		}
		if run.ID != "" {
			shown = append(shown, run.ID)
		}
		if run.Status != holdfast.RunPlanned {
			check, err := driftCheck(ctx, cl, cluster)
			if err != nil {
				return nil, err
			}
			if check.ID > run.ID {
				run, shown = check, append(shown, check.ID)
			}
		}
		if run.Status == holdfast.RunPlanned && format == "table" {
			_, _ = fmt.Fprintf(a.Out, "%s: the plan of %s (%s), made %s ago\n",
				cluster, run.ID, show.CountsText(run.Counts), table.ShortDuration(a.Now().Sub(run.FinishedAt)))
		}
	}
	return shown, nil
}

// newestEnded is the newest run of what the tracked branch says of a cluster, of those
// that have ended; the zero Run if there is none.
func newestEnded(ctx context.Context, cl *client.Client, cluster string) (v1.Run, error) {
	const enough = 200 // of which many may be plans of pull requests
	runs, err := cl.Runs(ctx, url.Values{"cluster": {cluster}, "limit": {strconv.Itoa(enough)}, "kind": {
		string(holdfast.RunPlan), string(holdfast.RunApply), string(holdfast.RunDestroy),
	}})
	if err != nil {
		return v1.Run{}, err
	}
	i := slices.IndexFunc(runs, func(r v1.Run) bool {
		return r.Cluster == cluster && r.PullRequest.IsZero() && r.Status.Done()
	})
	if i < 0 {
		return v1.Run{}, nil
	}
	return runs[i], nil
}

// driftCheck is the check that has found the drift of a cluster; the zero Run if it has
// none.
func driftCheck(ctx context.Context, cl *client.Client, cluster string) (v1.Run, error) {
	rec, err := cl.Cluster(ctx, cluster)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && rec.Drift.Status != holdfast.DriftFound {
		return v1.Run{}, nil
	} else if err != nil {
		return v1.Run{}, err
	}
	run, err := cl.Run(ctx, rec.Drift.Run)
	if errors.Is(err, holdfast.ErrNotFound) {
		return v1.Run{}, nil
	}
	return run, err
}
