package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
)

// Git is what the forge asks of the repositories.
type Git interface {
	Reader
	History
	Writer
}

// Reader reads what branches are at, and what their merge would be.
type Reader interface {
	Fetch(ctx context.Context, repo string) (holdfast.Refs, error)
	Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error)
	Merge(ctx context.Context, repo string, base, head holdfast.Revision) (tree string, err error)
}

// Writer writes the branches of proposals.
type Writer interface {
	// Commit makes the commit of a proposal, the same for the same, and moves no
	// ref; Message returns a commit's message and the id of its tree.
	Commit(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.Revision, error)
	Message(ctx context.Context, repo string, rev holdfast.Revision) (message, tree string, err error)
	// Push moves a branch from a commit (empty: it is not there) to another one
	// (empty: it is deleted). ErrConflict if it is elsewhere.
	Push(ctx context.Context, repo, branch string, from, to holdfast.Revision) error
}

// History is how the commits of a repository follow one another.
type History interface {
	Parents(ctx context.Context, repo string, rev holdfast.Revision) ([]holdfast.Revision, error)
	// IsAncestor reports whether a is b or an ancestor of it.
	IsAncestor(ctx context.Context, repo string, a, b holdfast.Revision) (bool, error)
}

// Store keeps what a code host would.
type Store interface {
	PullRequests
	Comments
	SaveLocalStatus(ctx context.Context, repo string, status holdfast.CommitStatus) error
}

// PullRequests keeps pull requests.
type PullRequests interface {
	LocalPullRequests(ctx context.Context, repo string) ([]holdfast.PullRequest, error)
	// SaveLocalPullRequest stores a pull request; Number zero takes the next one.
	SaveLocalPullRequest(ctx context.Context, pr holdfast.PullRequest) (holdfast.PullRequest, error)
	// ForgetLocalPullRequests removes those that ended long ago, without those that needed
	// reports.
	ForgetLocalPullRequests(ctx context.Context, repo string, needed func(holdfast.PullRequest) bool)
}

// Comments keeps comments of pull requests.
type Comments interface {
	LocalComments(ctx context.Context, ref holdfast.PullRequestRef) ([]holdfast.Comment, error)
	LocalCommentsSince(ctx context.Context, repo string, since time.Time) ([]holdfast.Comment, error)
	// SaveLocalComment stores a comment; an empty ID takes a new one.
	SaveLocalComment(ctx context.Context, c holdfast.Comment) (holdfast.Comment, error)
}

// Options are what a Forge needs. All are required unless noted.
type Options struct {
	Git      Git
	Store    Store
	Branches map[string]string // the tracked branch of each repository
	// Others are branches that other repositories at the same place track: they are
	// not pull requests. Optional.
	Others map[string][]string
	Now    func() time.Time // nil means time.Now
}

// Forge is a code host without a host. It is safe for concurrent use.
type Forge struct {
	opts Options

	mu    sync.Mutex
	repos map[string]*repository
}

// New returns a Forge, or an error that names what is missing.
func New(opts Options) (*Forge, error) {
	switch {
	case opts.Git == nil:
		return nil, errors.New("forge: local: no git")
	case opts.Store == nil:
		return nil, errors.New("forge: local: no store")
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Forge{opts: opts, repos: make(map[string]*repository)}, nil
}

// botName is the author of our comments.
const botName = "holdfast"

// PullRequest returns one pull request as the branches have it now.
func (f *Forge) PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequest, error) {
	prs, err := f.sync(ctx, ref.Repo)
	if err != nil {
		return holdfast.PullRequest{}, err
	}
	for _, pr := range prs {
		if pr.Number == ref.Number {
			return pr, nil
		}
	}
	return holdfast.PullRequest{}, fmt.Errorf("pull request %s: %w", ref, holdfast.ErrNotFound)
}

// PullRequests returns the open pull requests and those updated since.
func (f *Forge) PullRequests(ctx context.Context, repo string, since time.Time) ([]holdfast.PullRequest, error) {
	prs, err := f.sync(ctx, repo)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(prs, func(pr holdfast.PullRequest) bool {
		return pr.State != holdfast.PullRequestOpen && pr.UpdatedAt.Before(since)
	}), nil
}

// PullRequestsOf returns the pull requests that were merged by commit, and those whose
// merge was first seen when the tracked branch was there, or is seen now: it may have
// moved on from commit meanwhile.
func (f *Forge) PullRequestsOf(ctx context.Context, repo string, commit holdfast.Revision) ([]holdfast.PullRequest, error) {
	r, release, err := f.take(ctx, repo)
	if err != nil {
		return nil, err
	}
	defer release()
	refs, prs, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	now := refs["refs/heads/"+r.tracked]
	return slices.DeleteFunc(prs, func(pr holdfast.PullRequest) bool {
		seen := r.seen[pr.Number]
		return pr.State != holdfast.PullRequestMerged || pr.MergeCommit != commit && (seen == "" || seen != commit && seen != now)
	}), nil
}

