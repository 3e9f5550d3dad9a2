package reconciler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// hangingForge accepts a status and never answers.
type hangingForge struct {
	reconciler.Forge
	begun, end chan struct{}
}

func (g hangingForge) SetStatus(context.Context, string, holdfast.CommitStatus) error {
	g.begun <- struct{}{}
	<-g.end
	return holdfast.ErrUnavailable
}

// TestForgeThatHangs: whatever waits to be posted to a host that hangs, other hosts
// are posted to.
func TestForgeThatHangs(t *testing.T) {
	t.Parallel()
	const hanging, posts = "hanging", 40
	forge := hangingForge{begun: make(chan struct{}, posts), end: make(chan struct{})}
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) {
		forge.Forge = opts.Sources.Forges[infra]
		opts.Sources.Forges[hanging] = forge
	})
	status := func(repo string, i int) {
		revision := holdfast.Revision(fmt.Sprintf("%040x", i))
		f.must(f.store.Want(t.Context(), outgoing.Post{
			Key: fmt.Sprintf("status:%s:%s:test", repo, revision), Kind: outgoing.PostStatus, Repo: repo,
			Status: holdfast.CommitStatus{Revision: revision, Context: "test", State: holdfast.StatusSuccess},
		}))
	}
	for i := range posts {
		status(hanging, i)
	}
	posted := make(chan struct{}, 1)
	f.forge.watch = func(_ string, s holdfast.CommitStatus) {
		if s.Context == "test" {
			posted <- struct{}{}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ctx, abort := queue.Abortable(ctx)
	done := make(chan error, 1)
	go func() { done <- f.r.Run(ctx) }()
	<-forge.begun
	status(infra, posts)
	select {
	case <-posted:
	case <-time.After(time.Minute):
		t.Error("nothing is posted to a host that answers")
	}
	stop()
	abort()
	close(forge.end)
	f.must(<-done)
}
