package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// progressInterval is how often a comment tells of progress while its plans
// are being made. Between the first word and the last, the number of calls to
// the forge depends on time, never on how many clusters there are.
const progressInterval = 10 * time.Second

// showKey is a thing on a forge that people look at: a pull request, or a
// commit that was pushed to the tracked branch.
type showKey struct {
	pullRequest holdfast.PullRequestRef
	repo        string
	revision    holdfast.Revision
}

// show asks for a pull request's comment and statuses to be made true.
func (r *Reconciler) show(ref holdfast.PullRequestRef) {
	r.shows.add(showKey{pullRequest: ref})
}

// publish asks for everything to be shown that a decision may have changed.
func (r *Reconciler) publish(ctx context.Context, in Input) {
	if pr := in.PullRequest; pr != nil {
		r.show(pr.PullRequestRef)
		return
	}
	for _, merge := range in.Merges {
		r.show(merge.Review.PullRequest)
	}
	for _, review := range newest(in.Runs).Reviews {
		if !review.PullRequest.IsZero() {
			r.show(review.PullRequest)
		}
	}
	if len(in.Merges) == 0 && len(in.Runs) > 0 {
		r.shows.add(showKey{repo: in.Cluster.Owner, revision: newest(in.Runs).Revision})
	}
	if len(in.Merges) == 0 && in.Cluster.Waiting != "" {
		r.showWaited(ctx, in.Cluster)
	}
}

// showWaited shows the merges that a cluster may have waited with, when it waits
// no longer and none of them is to be applied any more.
func (r *Reconciler) showWaited(ctx context.Context, rec holdfast.ClusterRecord) {
	prs, err := r.opts.Store.PullRequests(ctx, holdfast.PullRequestFilter{
		Repo: rec.Owner, States: []holdfast.PullRequestState{holdfast.PullRequestMerged}, Cluster: rec.Name, Limit: 20,
	})
	if err != nil {
		r.opts.Logger.WarnContext(ctx, "merged pull requests were not shown", "cluster", rec.Name, "err", err)
	}
	for _, pr := range prs {
		r.show(pr.PullRequestRef)
	}
}

func (r *Reconciler) showOnce(ctx context.Context, key showKey) error {
	if key.pullRequest.IsZero() {
		return r.showPush(ctx, key)
	}
	pr, err := r.opts.Store.PullRequest(ctx, key.pullRequest)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read pull request %s: %w", key.pullRequest, err)
	}
	return r.showPullRequest(ctx, pr)
}

// showPullRequest writes to the outbox what a pull request shall show.
func (r *Reconciler) showPullRequest(ctx context.Context, pr holdfast.PullRequestRecord) error {
	if pr.State == holdfast.PullRequestClosed {
		return r.closeStatus(ctx, pr) // what was said stays as it was
	}
	key := "comment:" + pr.String()
	posted, err := r.opts.Store.Post(ctx, key)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read post %s: %w", key, err)
	}
	if quiet, err := r.planningQuietly(ctx, pr, posted); quiet || err != nil {
		return err
	}
	view, settled, err := r.view(ctx, pr)
	if err != nil {
		return err
	}
	view.Had = posted.Wanted > 0
	if err := r.wantStatuses(ctx, view, settled); err != nil {
		return err
	}
	news := settled || posted.Wanted > 0 && posted.Head != pr.Head
	if !news && r.opts.Now().Sub(r.saidAt(pr.PullRequestRef)) < progressInterval {
		r.shows.addAfter(showKey{pullRequest: pr.PullRequestRef}, progressInterval)
		return nil
	}
	body := report.Comment(view)
	if body == "" {
		return nil
	}
	r.said(pr.PullRequestRef)
	return r.want(ctx, holdfast.Post{
		Key: key, Kind: holdfast.PostComment, Repo: pr.Repo, PullRequest: pr.PullRequestRef,
		Body: body, Runs: shownRuns(view), Head: pr.Head,
	})
}

// planningQuietly reports whether there is nothing to show yet: it was said that
// plans of this head are being made, some still are, and the next word of
// progress is not due. It looks at no cluster: of a pull request that touches
// many, each run that begins or ends comes by here.
func (r *Reconciler) planningQuietly(ctx context.Context, pr holdfast.PullRequestRecord, posted holdfast.Post) (bool, error) {
	due := r.opts.Now().Sub(r.saidAt(pr.PullRequestRef)) >= progressInterval
	if due || pr.State != holdfast.PullRequestOpen || pr.Reason != "" || posted.Wanted > 0 && posted.Head != pr.Head {
		return false, nil
	}
	status, err := r.opts.Store.Post(ctx, statusKey(pr.Repo, pr.Head, holdfast.ContextPlan))
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("read status of %s: %w", pr.PullRequestRef, err)
	} else if err != nil || status.Status.State != holdfast.StatusPending {
		return false, nil
	}
	making, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{
		PullRequest: &pr.PullRequestRef, Limit: 1,
		Statuses: []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRunning},
	})
	if err != nil {
		return false, fmt.Errorf("list runs of %s: %w", pr.PullRequestRef, err)
	}
	if len(making) == 0 {
		return false, nil
	}
	r.shows.addAfter(showKey{pullRequest: pr.PullRequestRef}, progressInterval)
	return true, nil
}

