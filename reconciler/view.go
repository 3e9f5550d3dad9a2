package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/report"
)

// view gathers what a pull request's comment tells, and whether it is all there
// is to tell until somebody acts.
func (r *Reconciler) view(ctx context.Context, pr holdfast.PullRequestRecord) (report.PullRequest, bool, error) {
	view := report.PullRequest{PullRequest: pr, Now: r.opts.Now(), LogURL: r.opts.LogURL}
	settled := true
	for _, c := range pr.Clusters {
		rc := report.Cluster{Name: c.Name, Document: c.Document, Deleted: c.Deleted, Trial: c.Trial}
		if err := r.viewRelated(ctx, &rc, pr); err != nil {
			return view, false, err
		}
		plans, err := r.pullRequestRuns(ctx, pr.PullRequestRef, c.Name)
		if err != nil {
			return view, false, err
		}
		if err := r.viewPlan(ctx, &rc, plans); err != nil {
			return view, false, err
		}
		if why := r.replanned(ctx, pr, plans); why != "" {
			view.Notices = append(view.Notices, "planned again: "+why)
		}
		if pr.State == holdfast.PullRequestMerged && !c.Trial {
			if err := r.viewApply(ctx, &rc, pr); err != nil {
				return view, false, err
			}
		}
		settled = settled && settledCluster(pr, c, rc)
		view.Clusters = append(view.Clusters, rc)
	}
	var err error
	view.Impacts, err = r.viewImpacts(ctx, pr)
	return view, settled, err
}

// viewImpacts shows what changes of templates would do; their samples are among
// the pull request's clusters.
func (r *Reconciler) viewImpacts(ctx context.Context, pr holdfast.PullRequestRecord) ([]report.Impact, error) {
	if len(r.repos[pr.Repo].Templates) == 0 {
		return nil, nil
	}
	impacts, err := r.opts.Store.Impacts(ctx, pr.PullRequestRef)
	if err != nil {
		return nil, fmt.Errorf("read impact of %s: %w", pr.PullRequestRef, err)
	}
	trial, own := make(map[string]bool), make(map[string]bool)
	for _, c := range pr.Clusters {
		trial[c.Name], own[c.Name] = c.Trial, true
	}
	var out []report.Impact
	for _, impact := range impacts {
		shown := report.Impact{Impact: impact, All: true}
		for _, g := range impact.Groups {
			n := 0
			for _, c := range g.Clusters {
				if trial[c.Name] || own[c.Name] && c.Reach == holdfast.ReachMerge {
					n++
				}
			}
			if n == 0 {
				shown.Over += len(g.Clusters)
			}
			shown.All = shown.All && n == len(g.Clusters)
		}
		out = append(out, shown)
	}
	return out, nil
}

// replanned says why the newest plan has replaced another one of the same head;
// empty if it has not, or because somebody asked for it.
func (r *Reconciler) replanned(ctx context.Context, pr holdfast.PullRequestRecord, plans []holdfast.Run) string {
	if pr.State != holdfast.PullRequestOpen || len(plans) == 0 {
		return ""
	}
	now := plans[0]
	if now.Attempt == 0 && now.Reason == decision.ReasonAppliedSince {
		return now.Detail
	}
	i := slices.IndexFunc(plans[1:], func(run holdfast.Run) bool {
		return run.Revision == now.Revision && run.Status.Good()
	})
	if i < 0 || now.Attempt == 0 {
		return ""
	}
	switch before := plans[1+i]; {
	case now.AppliedRun != before.AppliedRun && now.AppliedRun != "":
		return r.explainApply(ctx, now.AppliedRun)
	case !now.SourceDigest.Equal(before.SourceDigest):
		return fmt.Sprintf("%s was changed on %s meanwhile", now.Cluster, pr.BaseBranch)
	case now.StateSerial != before.StateSerial:
		return fmt.Sprintf("the state of %s was changed meanwhile", now.Cluster)
	default:
		return ""
	}
}

// settledCluster reports whether nothing more will happen to what is shown of a
// cluster by itself, soon.
func settledCluster(pr holdfast.PullRequestRecord, c holdfast.PullRequestCluster, rc report.Cluster) bool {
	retrying := func(run *holdfast.Run) bool { return run.Status == holdfast.RunRetrying }
	ended := func(run *holdfast.Run) bool { return run != nil && (run.Status.Done() || retrying(run)) }
	switch {
	case pr.State == holdfast.PullRequestMerged && rc.Trial:
		return true
	case pr.State == holdfast.PullRequestMerged:
		return ended(rc.Apply) || rc.Waiting != ""
	case pr.Reason != "" || !c.Deleted && c.SourceDigest == "" || slices.Contains(unplannable, rc.Waiting):
		return true
	default:
		return ended(rc.Plan) && !rc.Previous
	}
}

