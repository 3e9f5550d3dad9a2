package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/report"
)

// wantStatuses sets the statuses of a pull request: that of its plan, once after is
// posted, and that of its apply. Told says that the comment shows the same; if the
// comment is passed, it is wanted with them in one transaction.
func (p *Publisher) wantStatuses(
	ctx context.Context, view report.PullRequest, plan holdfast.CommitStatus, after string, told bool, comment ...outgoing.Post,
) error {
	pr := view.PullRequest
	posts := slices.Concat(comment, p.statusPosts(ctx,
		outgoing.Post{Repo: pr.Repo, PullRequest: pr.PullRequestRef, Status: plan, After: after}, told))
	if apply, ok := report.ApplyStatus(view); ok {
		posts = append(posts, p.statusPosts(ctx, outgoing.Post{Repo: pr.Repo, PullRequest: pr.PullRequestRef, Status: apply}, told)...)
	}
	if p.opts.Settings.PolicyStatus && pr.State == holdfast.PullRequestOpen {
		of := outgoing.Post{Repo: pr.Repo, PullRequest: pr.PullRequestRef, Status: report.PolicyStatus(view), After: after}
		posts = append(posts, p.statusPosts(ctx, of, told)...)
	}
	err := p.want(ctx, posts...)
	if err == nil && pr.State == holdfast.PullRequestOpen {
		err = p.wantCheck(ctx, view)
	}
	return err
}

// wantCheck shows the faults of a pull request's documents at their lines, on forges
// that can, and takes them back when they are mended without another head.
func (p *Publisher) wantCheck(ctx context.Context, view report.PullRequest) error {
	pr := view.PullRequest
	if _, can := p.opts.Forges[pr.Repo].(Checker); !can {
		return nil
	}
	key := fmt.Sprintf("check:%s:%s", pr.Repo, pr.Head)
	before, err := p.opts.Store.Post(ctx, key)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read %s: %w", key, err)
	}
	if len(pr.Faults) == 0 && len(before.Faults) == 0 {
		return nil // there are none to be shown or taken back
	}
	if view, err = p.withHeadFaults(ctx, view); err != nil {
		return err
	}
	status, faults := report.FaultsCheck(view)
	return p.want(ctx, outgoing.Post{Key: key, Kind: outgoing.PostCheck, Repo: pr.Repo, PullRequest: pr.PullRequestRef, Status: status, Faults: faults})
}

// withHeadFaults returns view with the faults of every open pull request that has its head,
// and the link of the first one: a check run is of a commit, and says the same whichever
// of them is shown.
func (p *Publisher) withHeadFaults(ctx context.Context, view report.PullRequest) (report.PullRequest, error) {
	open, err := p.openAt(ctx, view.PullRequest.Repo, view.PullRequest.Head)
	if err != nil || len(open) < 2 {
		return view, err
	}
	view.PullRequest.Faults = nil
	for _, pr := range open {
		view.PullRequest.Faults = append(view.PullRequest.Faults, pr.Faults...)
	}
	if link := p.opts.Settings.PullRequestURL; link != nil {
		view.URL = link(open[0].PullRequestRef)
	}
	return view, nil
}

// HeadLeft updates the check run of a head that a pull request had while it was open, if
// that shows faults of its own: an open one that has the same head is shown. Before is its
// record of then.
func (p *Publisher) HeadLeft(ctx context.Context, before holdfast.PullRequestRecord) {
	if _, can := p.opts.Forges[before.Repo].(Checker); !can || len(before.Faults) == 0 {
		return
	}
	open, err := p.openAt(ctx, before.Repo, before.Head)
	if err != nil {
		p.opts.Logger.WarnContext(ctx, "pull requests of the same head were not updated", "pull_request", before.String(), "err", err)
	}
	if len(open) > 0 { // each would show the same
		p.Show(open[0].PullRequestRef)
	}
}

