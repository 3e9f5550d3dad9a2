package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// historyDepth is how many of a cluster's runs a decision looks back on.
const historyDepth = 50

// observe gathers what a decision about req depends on.
func (r *Reconciler) observe(ctx context.Context, req holdfast.Request) (Input, error) {
	in := Input{Now: r.opts.Now(), Request: req, MaxResumes: r.opts.MaxRetries, Backoff: r.opts.RetryDelay}
	rec, err := r.opts.Store.Cluster(ctx, req.Cluster)
	switch {
	case err == nil:
		in.Cluster = rec
	case errors.Is(err, holdfast.ErrNotFound) && !req.PullRequest.IsZero():
		// A pull request may define a cluster that no tracked branch has yet.
	default:
		return in, fmt.Errorf("read cluster %q: %w", req.Cluster, err)
	}
	branch, err := r.branchRuns(ctx, req.Cluster)
	if err != nil {
		return in, err
	}
	in.LastApply = lastBegun(branch)
	if req.PullRequest.IsZero() {
		in.Runs = branch
		open, change := templates.WindowsOpen(in.Cluster.Desired.Document.Apply.Windows, in.Now)
		in.WindowClosed, in.WindowChange = !open, change
		if rec.Desired.SourceDigest.Equal(rec.Applied.SourceDigest) && begun(in) == nil {
			return in, nil // nothing to apply, and nothing half done that was taken back
		}
		in.Merges, err = r.merges(ctx, in.Cluster, branch)
		return in, err
	}
	pr, err := r.opts.Store.PullRequest(ctx, req.PullRequest)
	if err != nil {
		return in, fmt.Errorf("read pull request %s: %w", req.PullRequest, err)
	}
	in.PullRequest = &pr
	in.Runs, err = r.pullRequestRuns(ctx, req.PullRequest, req.Cluster)
	return in, err
}

// branchRuns returns the newest runs of a cluster's tracked branch, without
// drift.
func (r *Reconciler) branchRuns(ctx context.Context, cluster string) ([]holdfast.Run, error) {
	runs, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{
		Cluster: cluster, PullRequest: &holdfast.PullRequestRef{}, Limit: historyDepth,
		Kinds: []holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply, holdfast.RunDestroy},
	})
	if err != nil {
		return nil, fmt.Errorf("list runs of %q: %w", cluster, err)
	}
	return runs, nil
}

func (r *Reconciler) pullRequestRuns(
	ctx context.Context, ref holdfast.PullRequestRef, cluster string,
) ([]holdfast.Run, error) {
	runs, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{
		Cluster: cluster, PullRequest: &ref, Limit: historyDepth,
	})
	if err != nil {
		return nil, fmt.Errorf("list runs of %q in %s: %w", cluster, ref, err)
	}
	return runs, nil
}

// merges returns the pull requests that brought the cluster from what was last
// applied to what is desired now, newest first, with what people had seen.
// Whether a merge is in the one and not in the other is asked of Git, by
// identity.
func (r *Reconciler) merges(ctx context.Context, rec holdfast.ClusterRecord, branch []holdfast.Run) ([]Merge, error) {
	repo, head := rec.Owner, rec.Desired.Revision
	if head == "" {
		return nil, nil
	}
	prs, err := r.opts.Store.PullRequests(ctx, holdfast.PullRequestFilter{
		Repo: repo, States: []holdfast.PullRequestState{holdfast.PullRequestMerged}, Cluster: rec.Name, Limit: 20,
	})
	if err != nil {
		return nil, fmt.Errorf("list merged pull requests of %q: %w", rec.Name, err)
	}
	used := usedReviews(branch)
	var out []Merge
	merged := make(map[int]time.Time)
	for _, pr := range prs {
		if pr.MergeCommit == "" || used[pr.PullRequestRef] {
			continue
		}
		in, err := r.opts.Git.IsAncestor(ctx, repo, pr.MergeCommit, head)
		if errors.Is(err, holdfast.ErrNotFound) {
			continue // a merge that a forced push has removed
		} else if err != nil {
			return nil, fmt.Errorf("look for %s in %s: %w", pr.PullRequestRef, head.Short(), err)
		}
		done := false
		if rec.Applied.Revision != "" {
			done, err = r.opts.Git.IsAncestor(ctx, repo, pr.MergeCommit, rec.Applied.Revision)
			if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
				return nil, fmt.Errorf("look for %s in %s: %w", pr.PullRequestRef, rec.Applied.Revision.Short(), err)
			}
		}
		if !in || done {
			continue
		}
		merge, err := r.merge(ctx, pr, rec.Name)
		if err != nil {
			return nil, err
		}
		out, merged[pr.Number] = append(out, merge), pr.MergedAt
	}
	slices.SortStableFunc(out, func(a, b Merge) int {
		return merged[b.Review.PullRequest.Number].Compare(merged[a.Review.PullRequest.Number])
	})
	return out, nil
}

// usedReviews are the pull requests that an apply stood for which has ended
// well. A branch that is forced back and forth brings them into the history
// again, and not what people have seen of them.
func usedReviews(branch []holdfast.Run) map[holdfast.PullRequestRef]bool {
	used := make(map[holdfast.PullRequestRef]bool)
	for _, run := range branch {
		if run.Kind != holdfast.RunApply || run.Status != holdfast.RunApplied && run.Status != holdfast.RunNoChanges {
			continue
		}
		for _, review := range run.Reviews {
			used[review.PullRequest] = true
		}
	}
	return used
}

// merge finds the plan of a merged pull request that was reviewed: the last
// plan of the merged head that was posted before the merge.
func (r *Reconciler) merge(ctx context.Context, pr holdfast.PullRequestRecord, cluster string) (Merge, error) {
	m := Merge{
		Review:    holdfast.Review{PullRequest: pr.PullRequestRef},
		Approved:  pr.Approved,
		Mergeable: pr.Mergeable,
	}
	for _, a := range pr.Approvals {
		m.Approved = m.Approved || a.Head == pr.Head
	}
	runs, err := r.pullRequestRuns(ctx, pr.PullRequestRef, cluster)
	if err != nil {
		return m, err
	}
	for _, run := range runs {
		if reviewedBy(run, pr) {
			m.Review.Run, m.Review.InputDigest, m.Review.Fingerprint = run.ID, run.InputDigest, run.Fingerprint
			break
		}
	}
	return m, nil
}

func reviewedBy(run holdfast.Run, pr holdfast.PullRequestRecord) bool {
	plan := run.Kind == holdfast.RunPlan && run.Revision == pr.Head &&
		(run.Status == holdfast.RunPlanned || run.Status == holdfast.RunNoChanges)
	return plan && !run.PostedAt.IsZero() && !run.PostedAt.After(pr.MergedAt)
}