// unplannable are the reasons why the destruction of a cluster is not planned.
var unplannable = []string{decision.ReasonProtected, decision.ReasonNeverApplied} //nolint:gochecknoglobals // a constant list

// viewRelated says of a cluster that a pull request removes why it would not be
// destroyed, and of another one what it has to wait for.
func (r *Reconciler) viewRelated(ctx context.Context, rc *report.Cluster, pr holdfast.PullRequestRecord) error {
	if pr.State != holdfast.PullRequestOpen || rc.Trial {
		return nil
	}
	in := decision.Input{Request: holdfast.Request{Cluster: rc.Name, PullRequest: pr.PullRequestRef}, PullRequest: &pr}
	rec, err := r.opts.Store.Cluster(ctx, rc.Name)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read cluster %q: %w", rc.Name, err)
	}
	in.Cluster = rec
	if !rc.Deleted {
		if rec.Applied.Run != "" {
			rc.Document.RenamedFrom = "" // it goes on under the new name already
		}
		if err := r.observeProposal(ctx, &in); err != nil {
			return err
		}
		rc.Waiting, rc.WaitingDetail = decision.Held(in.Parents)
		return nil
	}
	branch, err := r.branchRuns(ctx, rc.Name)
	if err != nil {
		return err
	}
	if in.Last = lastApplied(rec, branch); in.Last.Run == "" {
		rc.Waiting = decision.ReasonNeverApplied
		return nil
	}
	if in.Dependents, err = r.dependents(ctx, rc.Name); err != nil {
		return err
	}
	goes := func(d holdfast.Relation) bool { return slices.ContainsFunc(pr.Clusters, deletes(d.Name)) }
	in.Dependents = slices.DeleteFunc(in.Dependents, goes) // the same merge removes them, too
	if in.Removals, in.Fleet, err = r.removals(ctx, pr); err != nil {
		return err
	}
	rc.Waiting, rc.WaitingDetail = decision.Spared(in)
	if rc.Waiting != decision.ReasonProtected && in.Removals > 1 && in.Removals >= in.Fleet {
		rc.Waiting = decision.ReasonMissing // as it will be said after the merge
		rc.WaitingDetail = fmt.Sprintf("branch %q would define none of %d clusters any more, which proves nothing: "+
			"keep one, and remove that in another pull request", pr.BaseBranch, in.Fleet)
	}
	return nil
}

func deletes(name string) func(holdfast.PullRequestCluster) bool {
	return func(c holdfast.PullRequestCluster) bool { return c.Name == name && c.Deleted }
}

// removals counts the clusters that a pull request removes, and those that its
// repository has.
func (r *Reconciler) removals(ctx context.Context, pr holdfast.PullRequestRecord) (removed, fleet int, err error) {
	for _, c := range pr.Clusters {
		if c.Deleted {
			removed++
		}
	}
	fleet, err = r.opts.Store.CountClusters(ctx, holdfast.ClusterFilter{Owner: pr.Repo})
	if err != nil {
		return 0, 0, fmt.Errorf("count clusters of %q: %w", pr.Repo, err)
	}
	return removed, fleet, nil
}

// viewPlan shows the newest plan; while that is being made, the one before.
func (r *Reconciler) viewPlan(ctx context.Context, rc *report.Cluster, plans []holdfast.Run) error {
	if len(plans) == 0 {
		return nil
	}
	rc.Plan = &plans[0]
	if plans[0].Status == holdfast.RunInterrupted && decision.Deaths(plans) > r.opts.MaxRetries {
		rc.Waiting = decision.ReasonPlanFailed // it is not made again: see again
	}
	shown := slices.IndexFunc(plans, func(run holdfast.Run) bool {
		return run.Status == holdfast.RunPlanned || run.Status == holdfast.RunNoChanges
	})
	if shown > 0 && plans[0].Status.Done() && plans[0].Status != holdfast.RunCanceled {
		shown = -1 // it failed: what was planned before is no news
	}
	if shown < 0 {
		return r.viewQueue(ctx, rc, plans[0])
	}
	summary, err := r.cachedSummary(ctx, plans[shown].ID)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return err
	}
	if err == nil {
		rc.Summary, rc.Previous = summary, shown > 0
	}
	return r.viewQueue(ctx, rc, plans[0])
}

// viewQueue says for whom a run that is not executed yet waits.
func (r *Reconciler) viewQueue(ctx context.Context, rc *report.Cluster, run holdfast.Run) error {
	if !run.Status.Pending() {
		return nil
	}
	others, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{
		Cluster:  run.Cluster,
		Statuses: []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRunning, holdfast.RunRetrying},
	})
	if err != nil {
		return fmt.Errorf("list runs of %q: %w", run.Cluster, err)
	}
	for _, other := range others {
		ahead := other.Status == holdfast.RunRunning || other.Kind.Writes() ||
			other.ID < run.ID && other.Kind != holdfast.RunDrift
		if other.ID == run.ID || !ahead {
			continue
		}
		rc.Queue++
		if other.Status == holdfast.RunRunning {
			rc.Waiting, rc.WaitingDetail = decision.ReasonLocked, holder(other)
		}
	}
	if rc.Waiting == "" {
		rc.Waiting, rc.WaitingDetail, err = r.providerWait(ctx, run.Document.Provider)
	}
	return err
}

