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
	left        bool // a cluster has left the commit: of interest only while its status waits
}

// show asks for a pull request's comment and statuses to be made true.
func (r *Reconciler) show(ref holdfast.PullRequestRef) {
	r.shows.Add(showKey{pullRequest: ref})
}

// publish asks for everything to be shown that a decision may have changed.
func (r *Reconciler) publish(ctx context.Context, in decision.Input) {
	if pr := in.PullRequest; pr != nil {
		r.show(pr.PullRequestRef)
		return
	}
	r.tell(in.Cluster)
	for _, merge := range in.Merges {
		r.show(merge.Review.PullRequest)
	}
	for _, review := range decision.Newest(in.Runs).Reviews {
		if !review.PullRequest.IsZero() {
			r.show(review.PullRequest)
		}
	}
	if len(in.Merges) == 0 && len(in.Runs) > 0 && !r.pushShown(ctx, in) {
		rec, last := in.Cluster, decision.Newest(in.Runs).Revision
		left := last != rec.Desired.Revision || rec.Ending != nil && rec.Ending.To != ""
		r.shows.Add(showKey{repo: rec.Owner, revision: last, left: left})
	}
	if len(in.Merges) == 0 && in.Cluster.Waiting != "" {
		r.showWaited(ctx, in.Cluster)
	}
}

// pushShown reports whether the newest run's commit has its last word: of a
// cluster that is as Git says, and waits for nothing, no check for drift brings
// it another one.
func (r *Reconciler) pushShown(ctx context.Context, in decision.Input) bool {
	rec, last := in.Cluster, decision.Newest(in.Runs)
	if rec.Waiting != "" || !last.Status.Done() || rec.Desired.Removed || !decision.Desired(in).Equal(rec.Applied.SourceDigest) {
		return false
	}
	post, err := r.opts.Store.Post(ctx, statusKey(rec.Owner, last.Revision, holdfast.ContextApply))
	return err == nil && post.Status.State != holdfast.StatusPending && last.ID == rec.Applied.Run
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
		r.shows.AddAfter(showKey{pullRequest: pr.PullRequestRef}, progressInterval)
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
	r.shows.AddAfter(showKey{pullRequest: pr.PullRequestRef}, progressInterval)
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

// With more than pushQuick clusters that a commit has brought, its status is
// looked at in a rhythm: at most each progressInterval, and for a tenth of the
// time.
const pushQuick = 100

// pushLook is when the status of a commit was looked at last, and how long that
// took.
type pushLook struct {
	at   time.Time
	took time.Duration
}

// showPush writes the status of a commit that came to the tracked branch
// without a pull request.
func (r *Reconciler) showPush(ctx context.Context, key showKey) error {
	post, err := r.opts.Store.Post(ctx, statusKey(key.repo, key.revision, holdfast.ContextApply))
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read status of %s: %w", key.revision.Short(), err)
	}
	waits := err == nil && post.Status.State == holdfast.StatusPending
	if key.left && !waits {
		return nil // it has its last word, or never had one to say
	}
	names, err := r.opts.Store.ClusterNames(ctx, holdfast.ClusterFilter{Owner: key.repo, Revision: key.revision, Deleted: true})
	if err != nil {
		return fmt.Errorf("list clusters of %q: %w", key.repo, err)
	}
	if len(names) == 0 && waits && post.PullRequest.IsZero() {
		return r.supersededPush(ctx, key, post)
	}
	if len(names) > pushQuick {
		if wait := r.pushWait(key); wait > 0 {
			r.shows.AddAfter(key, wait)
			return nil
		}
		began := time.Now()
		defer func() { r.pushLooked(key, time.Since(began)) }()
	}
	clusters, settled, err := r.pushed(ctx, key, names)
	if err != nil || len(clusters) == 0 {
		return err
	}
	return r.wantStatus(ctx, key.repo, holdfast.PullRequestRef{}, report.PushStatus(key.revision, clusters), settled)
}

// pushed returns what became of clusters with a commit, and whether that is all
// there is to tell until somebody acts.
func (r *Reconciler) pushed(ctx context.Context, key showKey, names []string) (clusters []report.Cluster, settled bool, err error) {
	settled = true
	for some := range slices.Chunk(names, recordsAtOnce) {
		records, err := r.records(ctx, some)
		if err != nil {
			return nil, false, err
		}
		for _, name := range some {
			rec := records[name]
			if rec.Desired.Revision != key.revision {
				continue
			}
			runs, err := r.branchRuns(ctx, name)
			if err != nil {
				return nil, false, err
			}
			i := slices.IndexFunc(runs, func(run holdfast.Run) bool {
				// An approved apply has the plan that was seen for a review, of no
				// pull request.
				merged := slices.ContainsFunc(run.Reviews, func(v holdfast.Review) bool { return !v.PullRequest.IsZero() })
				return run.Revision == key.revision && !merged && !decision.IsRemedy(run)
			})
			if i >= 0 {
				run := runs[i]
				settled = settled && run.Status.Done()
				clusters = append(clusters, report.Cluster{Name: name, Document: rec.Desired.Document, Waiting: rec.Waiting, Apply: &run})
			}
		}
	}
	return clusters, settled, nil
}

// pushWait is how long to wait before a commit's status is looked at.
func (r *Reconciler) pushWait(key showKey) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.looked[key]
	if !ok {
		return 0
	}
	return max(progressInterval, 10*last.took) - time.Since(last.at)
}

func (r *Reconciler) pushLooked(key showKey, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.looked) >= looksKept {
		clear(r.looked) // the worst that can come of it is a look too early
	}
	r.looked[key] = pushLook{at: time.Now(), took: took}
}

const looksKept = 256

// supersededPush ends the status of a push that still waited when others took
// its place: nobody will apply just that any more.
func (r *Reconciler) supersededPush(ctx context.Context, key showKey, post holdfast.Post) error {
	status := post.Status
	status.State, status.Description = holdfast.StatusFailure, "not applied: a later commit took its place"
	return r.wantStatus(ctx, key.repo, holdfast.PullRequestRef{}, status, true)
}
