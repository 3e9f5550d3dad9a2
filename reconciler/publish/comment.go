package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/report"
)

// progressInterval is how often a comment reports progress while its plans are being
// made. Between the first update and the last, the number of calls to the forge depends
// on time, never on how many clusters there are.
const progressInterval = 10 * time.Second

// showKey is a thing on a forge that people look at: a pull request, or a
// commit that was pushed to the tracked branch.
type showKey struct {
	pullRequest holdfast.PullRequestRef
	repo        string
	revision    holdfast.Revision
	left        bool // a cluster has left the commit: this matters only while its status waits
	calm        bool // left, and others had the time to follow
}

// repository is the repository of the comment or status: one keeps no other waiting.
func (k showKey) repository() string { return cmp.Or(k.repo, k.pullRequest.Repo) }

// Show asks for an update of a pull request's comment and statuses.
func (p *Publisher) Show(ref holdfast.PullRequestRef) {
	p.shows.Add(showKey{pullRequest: ref})
}

// Left asks for the status of a commit that a cluster has left to be ended, if it
// still waits.
func (p *Publisher) Left(repo string, revision holdfast.Revision) {
	p.shows.Add(showKey{repo: repo, revision: revision, left: true})
}

// Decided asks to update everything that a decision may have changed. In is what was
// decided about.
func (p *Publisher) Decided(ctx context.Context, in decision.Input) {
	if pr := in.PullRequest; pr != nil {
		p.Show(pr.PullRequestRef)
		return
	}
	p.Drifted(in.Cluster)
	for _, merge := range in.Merges {
		p.Show(merge.Review.PullRequest)
	}
	reviewed := false
	for _, review := range decision.Newest(in.Runs).Reviews {
		if !review.PullRequest.IsZero() {
			reviewed = true
			p.Show(review.PullRequest)
		}
	}
	if len(in.Merges) == 0 && len(in.Runs) > 0 && !reviewed && !p.pushShown(ctx, in) {
		rec, last := in.Cluster, decision.Newest(in.Runs).Revision
		left := last != rec.Desired.Revision || rec.Deletion != nil && rec.Deletion.To != ""
		p.shows.Add(showKey{repo: rec.Owner, revision: last, left: left})
	}
	if len(in.Merges) == 0 && in.Cluster.Waiting != "" {
		p.Waited(ctx, in.Cluster)
	}
}

// pushShown reports whether the status of the newest run's commit is final: no drift
// check changes it for a cluster that is as Git says and waits for nothing.
func (p *Publisher) pushShown(ctx context.Context, in decision.Input) bool {
	rec, last := in.Cluster, decision.Newest(in.Runs)
	if rec.Waiting != "" || !last.Status.Done() || rec.Desired.Removed || !decision.Desired(in).Equal(rec.Applied.SourceDigest) {
		return false
	}
	post, err := p.opts.Store.Post(ctx, statusKey(rec.Owner, last.Revision, holdfast.ContextApply))
	return err == nil && post.Status.State != holdfast.StatusPending && last.ID == rec.Applied.Run
}

// waitedWith is how many merges a cluster may have waited with, at most.
const waitedWith = 100

// Waited shows the merges that a cluster may have waited with, when it waits
// no longer and none of them is still to be applied.
func (p *Publisher) Waited(ctx context.Context, rec holdfast.ClusterRecord) {
	merged, err := p.opts.Store.MergesOf(ctx, rec.Owner, rec.Name, waitedWith)
	if err != nil {
		p.opts.Logger.WarnContext(ctx, "merged pull requests were not updated", "cluster", rec.Name, "err", err)
	}
	for _, number := range merged {
		p.Show(holdfast.PullRequestRef{Repo: rec.Owner, Number: number})
	}
}

// commentKey is the key of the comment of a pull request with its plans.
func commentKey(ref holdfast.PullRequestRef) string { return "comment:" + ref.String() }

func (p *Publisher) showOnce(ctx context.Context, key showKey) error {
	if key.pullRequest.IsZero() {
		return p.showPush(ctx, key)
	}
	if quiet, err := p.workingQuietly(ctx, key.pullRequest); quiet || err != nil {
		return err
	}
	pr, err := p.opts.Store.PullRequest(ctx, key.pullRequest)
	if errors.Is(err, holdfast.ErrNotFound) || pr.Damaged { // it is shown once it is on record
		return nil
	} else if err != nil {
		return fmt.Errorf("read pull request %s: %w", key.pullRequest, err)
	}
	return p.showPullRequest(ctx, pr)
}