// sync updates the stored pull requests to what the branches say, and returns all of
// them.
func (f *Forge) sync(ctx context.Context, repo string) ([]holdfast.PullRequest, error) {
	r, release, err := f.take(ctx, repo)
	if err != nil {
		return nil, err
	}
	defer release()
	_, prs, err := r.look(ctx)
	return prs, err
}

// Comments returns the comments since, oldest first.
func (f *Forge) Comments(ctx context.Context, repo string, since time.Time) (holdfast.CommentList, error) {
	comments, err := f.opts.Store.LocalCommentsSince(ctx, repo, since)
	list := holdfast.CommentList{Comments: comments}
	for _, comment := range comments {
		for _, at := range []time.Time{comment.CreatedAt, comment.UpdatedAt} {
			if at.After(list.Until) {
				list.Until = at
			}
		}
	}
	return list, err
}

// Comment returns a comment as it is now.
func (f *Forge) Comment(ctx context.Context, ref holdfast.PullRequestRef, id string) (holdfast.Comment, error) {
	comments, err := f.opts.Store.LocalComments(ctx, ref)
	if err != nil {
		return holdfast.Comment{}, fmt.Errorf("list comments of %s: %w", ref, err)
	}
	for _, comment := range comments {
		if comment.ID == id {
			return comment, nil
		}
	}
	return holdfast.Comment{}, fmt.Errorf("comment %q on %s: %w", id, ref, holdfast.ErrNotFound)
}

// Permission lets everybody who can reach the store give commands: there is no host
// that would know better.
func (f *Forge) Permission(context.Context, string, string) (holdfast.Permission, error) {
	return holdfast.PermissionAdmin, nil
}

// PutComment creates or updates a comment of ours. Nobody reports when a branch is
// merged: it counts from when that is first seen. So it is looked at once the comment
// is there, and a comment that may have come after the merge says so: its UpdatedAt is
// after MergedAt. One that has not was there before the merge.
func (f *Forge) PutComment(
	ctx context.Context, ref holdfast.PullRequestRef, id, marker, body string,
) (holdfast.Comment, error) {
	comment, err := f.putComment(ctx, ref, id, marker, body)
	if err != nil {
		return comment, err
	}
	pr, err := f.PullRequest(ctx, ref)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return comment, nil
	case err != nil:
		// It is there: whatever keeps us from the branches does not refuse it.
		return holdfast.Comment{}, fmt.Errorf("look whether %s was merged before the comment: %w: %s", ref, holdfast.ErrUnavailable, err.Error())
	case pr.State != holdfast.PullRequestMerged || comment.UpdatedAt.After(pr.MergedAt):
		return comment, nil
	}
	comment.UpdatedAt = pr.MergedAt.Add(time.Nanosecond)
	if comment, err = f.opts.Store.SaveLocalComment(ctx, comment); err != nil {
		return comment, fmt.Errorf("store comment on %s: %w", ref, err)
	}
	return comment, nil
}

func (f *Forge) putComment(
	ctx context.Context, ref holdfast.PullRequestRef, id, marker, body string,
) (holdfast.Comment, error) {
	now := f.opts.Now().UTC()
	comment := holdfast.Comment{PullRequest: ref, Author: botName, Bot: true, CreatedAt: now}
	existing, err := f.opts.Store.LocalComments(ctx, ref)
	if err != nil {
		return comment, fmt.Errorf("list comments of %s: %w", ref, err)
	}
	for _, c := range existing {
		if c.Bot && (c.ID == id || id == "" && marker != "" && strings.Contains(c.Body, marker)) {
			comment = c
			break
		}
	}
	if id == "" && comment.ID != "" && comment.Body == body {
		return comment, nil // the answer to a former try got lost
	}
	comment.Body, comment.UpdatedAt = body, now
	comment, err = f.opts.Store.SaveLocalComment(ctx, comment)
	if err != nil {
		return comment, fmt.Errorf("store comment on %s: %w", ref, err)
	}
	return comment, nil
}

// SetStatus stores a commit status.
func (f *Forge) SetStatus(ctx context.Context, repo string, status holdfast.CommitStatus) error {
	if err := f.opts.Store.SaveLocalStatus(ctx, repo, status); err != nil {
		return fmt.Errorf("store status of %s: %w", status.Revision.Short(), err)
	}
	return nil
}

// React does nothing: commands come through the API here, which answers.
func (f *Forge) React(context.Context, holdfast.PullRequestRef, string, holdfast.Reaction) error {
	return nil
}

// PutIssue keeps nothing: what an issue would say people read in the CLI. The id
// is one that no code host would take for its own, should the repository get one.
func (f *Forge) PutIssue(_ context.Context, _, id, marker string, issue holdfast.Issue) (holdfast.Issue, error) {
	switch {
	case issue.Closed && id == "":
		return holdfast.Issue{}, nil
	case id == "":
		id = "local:" + holdfast.DigestOf([]byte(marker)).Short()
	}
	issue.ID = id
	return issue, nil
}
