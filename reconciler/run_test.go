package reconciler_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// TestRun lets everything run at once, as a server does: from a pull request to
// an applied cluster.
func TestRun(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f.r.Run(ctx) }()

	next := func() protocol.Assignment {
		t.Helper()
		a, err := f.r.Dispatcher().Claim(ctx, protocol.ClaimRequest{Agent: "agent", Wait: 30 * time.Second})
		f.must(err)
		f.must(f.store.PutArtefact(ctx, a.AttemptRef, protocol.ArtefactPlan, strings.NewReader("{}")))
		return a
	}
	end := func(a protocol.Assignment, result protocol.Result) {
		t.Helper()
		f.must(f.r.Dispatcher().Finish(ctx, a.AttemptRef, f.left(a, result)))
	}
	adopted := next() // found by the first poll
	end(adopted, protocol.Result{Status: holdfast.RunNoChanges})
	f.until(func() bool { return f.cluster("prod").Applied.Run == adopted.Run })

	head := f.repo.CommitOn("branch-1", master, "change", map[string]string{"infra/prod/main.tf": module("two")})
	f.repo.SetPullRequest(1, head, "")
	f.forge.set(holdfast.PullRequest{
		PullRequestRef: onePR, State: holdfast.PullRequestOpen, Branch: "branch-1",
		Head: holdfast.Revision(head), BaseBranch: master, Mergeable: true,
	})
	f.r.Enqueue(holdfast.SourceRequest{Repo: infra, PullRequest: 1})
	plan := next()
	end(plan, planned(plan))
	f.until(func() bool {
		run, err := f.store.Run(ctx, plan.Run)
		return err == nil && !run.PostedAt.IsZero()
	})

	f.mergeUnnoticed(1, bySquash)
	f.r.Enqueue(holdfast.SourceRequest{Repo: infra})
	apply := next()
	if apply.Kind != holdfast.RunApply || len(apply.Reviews) != 1 || apply.Reviews[0].Run != plan.Run {
		t.Fatalf("after the merge a %s was handed out, with reviews %+v", apply.Kind, apply.Reviews)
	}
	end(apply, good(apply))
	f.until(func() bool {
		return f.forge.status(f.forge.get(1).MergeCommit, holdfast.ContextApply) == holdfast.StatusSuccess
	})
	if got := f.cluster("prod").Applied.Run; got != apply.Run {
		t.Errorf("the status tells of the apply %s before the record does: %q", apply.Run, got)
	}
	cancel()
	f.must(<-done)
}

// until waits for something that happens automatically.
func (f *fleet) until(happened func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatal("it never happened")
		}
	}
}

// TestDecisionsDoNotMeet asks for the same thing from many sides at once.
func TestDecisionsDoNotMeet(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.mergeUnnoticed(1, byMerge)
	f.must(f.r.TakeIn(t.Context(), infra, 0))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, _ = f.r.Reconciled(t.Context(), holdfast.Request{Cluster: "prod"})
			_, _ = f.r.Command(t.Context(), holdfast.Command{
				Author: "root", Trusted: true, Verb: holdfast.VerbApply, Clusters: []string{"prod"},
			})
		})
	}
	wg.Wait()
	f.settle()
	applies, err := f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "prod", Kinds: []holdfast.RunKind{holdfast.RunApply}})
	f.must(err)
	if len(applies) != 1 {
		t.Errorf("%d applies of one merge", len(applies))
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	good := newFleet(t, nil).opts
	for name, spoil := range map[string]func(*reconciler.Options){
		"store":     func(o *reconciler.Options) { o.Store = nil },
		"git":       func(o *reconciler.Options) { o.Sources.Git = nil },
		"locker":    func(o *reconciler.Options) { o.Replica.Locker = nil },
		"command":   func(o *reconciler.Options) { o.Sources.Commands = nil },
		"32 bytes":  func(o *reconciler.Options) { o.Replica.TokenKey = o.Replica.TokenKey[:31] },
		"identity":  func(o *reconciler.Options) { o.Replica.Identity = "" },
		"code host": func(o *reconciler.Options) { o.Sources.Forges = nil },
	} {
		opts := good
		spoil(&opts)
		if _, err := reconciler.New(opts); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without its %s: %v", name, err)
		}
	}
}

// TestFirstPollIsTriedAgain: a process that begins while the code host is unavailable
// finds what the former one was told long before it would poll again.
func TestFirstPollIsTriedAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	f.forge.failWith("PullRequests", holdfast.ErrUnavailable)
	head := f.repo.CommitOn("branch-1", master, "change", map[string]string{"infra/prod/main.tf": module("two")})
	f.repo.SetPullRequest(1, head, "")
	f.forge.set(holdfast.PullRequest{
		PullRequestRef: onePR, State: holdfast.PullRequestOpen, Branch: "branch-1",
		Head: holdfast.Revision(head), BaseBranch: master, Mergeable: true,
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f.r.Run(ctx) }() // which polls every five minutes

	f.until(func() bool { return f.forge.count("PullRequests") > 0 })
	f.forge.failWith("PullRequests", nil)
	f.until(func() bool {
		_, err := f.store.PullRequest(ctx, onePR)
		return err == nil
	})
	cancel()
	f.must(<-done)
}