// showPullRequest writes to the outbox what a pull request should show.
func (p *Publisher) showPullRequest(ctx context.Context, pr holdfast.PullRequestRecord) error {
	if err := p.endStatuses(ctx, pr); err != nil {
		return err
	}
	if pr.State == holdfast.PullRequestClosed {
		p.noteWork(pr.PullRequestRef, workLook{})
		return nil // what was said stays as it was
	}
	key := commentKey(pr.PullRequestRef)
	posted, err := p.opts.Store.Post(ctx, key)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read post %s: %w", key, err)
	}
	if quiet, err := p.planningQuietly(ctx, pr, posted); quiet || err != nil {
		return err
	}
	view, settled, err := p.view(ctx, pr)
	if errors.Is(err, errBehind) {
		p.shows.AddAfter(showKey{pullRequest: pr.PullRequestRef}, recordLook)
		return nil
	} else if err != nil {
		return err
	}
	if told, err := p.toldBefore(ctx, view, posted); told || err != nil {
		return err
	}
	if err := p.wantLabels(ctx, view); err != nil {
		return err
	}
	p.noteApplies(view)
	view.Had = posted.Wanted > 0
	plan := report.PlanStatus(view)
	open := pr.State == holdfast.PullRequestOpen
	turned, err := p.turned(ctx, view, plan)
	if err != nil {
		return err
	}
	news := settled || turned || open && plan.State != holdfast.StatusPending || posted.Wanted > 0 && posted.Head != pr.Head
	if !news && p.opts.Settings.Now().Sub(p.lastComment(pr.PullRequestRef)) < progressInterval {
		p.shows.AddAfter(showKey{pullRequest: pr.PullRequestRef}, progressInterval)
		return p.wantStatuses(ctx, view, plan, "", false)
	}
	body := report.Comment(view)
	if body == "" {
		return p.wantStatuses(ctx, view, plan, "", true)
	}
	p.commented(pr.PullRequestRef)
	post := outgoing.Post{Key: key, Kind: outgoing.PostComment, Repo: pr.Repo, PullRequest: pr.PullRequestRef, Body: body, Head: pr.Head}
	if post.Unshown = report.Unshown(view) != ""; !post.Unshown {
		post.Runs = shownRuns(view)
	}
	if !open || plan.State == holdfast.StatusPending {
		return p.wantStatuses(ctx, view, plan, "", true, post)
	}
	if err := p.want(ctx, post); err != nil {
		return err
	}
	// People who trust the status may merge as soon as it is there: its plans have to
	// be visible by then, and are not if the comment was refused.
	if posted, err = p.opts.Store.Post(ctx, key); err != nil {
		return fmt.Errorf("read post %s: %w", key, err)
	}
	if posted.GivenUp {
		return p.wantStatuses(ctx, view, report.UnseenStatus(view, posted.LastError), "", true)
	}
	return p.wantStatuses(ctx, view, plan, key, true)
}

// planningQuietly reports whether there is nothing to show yet: the comment says that
// plans of this head are being made, some still are, and the next update of the
// progress is not due. It looks at no cluster.
func (p *Publisher) planningQuietly(ctx context.Context, pr holdfast.PullRequestRecord, posted outgoing.Post) (bool, error) {
	said := p.lastComment(pr.PullRequestRef)
	due := p.opts.Settings.Now().Sub(said) >= progressInterval
	if due || pr.State != holdfast.PullRequestOpen || pr.Reason != "" || posted.Wanted > 0 && posted.Head != pr.Head {
		return false, nil
	}
	status, err := p.opts.Store.Post(ctx, statusKey(pr.Repo, pr.Head, holdfast.ContextPlan))
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("read status of %s: %w", pr.PullRequestRef, err)
	} else if err != nil || status.Status.State != holdfast.StatusPending {
		return false, nil
	}
	making, err := p.opts.Store.Runs(ctx, holdfast.RunFilter{
		PullRequest: &pr.PullRequestRef, Kinds: []holdfast.RunKind{holdfast.RunPlan}, Limit: 1,
		Statuses: []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRunning},
	})
	if err != nil {
		return false, fmt.Errorf("list runs of %s: %w", pr.PullRequestRef, err)
	}
	if len(making) == 0 {
		return false, nil
	}
	p.noteWork(pr.PullRequestRef, workLook{at: said, version: pr.Version, last: making[0].ID})
	p.shows.AddAfter(showKey{pullRequest: pr.PullRequestRef}, progressInterval)
	return true, nil
}

