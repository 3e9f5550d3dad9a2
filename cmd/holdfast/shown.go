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
// newest ones of what is confirmed: an apply of what somebody else has planned or merged
// since is refused.
func (a *app) lookAtPlans(ctx context.Context, cl *client.Client, clusters []string, format string) ([]string, error) {
	var shown []string
	for _, cluster := range clusters {
		run, err := newestEnded(ctx, cl, cluster)
		if err != nil {
			return nil, err
		}
		rec, err := cl.Cluster(ctx, cluster)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, err
		}
		if merged, err := mergedPlan(ctx, cl, rec, run); err != nil {
			return nil, err
		} else if merged.ID != "" {
			run = merged
		}
		if run.ID != "" {
			shown = append(shown, run.ID)
		}
		if run.Status != holdfast.RunPlanned && run.PullRequest.IsZero() {
			check, err := driftCheck(ctx, cl, rec)
			if err != nil {
				return nil, err
			}
			if check.ID > run.ID {
				run, shown = check, append(shown, check.ID)
			}
		}
		if run.Status == holdfast.RunPlanned && format == "table" {
			of := ""
			if !run.PullRequest.IsZero() {
				of = " of " + holdfast.PullRequestRef(run.PullRequest).String()
			}
			_, _ = fmt.Fprintf(a.Out, "%s: the plan of %s%s (%s), made %s ago\n",
				cluster, run.ID, of, show.CountsText(run.Counts), table.ShortDuration(a.Now().Sub(run.FinishedAt)))
		}
	}
	return shown, nil
}

// mergedPlan is the reviewed plan of the newest pull request whose merge a cluster waits
// with; the zero Run if it has none, or if somebody has planned the cluster since: last
// is the newest run of its branch.
func mergedPlan(ctx context.Context, cl *client.Client, rec v1.Cluster, last v1.Run) (v1.Run, error) {
	if rec.Waiting == "" || rec.Drift.Hold != "" {
		return v1.Run{}, nil
	}
	const enough = 20
	prs, err := cl.PullRequests(ctx, url.Values{
		"cluster": {rec.Name}, "repo": {rec.Owner}, "state": {string(holdfast.PullRequestMerged)}, "limit": {strconv.Itoa(enough)},
	})
	if err != nil {
		return v1.Run{}, err
	}
	slices.SortStableFunc(prs, func(a, b v1.PullRequest) int { return b.MergedAt.Compare(a.MergedAt) })
	for _, pr := range prs {
		runs, err := cl.Runs(ctx, url.Values{
			"cluster": {rec.Name}, "repo": {pr.Repo}, "number": {strconv.Itoa(pr.Number)}, "kind": {string(holdfast.RunPlan)},
		})
		if err != nil {
			return v1.Run{}, err
		}
		for _, run := range runs {
			if !reviewedIn(run, pr) {
				continue
			}
			if run.ID <= rec.Applied.Run {
				return v1.Run{}, nil // it is applied, and so are those before it
			}
			asked := last.Kind != holdfast.RunPlan || last.Actor != "" || len(last.Reviews) > 0
			if asked && last.Status == holdfast.RunPlanned && last.CreatedAt.After(pr.MergedAt) {
				return v1.Run{}, nil
			}
			return run, nil
		}
	}
	return v1.Run{}, nil
}

// reviewedIn reports whether a run is a plan that people could see when they merged.
func reviewedIn(run v1.Run, pr v1.PullRequest) bool {
	return run.PullRequest == (v1.PullRequestRef{Repo: pr.Repo, Number: pr.Number}) && run.Revision == pr.Head &&
		run.Kind == holdfast.RunPlan && !run.Sample && run.Status.Good() &&
		!run.PostedAt.IsZero() && !run.PostedAt.After(pr.MergedAt)
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
func driftCheck(ctx context.Context, cl *client.Client, rec v1.Cluster) (v1.Run, error) {
	if rec.Drift.Status != holdfast.DriftFound {
		return v1.Run{}, nil
	}
	run, err := cl.Run(ctx, rec.Drift.Run)
	if errors.Is(err, holdfast.ErrNotFound) {
		return v1.Run{}, nil
	}
	return run, err
}