// turned reports whether a status said that nothing more would happen automatically,
// and something does: people who wait for a person have to see that at once.
func (p *Publisher) turned(ctx context.Context, view report.PullRequest, plan holdfast.CommitStatus) (bool, error) {
	now := plan
	if apply, ok := report.ApplyStatus(view); ok {
		now = apply
	}
	if !report.InProgress(now) {
		return false, nil
	}
	before, err := p.opts.Store.Post(ctx, statusKey(view.PullRequest.Repo, now.Revision, now.Context))
	if errors.Is(err, holdfast.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read status of %s: %w", view.PullRequest.PullRequestRef, err)
	}
	return !report.InProgress(before.Status), nil
}

// toldBefore reports whether a merge was said to be applied, and records no longer say by
// which run: they are kept for a shorter time than pull requests. It stays as it was
// shown.
func (p *Publisher) toldBefore(ctx context.Context, view report.PullRequest, posted outgoing.Post) (bool, error) {
	pr := view.PullRequest
	forgotten := slices.ContainsFunc(view.Clusters, func(c report.Cluster) bool {
		return !c.Sample && c.Apply == nil && c.Superseded == "" && (c.Waiting == "" || c.Waiting == holdfast.ReasonUpToDate)
	})
	if pr.State != holdfast.PullRequestMerged || !forgotten || posted.Wanted == 0 || posted.Head != pr.Head {
		return false, nil
	}
	status, err := p.opts.Store.Post(ctx, statusKey(pr.Repo, pr.MergeCommit, holdfast.ContextApply))
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("read status of %s: %w", pr.PullRequestRef, err)
	}
	return err == nil && status.Status.State == holdfast.StatusSuccess, nil
}

// endStatuses ends the plan statuses that would never become final: those of commits
// that are no longer the head of the pull request, and all of one that was closed. It
// looks once for each head and state.
func (p *Publisher) endStatuses(ctx context.Context, pr holdfast.PullRequestRecord) error {
	now := headState{pr.Head, pr.State}
	p.mu.Lock()
	looked := p.statusesEnded[pr.PullRequestRef] == now
	p.mu.Unlock()
	if looked {
		return nil
	}
	posts, err := p.opts.Store.Posts(ctx, outgoing.PostFilter{Kind: outgoing.PostStatus, PullRequest: pr.PullRequestRef})
	if err != nil {
		return fmt.Errorf("list statuses of %s: %w", pr.PullRequestRef, err)
	}
	for _, post := range posts {
		status := post.Status
		waits := status.State == holdfast.StatusPending || post.After != "" && post.Wanted > post.Posted
		current := status.Revision == pr.Head && pr.State != holdfast.PullRequestClosed
		ofPlan := status.Context == holdfast.ContextPlan || status.Context == holdfast.ContextPolicy
		if !ofPlan || !waits || current {
			continue
		}
		if other, err := p.headOfAnother(ctx, pr, status.Revision); err != nil {
			return err
		} else if other {
			continue
		}
		post.Status.State, post.After = holdfast.StatusError, ""
		if post.Status.Description = "superseded by " + pr.Head.Short(); status.Revision == pr.Head {
			post.Status.Description = "the pull request was closed before it was planned"
		}
		if err := p.want(ctx, post); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.statusesEnded) >= endedKept {
		clear(p.statusesEnded) // at worst there is another look
	}
	p.statusesEnded[pr.PullRequestRef] = now
	return nil
}

// headState is what the statuses of a pull request's commits depend on.
type headState struct {
	head  holdfast.Revision
	state holdfast.PullRequestState
}

// endedKept bounds the pull requests whose statuses are known to have ended.
const endedKept = 4096

// headOfAnother reports whether a commit is the head of another open pull
// request, whose status it has then.
func (p *Publisher) headOfAnother(ctx context.Context, pr holdfast.PullRequestRecord, revision holdfast.Revision) (bool, error) {
	open, err := p.openAt(ctx, pr.Repo, revision)
	return slices.ContainsFunc(open, func(other holdfast.PullRequestRecord) bool { return other.Number != pr.Number }), err
}

func statusKey(repo string, revision holdfast.Revision, context string) string {
	return fmt.Sprintf("status:%s:%s:%s", repo, revision, context)
}