// workLook is what a look at a pull request found: that it is being planned or, merged, that
// it is being applied.
type workLook struct {
	at      time.Time // when that was said
	version int64     // of the record
	last    string    // the newest of its runs that have not ended; empty: there is none
}

// workingQuietly reports whether there is nothing to show yet: the comment says that the pull
// request is being planned or applied, the run that was then to end last has not ended, and
// the next update of the progress is not due. In a pull request that touches many clusters,
// each run that begins or ends comes by here: it decodes nothing.
func (p *Publisher) workingQuietly(ctx context.Context, ref holdfast.PullRequestRef) (bool, error) {
	p.mu.Lock()
	look, ok := p.working[ref]
	p.mu.Unlock()
	wait := progressInterval - p.opts.Settings.Now().Sub(look.at)
	if !ok || wait <= 0 {
		return false, nil
	}
	version, err := p.opts.Store.PullRequestVersion(ctx, ref)
	var last holdfast.RunBrief
	if err == nil && version == look.version {
		last, err = p.opts.Store.Brief(ctx, look.last)
	}
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("look for progress of %s: %w", ref, err)
	} else if err != nil || !beingDone(last.Status) {
		return false, nil
	}
	p.shows.AddAfter(showKey{pullRequest: ref}, wait)
	return true, nil
}

// beingDone reports whether a run continues without a wait that people should know of.
func beingDone(status holdfast.RunStatus) bool {
	return status == holdfast.RunQueued || status == holdfast.RunRunning
}

// noteApplies notes what a look at a pull request has found for workingQuietly.
func (p *Publisher) noteApplies(view report.PullRequest) {
	look := workLook{at: p.opts.Settings.Now(), version: view.PullRequest.Version}
	if status, ok := report.ApplyStatus(view); ok && report.InProgress(status) {
		for _, c := range view.Clusters {
			if c.Apply != nil && beingDone(c.Apply.Status) {
				look.last = max(look.last, c.Apply.ID)
			}
		}
	}
	p.noteWork(view.PullRequest.PullRequestRef, look)
}

func (p *Publisher) noteWork(ref holdfast.PullRequestRef, look workLook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if look.last == "" {
		delete(p.working, ref)
		return
	}
	p.working[ref] = look
}

// lastComment is when a comment last got new content, or when it was first asked to: a
// plan that is quick enough needs no progress update.
func (p *Publisher) lastComment(ref holdfast.PullRequestRef) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.lastCommentAt[ref]
	if !ok {
		at = p.noteComment(ref)
	}
	return at
}

func (p *Publisher) commented(ref holdfast.PullRequestRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteComment(ref)
}

// commentsKept bounds the pull requests for which the time of their comments' last new
// content is known.
const commentsKept = 4096

// noteComment notes that a comment gets new content now. It is called with mu.
func (p *Publisher) noteComment(ref holdfast.PullRequestRef) time.Time {
	if _, known := p.lastCommentAt[ref]; !known && len(p.lastCommentAt) >= commentsKept {
		clear(p.lastCommentAt) // at worst an update of the progress comes later
	}
	p.lastCommentAt[ref] = p.opts.Settings.Now()
	return p.lastCommentAt[ref]
}

// shownRuns are the runs whose plans a comment shows: none if the comment had to leave
// out something that nobody may overlook, as then none counts as reviewed, and none
// whose plan cannot be read.
func shownRuns(view report.PullRequest) []string {
	var out []string
	for _, c := range view.Clusters {
		if run := c.Plan; run != nil && run.Status.Done() && run.Failure != &lostPlan {
			out = append(out, run.ID)
		}
		if run := c.Apply; run != nil && run.Status.Done() && (c.Applied != nil || run.Status != holdfast.RunPlanned) {
			out = append(out, run.ID)
		}
	}
	return out
}