// closeStatus ends a status that was still pending when its pull request was
// closed.
func (r *Reconciler) closeStatus(ctx context.Context, pr holdfast.PullRequestRecord) error {
	key := statusKey(pr.Repo, pr.Head, holdfast.ContextPlan)
	post, err := r.opts.Store.Post(ctx, key)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && post.Status.State != holdfast.StatusPending {
		return nil
	} else if err != nil {
		return fmt.Errorf("read post %s: %w", key, err)
	}
	post.Status.State, post.Status.Description = holdfast.StatusError, "the pull request was closed before it was planned"
	return r.want(ctx, post)
}

func statusKey(repo string, revision holdfast.Revision, context string) string {
	return fmt.Sprintf("status:%s:%s:%s", repo, revision, context)
}

// saidAt is when a comment was last given something to say, or when it was
// first asked to: a plan that is quick enough needs no word of progress.
func (r *Reconciler) saidAt(ref holdfast.PullRequestRef) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.spoken[ref]
	if !ok {
		at = r.opts.Now()
		r.spoken[ref] = at
	}
	return at
}

func (r *Reconciler) said(ref holdfast.PullRequestRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spoken[ref] = r.opts.Now()
}

// wantStatuses sets a pending status once and a final one once.
func (r *Reconciler) wantStatuses(ctx context.Context, view report.PullRequest, settled bool) error {
	statuses := []holdfast.CommitStatus{report.PlanStatus(view)}
	if status, ok := report.ApplyStatus(view); ok {
		statuses = append(statuses, status)
	}
	for _, status := range statuses {
		if err := r.wantStatus(ctx, view.PullRequest.Repo, view.PullRequest.PullRequestRef, status, settled); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) wantStatus(
	ctx context.Context, repo string, ref holdfast.PullRequestRef, status holdfast.CommitStatus, settled bool,
) error {
	if status.Revision == "" {
		return nil
	}
	key := statusKey(repo, status.Revision, status.Context)
	if status.State == holdfast.StatusPending && !settled {
		before, err := r.opts.Store.Post(ctx, key)
		if err == nil && before.Status.State == holdfast.StatusPending {
			return nil // numbers of progress are not worth a call
		}
	}
	return r.want(ctx, holdfast.Post{
		Key: key, Kind: holdfast.PostStatus, Repo: repo, PullRequest: ref, Status: status,
	})
}

func (r *Reconciler) want(ctx context.Context, post holdfast.Post) error {
	if err := r.opts.Store.Want(ctx, post); err != nil {
		return fmt.Errorf("want %s: %w", post.Key, err)
	}
	r.wake(ctx, topicPosts)
	return nil
}

func shownRuns(view report.PullRequest) []string {
	var out []string
	for _, c := range view.Clusters {
		for _, run := range []*holdfast.Run{c.Plan, c.Apply} {
			if run != nil && run.Status.Done() {
				out = append(out, run.ID)
			}
		}
	}
	return out
}

// view gathers what a pull request's comment tells, and whether it is all there
// is to tell until somebody acts.
func (r *Reconciler) view(ctx context.Context, pr holdfast.PullRequestRecord) (report.PullRequest, bool, error) {
	view := report.PullRequest{PullRequest: pr, Now: r.opts.Now(), LogURL: r.opts.LogURL}
	settled := true
	for _, c := range pr.Clusters {
		rc := report.Cluster{Name: c.Name, Document: c.Document, Deleted: c.Deleted}
		if err := r.viewRelated(ctx, &rc, pr, &view); err != nil {
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
		if pr.State == holdfast.PullRequestMerged {
			if err := r.viewApply(ctx, &rc, pr); err != nil {
				return view, false, err
			}
		}
		settled = settled && settledCluster(pr, c, rc)
		view.Clusters = append(view.Clusters, rc)
	}
	return view, settled, nil
}

// replanned says why the newest plan has replaced another one of the same head;
// empty if it has not, or because somebody asked for it.
func (r *Reconciler) replanned(ctx context.Context, pr holdfast.PullRequestRecord, plans []holdfast.Run) string {
	if pr.State != holdfast.PullRequestOpen || len(plans) == 0 {
		return ""
	}
	now := plans[0]
	if now.Attempt == 0 && now.Reason == ReasonAppliedSince {
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
	case pr.State == holdfast.PullRequestMerged:
		return ended(rc.Apply) || rc.Waiting != ""
	case pr.Reason != "" || !c.Deleted && c.SourceDigest == "" || slices.Contains(unplannable, rc.Waiting):
		return true
	default:
		return ended(rc.Plan) && !rc.Previous
	}
}

// unplannable are the reasons why the destruction of a cluster is not planned.
var unplannable = []string{ReasonProtected, ReasonNeverApplied} //nolint:gochecknoglobals // a constant list

// viewRelated says of a cluster that a pull request removes why it would not be
// destroyed, and of another one what it has to wait for.
func (r *Reconciler) viewRelated(
	ctx context.Context, rc *report.Cluster, pr holdfast.PullRequestRecord, view *report.PullRequest,
) error {
	if pr.State != holdfast.PullRequestOpen {
		return nil
	}
	in := Input{Request: holdfast.Request{Cluster: rc.Name, PullRequest: pr.PullRequestRef}, PullRequest: &pr}
	rec, err := r.opts.Store.Cluster(ctx, rc.Name)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read cluster %q: %w", rc.Name, err)
	}
	in.Cluster = rec
	if !rc.Deleted {
		if err := r.observeProposal(ctx, &in); err != nil {
			return err
		}
		rc.Waiting, rc.WaitingDetail = held(in.Parents)
		return nil
	}
	branch, err := r.branchRuns(ctx, rc.Name)
	if err != nil {
		return err
	}
	if in.Last = lastApplied(rec, branch); in.Last.Run == "" {
		rc.Waiting = ReasonNeverApplied
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
	rc.Waiting, rc.WaitingDetail = spared(in)
	if rc.Waiting == ReasonMassDeletion {
		view.Notices = appendNew(view.Notices, "after the merge each destroy waits for a person's word: "+rc.WaitingDetail)
		rc.Waiting, rc.WaitingDetail = "", ""
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

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// viewPlan shows the newest plan; while that is being made, the one before.
func (r *Reconciler) viewPlan(ctx context.Context, rc *report.Cluster, plans []holdfast.Run) error {
	if len(plans) == 0 {
		return nil
	}
	rc.Plan = &plans[0]
	if plans[0].Status == holdfast.RunInterrupted && deaths(plans) > r.opts.MaxRetries {
		rc.Waiting = ReasonPlanFailed // it is not made again: see again
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
		ahead := other.Status == holdfast.RunRunning || other.Kind.Writes() || other.ID < run.ID
		if other.ID == run.ID || !ahead {
			continue
		}
		rc.Queue++
		if other.Status == holdfast.RunRunning {
			rc.Waiting, rc.WaitingDetail = ReasonLocked, holder(other)
		}
	}
	return nil
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
		rc.Apply = &runs[i]
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
		rc.Apply, rc.Waiting, rc.WaitingDetail = nil, ReasonUpToDate, ""
	}
	return err
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

// showPush writes the status of a commit that came to the tracked branch
// without a pull request.
func (r *Reconciler) showPush(ctx context.Context, key showKey) error {
	records, err := r.opts.Store.Clusters(ctx, holdfast.ClusterFilter{Owner: key.repo})
	if err != nil {
		return fmt.Errorf("list clusters of %q: %w", key.repo, err)
	}
	var clusters []report.Cluster
	settled, wanted := true, false
	for _, rec := range records {
		if rec.Desired.Revision != key.revision {
			continue
		}
		wanted = true
		runs, err := r.branchRuns(ctx, rec.Name)
		if err != nil {
			return err
		}
		rc := report.Cluster{Name: rec.Name, Document: rec.Desired.Document, Waiting: rec.Waiting}
		for i, run := range runs {
			// An approved apply has the plan that was seen for a review, of no
			// pull request.
			merged := slices.ContainsFunc(run.Reviews, func(v holdfast.Review) bool { return !v.PullRequest.IsZero() })
			if run.Revision == key.revision && !merged {
				rc.Apply = &runs[i]
				settled = settled && run.Status.Done()
				break
			}
		}
		if rc.Apply != nil {
			clusters = append(clusters, rc)
		}
	}
	switch {
	case !wanted:
		return r.supersededPush(ctx, key)
	case len(clusters) == 0:
		return nil
	}
	return r.wantStatus(ctx, key.repo, holdfast.PullRequestRef{}, report.PushStatus(key.revision, clusters), settled)
}

// supersededPush ends the status of a push that still waited when others took
// its place: nobody will apply just that any more.
func (r *Reconciler) supersededPush(ctx context.Context, key showKey) error {
	post, err := r.opts.Store.Post(ctx, statusKey(key.repo, key.revision, holdfast.ContextApply))
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read status of %s: %w", key.revision.Short(), err)
	case post.Status.State != holdfast.StatusPending || !post.PullRequest.IsZero():
		return nil
	}
	status := post.Status
	status.State, status.Description = holdfast.StatusFailure, "not applied: a later commit took its place"
	return r.wantStatus(ctx, key.repo, holdfast.PullRequestRef{}, status, true)
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
