package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// fresh is how long the forge's last answer about a pull request's approvals counts as
// current: the clusters of a merge are applied one by one.
const fresh = 10 * time.Second

// Forge is what a Keeper asks a forge for.
type Forge interface {
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequest, error)
	Permission(ctx context.Context, repo, user string) (holdfast.Permission, error)
	// Comment is ErrNotFound for one that was deleted.
	Comment(ctx context.Context, ref holdfast.PullRequestRef, id string) (holdfast.Comment, error)
}

// Intact reports whether our comment of a pull request is on the forge as it was written
// there, if it was: was is the state of the pull request on record.
type Intact func(ctx context.Context, pr holdfast.PullRequest, was holdfast.PullRequestState) (bool, error)

// Keeper knows which approvals are still in force. It is safe for concurrent use.
type Keeper struct {
	forge  func(repo string) Forge
	intact Intact
	now    func() time.Time

	mu   sync.Mutex
	said map[holdfast.PullRequestRef]word
}

// word is what the forge has said of a pull request, when it was at version.
type word struct {
	at       time.Time
	version  int64
	verdicts []holdfast.Verdict
	ended    []holdfast.Approval
}

// NewKeeper returns a Keeper. Forge returns nil for a repository without one.
func NewKeeper(forge func(repo string) Forge, intact Intact, now func() time.Time) *Keeper {
	return &Keeper{forge: forge, intact: intact, now: now, said: make(map[holdfast.PullRequestRef]word)}
}

// Check returns the approvals of a pull request with those ended that are no longer in
// force: its giver may no longer write, or the comment is gone or says something else.
// It asks the forge about each that counts for the head.
func (k *Keeper) Check(ctx context.Context, pr holdfast.PullRequestRecord) ([]holdfast.Approval, error) {
	approvals := slices.Clone(pr.Approvals)
	forge := k.forge(pr.Repo)
	for i := range approvals {
		a := &approvals[i]
		if a.Ended != "" || a.CommentID == "" || a.Head != pr.Head || forge == nil {
			continue
		}
		comment, err := forge.Comment(ctx, pr.PullRequestRef, a.CommentID)
		switch {
		case errors.Is(err, holdfast.ErrNotFound):
			a.Ended = "its comment was deleted"
			continue
		case err != nil:
			return nil, fmt.Errorf("read the comment by which %s approved %s: %w", a.By, pr.PullRequestRef, err)
		case comment.UpdatedAt.After(a.Said):
			a.Ended = "its comment was edited"
			continue
		}
		permission, err := forge.Permission(ctx, pr.Repo, a.By)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, fmt.Errorf("ask for the permission of %q: %w", a.By, err)
		}
		if !permission.CanWrite() {
			a.Ended = a.By + " no longer has write permission"
		}
	}
	return approvals, nil
}

// Standing returns a pull request with the reviews and approvals in force now, by what
// the forge said less than ten seconds ago; false if it has to be asked, since the record
// has changed meanwhile, or that is longer ago.
func (k *Keeper) Standing(pr holdfast.PullRequestRecord) (holdfast.PullRequestRecord, bool) {
	if len(pr.Verdicts)+len(pr.Approvals) == 0 {
		return pr, true
	}
	k.mu.Lock()
	last, ok := k.said[pr.PullRequestRef]
	k.mu.Unlock()
	now := k.now()
	if !ok || last.version != pr.Version || now.Sub(last.at) >= fresh || now.Before(last.at) {
		return pr, false
	}
	pr.Verdicts, pr.Approvals = last.verdicts, last.ended
	return pr, true
}

// Fresh is Standing by what the forge says at this moment: no delivery may have
// reported a review yet, or that somebody edited a comment of ours.
func (k *Keeper) Fresh(ctx context.Context, pr holdfast.PullRequestRecord) (holdfast.PullRequestRecord, error) {
	forge := k.forge(pr.Repo)
	if forge == nil {
		return pr, nil
	}
	now := k.now()
	found, err := forge.PullRequest(ctx, pr.PullRequestRef)
	if err != nil {
		return pr, fmt.Errorf("ask for the reviews of %s: %w", pr.PullRequestRef, err)
	}
	// After the reviews: what they refer to was there then.
	intact, err := k.intact(ctx, found, pr.State)
	if err != nil {
		return pr, fmt.Errorf("see what the reviews of %s speak of: %w", pr.PullRequestRef, err)
	}
	if !intact {
		pr.ShownSince = now.AddDate(1, 0, 0) // it is not there yet
	}
	ended, err := k.Check(ctx, pr)
	if err != nil {
		return pr, err
	}
	pr.Verdicts, pr.Approvals = found.Verdicts, ended
	k.mu.Lock()
	defer k.mu.Unlock()
	for ref, old := range k.said {
		if now.Sub(old.at) >= fresh {
			delete(k.said, ref)
		}
	}
	k.said[pr.PullRequestRef] = word{at: now, version: pr.Version, verdicts: found.Verdicts, ended: ended}
	return pr, nil
}
