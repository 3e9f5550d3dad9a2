package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
)

// Propose pushes a branch with one commit, which makes it a pull request, as
// reconciler.Forge says. Its body and labels are kept nowhere: nobody would show
// them. A pull request whose branch somebody has deleted counts as closed.
func (f *Forge) Propose(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.PullRequest, error) {
	pr, err := f.propose(ctx, repo, p)
	if err != nil {
		return holdfast.PullRequest{}, fmt.Errorf("propose branch %q to %s: %w", p.Branch, repo, err)
	}
	return pr, nil
}

func (f *Forge) propose(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.PullRequest, error) {
	tracked := f.opts.Branches[repo]
	if p.Branch == tracked || p.BaseBranch != tracked {
		return holdfast.PullRequest{}, fmt.Errorf("it is to be merged into %q, and the tracked branch is %q: %w", p.BaseBranch, tracked, holdfast.ErrRejected)
	}
	r, release, err := f.take(ctx, repo)
	if err != nil {
		return holdfast.PullRequest{}, err
	}
	defer release()
	refs, prs, err := r.look(ctx)
	if err != nil {
		return holdfast.PullRequest{}, err
	}
	if last := newest(prs, p.Branch); last.Number != 0 && last.State != holdfast.PullRequestOpen {
		if _, identity, err := r.proposedBy(ctx, last.Head); err != nil || identity == p.Identity() {
			return last, err
		}
	}
	at := refs["refs/heads/"+p.Branch]
	if at != "" && at != p.Head {
		if _, identity, err := r.proposedBy(ctx, at); err != nil {
			return holdfast.PullRequest{}, err
		} else if identity == "" {
			return holdfast.PullRequest{}, fmt.Errorf("it is at %s, which is not ours: %w", at.Short(), holdfast.ErrConflict)
		}
	}
	head, err := f.opts.Git.Commit(ctx, repo, p)
	if err != nil {
		return holdfast.PullRequest{}, err
	}
	if done, err := r.merged(ctx, head, refs["refs/heads/"+tracked]); err != nil || done {
		return holdfast.PullRequest{}, cmp.Or(err, errMerged)
	}
	pushErr := f.opts.Git.Push(ctx, repo, p.Branch, at, head)
	if pushErr != nil && !errors.Is(pushErr, holdfast.ErrConflict) {
		return holdfast.PullRequest{}, pushErr
	}
	if refs, prs, err = r.look(ctx); err != nil {
		return holdfast.PullRequest{}, err
	}
	if pushErr != nil && refs["refs/heads/"+p.Branch] != head { // else somebody like us was faster
		return holdfast.PullRequest{}, pushErr
	}
	pr := newest(prs, p.Branch)
	if pr.State != holdfast.PullRequestOpen {
		return holdfast.PullRequest{}, errMerged
	}
	if pr.Title != p.Title || pr.Author != botName {
		pr.Title, pr.Author, pr.UpdatedAt = p.Title, botName, f.opts.Now().UTC()
		if pr, err = f.opts.Store.SaveLocalPullRequest(ctx, pr); err != nil {
			return pr, fmt.Errorf("store pull request: %w", err)
		}
	}
	pr.Head = head // whatever somebody has pushed in this moment
	return pr, nil
}

// errMerged: whoever asks again finds nothing left to propose.
var errMerged = fmt.Errorf("what it proposes is in the tracked branch already: %w", holdfast.ErrUnavailable)

// newest returns the last pull request of a branch; the zero one if there is none.
func newest(prs []holdfast.PullRequest, branch string) (last holdfast.PullRequest) {
	for _, pr := range prs {
		if pr.Branch == branch && pr.Number > last.Number {
			last = pr
		}
	}
	return last
}

// proposedBy returns a commit's message and the identity of the proposal that it
// was made for; none if it is not ours, or was never fetched.
func (r *repository) proposedBy(ctx context.Context, rev holdfast.Revision) (string, holdfast.Digest, error) {
	message, tree, err := r.opts.Git.Message(ctx, r.name, rev)
	if errors.Is(err, holdfast.ErrNotFound) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	return message, proposals.IdentityOf(message, tree), nil
}

// withdrawn marks the comment that says why, so that a second try says it once.
const withdrawn = "<!-- holdfast:withdrawn -->\n"

// Withdraw says why and deletes the branch, which closes the pull request, as
// reconciler.Forge says. A branch that is not at head is somebody's work: it
// stays, and with it the pull request.
func (f *Forge) Withdraw(
	ctx context.Context, ref holdfast.PullRequestRef, branch string, head holdfast.Revision, why string,
) error {
	if err := f.withdraw(ctx, ref, branch, head, why); err != nil {
		return fmt.Errorf("withdraw pull request %s: %w", ref, err)
	}
	return nil
}

func (f *Forge) withdraw(
	ctx context.Context, ref holdfast.PullRequestRef, branch string, head holdfast.Revision, why string,
) error {
	if branch == f.opts.Branches[ref.Repo] {
		return fmt.Errorf("%q is the tracked branch: %w", branch, holdfast.ErrRejected)
	}
	r, release, err := f.take(ctx, ref.Repo)
	if err != nil {
		return err
	}
	defer release()
	refs, prs, err := r.look(ctx)
	if err != nil {
		return err
	}
	pr := holdfast.PullRequest{}
	for _, known := range prs {
		if known.PullRequestRef == ref {
			pr = known
		}
	}
	if pr.Number == 0 {
		return holdfast.ErrNotFound
	}
	if at := refs["refs/heads/"+branch]; head == "" && at != "" && pr.State == holdfast.PullRequestOpen && pr.Branch == branch {
		_, identity, err := r.proposedBy(ctx, at)
		if err == nil && identity == "" {
			err = fmt.Errorf("its branch is at %s, which is not ours: %w", at.Short(), holdfast.ErrConflict)
		}
		if err != nil {
			return err
		}
		head = at
	}
	if pr.State == holdfast.PullRequestOpen {
		if _, err := f.putComment(ctx, ref, "", withdrawn, withdrawn+why); err != nil {
			return err
		}
	}
	if head == "" || refs["refs/heads/"+branch] != head {
		return nil
	}
	if err := f.opts.Git.Push(ctx, ref.Repo, branch, head, ""); err != nil && !errors.Is(err, holdfast.ErrConflict) {
		return err
	}
	_, _, err = r.look(ctx)
	return err
}