func holder(run holdfast.Run) string {
	if run.PullRequest.IsZero() {
		return fmt.Sprintf("%s (%s) since %s UTC", run.ID, run.Kind, run.StartedAt.UTC().Format(time.TimeOnly))
	}
	return fmt.Sprintf("the %s of #%d since %s UTC", run.Kind, run.PullRequest.Number, run.StartedAt.UTC().Format(time.TimeOnly))
}

// viewApply shows what became of a merged pull request on the tracked branch.
func (r *Reconciler) viewApply(ctx context.Context, rc *report.Cluster, pr holdfast.PullRequestRecord) error {
	runs, err := r.branchRuns(ctx, rc.Name)
	if err != nil {
		return err
	}
	for i, run := range runs {
		if !slices.ContainsFunc(run.Reviews, func(v holdfast.Review) bool { return v.PullRequest == pr.PullRequestRef }) {
			continue
		}
		rc.Apply, rc.Failed = &runs[i], failedBefore(runs[i:])
		summary, err := r.cachedSummary(ctx, run.ID)
		if err == nil {
			rc.Applied = summary
		} else if !errors.Is(err, holdfast.ErrNotFound) {
			return err
		}
		break
	}
	if rc.Apply != nil {
		if err := r.viewQueue(ctx, rc, *rc.Apply); err != nil {
			return err
		}
	}
	rec, err := r.opts.Store.Cluster(ctx, rc.Name)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read cluster %q: %w", rc.Name, err)
	}
	if rec.Ending != nil && rc.Deleted && rc.Apply == nil {
		rc.Waiting = rec.Ending.Reason
		return nil
	}
	// Once something is applied that includes this merge, later waits are not
	// this pull request's.
	if rec.Waiting != "" && (rc.Apply == nil || rc.Apply.ID > rec.Applied.Run) {
		rc.Waiting, rc.WaitingDetail = rec.Waiting, rec.WaitingDetail
	}
	if rc.Apply != nil && rc.Apply.Status != holdfast.RunCanceled {
		return nil
	}
	obsolete, err := r.nothingLeft(ctx, rec, pr)
	if obsolete {
		rc.Apply, rc.Failed, rc.Waiting, rc.WaitingDetail = nil, nil, decision.ReasonUpToDate, ""
	}
	return err
}

// failedBefore returns the run that failed in the middle, if the newest one is
// the plan of what it has left; nil if there is none.
func failedBefore(runs []holdfast.Run) *holdfast.Run {
	if runs[0].Kind != holdfast.RunPlan {
		return nil
	}
	i := slices.IndexFunc(runs, func(run holdfast.Run) bool { return run.Kind.Writes() })
	if i < 0 || !runs[i].Begun || runs[i].Failure == nil {
		return nil
	}
	return &runs[i]
}

// nothingLeft reports whether a merge is in what the branch desires of a
// cluster, and that is what is applied: it was undone before its apply began, or
// somebody else had brought the same.
func (r *Reconciler) nothingLeft(ctx context.Context, rec holdfast.ClusterRecord, pr holdfast.PullRequestRecord) (bool, error) {
	if rec.Waiting != "" || rec.Desired.Removed || !rec.Desired.SourceDigest.Equal(rec.Applied.SourceDigest) {
		return false, nil
	}
	source, err := r.opts.Store.Source(ctx, pr.Repo)
	if err != nil {
		return false, fmt.Errorf("read source %q: %w", pr.Repo, err)
	}
	in, err := r.opts.Git.IsAncestor(ctx, pr.Repo, pr.MergeCommit, source.Head)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("look for %s in %s: %w", pr.PullRequestRef, source.Head.Short(), err)
	}
	return in, nil
}

// cachedSummary is summary for runs that have ended: their plans do not change.
func (r *Reconciler) cachedSummary(ctx context.Context, run string) (*holdfast.Plan, error) {
	r.mu.Lock()
	plan := r.summaries[run]
	r.mu.Unlock()
	if plan != nil {
		return plan, nil
	}
	read, err := r.summary(ctx, run)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.summaries) >= summariesKept {
		clear(r.summaries) // simpler than an order of use, and as good at this size
	}
	r.summaries[run] = &read
	return &read, nil
}

// summariesKept bounds the plans that are kept for comments in the making.
const summariesKept = 256
