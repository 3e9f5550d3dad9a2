package local_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/forge/local"
)

// hangingGit does not answer for one repository.
type hangingGit struct {
	local.Git
	repo  string
	asked chan struct{}
}

func (g hangingGit) Fetch(ctx context.Context, repo string) (holdfast.Refs, error) {
	if repo != g.repo {
		return holdfast.Refs{}, nil
	}
	close(g.asked)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestHostThatHangs: one that never answers for a repository keeps nobody waiting who
// asks for another one, and who asks for the same waits no longer than he wants to.
func TestHostThatHangs(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	git := hangingGit{Git: h.git, repo: infra, asked: make(chan struct{})}
	forge, err := local.New(local.Options{Git: git, Store: h.store, Branches: map[string]string{infra: "main", "other": "main"}})
	h.must(err)
	ctx, end := context.WithCancel(t.Context())
	hung := make(chan error, 1)
	go func() {
		_, err := forge.PullRequests(ctx, infra, time.Time{})
		hung <- err
	}()
	<-git.asked
	if _, err := forge.PullRequests(t.Context(), "other", time.Time{}); err != nil {
		t.Errorf("PullRequests() of another repository = %v", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := forge.PullRequest(gone, holdfast.PullRequestRef{Repo: infra, Number: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("PullRequest() for who no longer waits = %v", err)
	}
	end()
	if err := <-hung; !errors.Is(err, context.Canceled) {
		t.Errorf("PullRequests() of what hangs = %v", err)
	}
}
