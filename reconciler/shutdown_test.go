package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// TestWorkOff: what a run has come to is on the forge when it returns.
func TestWorkOff(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	f.adopt()
	f.openUnnoticed(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.forge.watch = func(string, holdfast.CommitStatus) { time.Sleep(50 * time.Millisecond) } // a slow one
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f.r.Run(ctx) }()
	f.r.Enqueue(holdfast.SourceRequest{Repo: infra, PullRequest: 1})
	a, err := f.r.Dispatcher().Claim(ctx, protocol.ClaimRequest{Agent: "agent", Wait: 30 * time.Second})
	f.must(err)
	f.must(f.store.PutArtefact(ctx, a.AttemptRef, protocol.ArtefactPlan, strings.NewReader("{}")))
	f.must(f.r.Dispatcher().Finish(ctx, a.AttemptRef, f.left(a, planned(a))))
	f.r.WorkOff(t.Context(), time.Time{})
	if run, err := f.store.Run(t.Context(), a.Run); err != nil || run.PostedAt.IsZero() {
		t.Errorf("the plan is not on the forge: %v", err)
	}
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
		t.Errorf("the status is %q", got)
	}
	cancel()
	f.must(<-done)
}

// TestWorkOffLeavesReplies: what is in the outbox for longer, and what nobody waits for,
// is left to the next start, however slow the code host is.
func TestWorkOffLeavesReplies(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	release, begun := make(chan struct{}), make(chan struct{}, 100)
	f.forge.watch = func(string, holdfast.CommitStatus) { begun <- struct{}{}; <-release }
	pr := holdfast.PullRequestRef{Repo: infra, Number: 1}
	f.must(f.store.Want(t.Context(), outgoing.Post{
		Key: "status:old", Kind: outgoing.PostStatus, Repo: infra, PullRequest: pr, Status: holdfast.CommitStatus{Revision: "abc"},
	}))
	f.clock.Advance(time.Minute)
	since := f.clock.Now()
	for i := range 20 {
		f.must(f.store.Want(t.Context(), outgoing.Post{Key: fmt.Sprint("reply:", i), Kind: outgoing.PostReply, Repo: infra, PullRequest: pr, Body: "no"}))
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.r.Run(ctx) }()
	<-begun
	patience, over := context.WithTimeout(t.Context(), 30*time.Second)
	defer over()
	f.r.WorkOff(patience, since)
	if patience.Err() != nil {
		t.Error("it waits for replies")
	}
	stop()
	close(release)
	f.must(<-done)
	posts, err := f.store.Posts(t.Context(), outgoing.PostFilter{Kind: outgoing.PostReply})
	f.must(err)
	left := slices.DeleteFunc(posts, func(p outgoing.Post) bool { return p.Posted > 0 })
	if len(left) == 0 || len(left) == 20 {
		t.Errorf("%d of 20 replies are left to the next start: want some, and those that were begun posted", len(left))
	}
}

// hangingGit is a Git host that accepts and never answers.
type hangingGit struct {
	reconciler.Git
	begun chan struct{}
}

func (g hangingGit) Fetch(ctx context.Context, _ string) (holdfast.Refs, error) {
	g.begun <- struct{}{}
	<-ctx.Done()
	return holdfast.Refs{}, ctx.Err()
}

// TestHangingFetchIsAborted: a repository that is being looked at keeps Run from
// ending only until its work is aborted.
func TestHangingFetchIsAborted(t *testing.T) {
	t.Parallel()
	git := hangingGit{begun: make(chan struct{}, 100)}
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) { git.Git = opts.Sources.Git; opts.Sources.Git = git })
	ctx, stop := context.WithCancel(t.Context())
	ctx, abort := queue.Abortable(ctx)
	defer abort()
	done := make(chan error, 1)
	go func() { done <- f.r.Run(ctx) }()
	<-git.begun
	f.r.WorkOff(t.Context(), time.Time{}) // is not for looks at repositories
	stop()
	abort()
	f.must(<-done)
}
