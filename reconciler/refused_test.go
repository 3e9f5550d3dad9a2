package reconciler_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// gaveUp counts what is no longer tried.
type gaveUp struct {
	reconciler.Metrics
	kinds []outgoing.PostKind
}

func (g *gaveUp) GaveUp(kind outgoing.PostKind) { g.kinds = append(g.kinds, kind) }

// What a code host refuses for good is given up after a while, whatever it is, and
// posted when somebody asks for it, or when it changes.
func TestPostsThatAreRefusedForGood(t *testing.T) {
	t.Parallel()
	n := 0
	for name, refusal := range map[string]func() error{
		"forbidden": func() error {
			return fmt.Errorf("GitHub answered 403: Resource not accessible: %w", holdfast.ErrForbidden)
		},
		"invalid": func() error {
			return fmt.Errorf("GitHub answered 422: No commit found for SHA: %w", holdfast.ErrRejected)
		},
		"invalid, in other words each time": func() error {
			n++
			return fmt.Errorf("GitHub answered 422: request %d: %w", n, holdfast.ErrRejected)
		},
	} {
		t.Run(name, func(t *testing.T) {
			counted := &gaveUp{Metrics: reconciler.NoMetrics}
			f := newFleet(t, twoClusters(), func(o *reconciler.Options) { o.Telemetry.Metrics = counted })
			f.adopt()
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			day := func() {
				for range 240 {
					f.clock.Advance(6 * time.Minute)
					f.forge.failWith("SetStatus", refusal())
					f.post()
				}
			}
			f.forge.failWith("SetStatus", refusal())
			f.executeAll(good)
			day()
			calls := f.forge.count("SetStatus")
			if calls > 80 {
				t.Errorf("%d calls in a day", calls)
			}
			day()
			if more := f.forge.count("SetStatus") - calls; more != 0 {
				t.Errorf("%d more calls on the next day", more)
			}
			if len(counted.kinds) == 0 || counted.kinds[0] != outgoing.PostStatus {
				t.Errorf("given up: %v", counted.kinds)
			}
			posts, err := f.store.Posts(t.Context(), outgoing.PostFilter{PullRequest: onePR, Kind: outgoing.PostStatus})
			f.must(err)
			if len(posts) != 1 || !posts[0].GivenUp || !strings.HasPrefix(posts[0].LastError, "GitHub answered 4") {
				t.Fatalf("its status is on record as %+v", posts)
			}

			f.forge.failWith("SetStatus", nil)
			head := f.forge.get(1).Head
			f.must(f.r.Reconcile(t.Context(), infra, ""))
			f.settle()
			f.post()
			if got := f.forge.status(head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
				t.Errorf("after holdfast reconcile its status is %q", got)
			}
		})
	}
}

// What goes wrong on this side, however long, is not the code host's refusal: it is
// tried again, more and more seldom, and no plan is in doubt for it.
func TestPostsWhileTheLocalDiskIsFaulty(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{
		"full":      fmt.Errorf("store comment: %w", syscall.ENOSPC),
		"read-only": errors.New("store comment: attempt to write a readonly database (8)"),
		"locked":    errors.New("store comment: database is locked (5) (SQLITE_BUSY)"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counted := &gaveUp{Metrics: reconciler.NoMetrics}
			f := newFleet(t, twoClusters(), func(o *reconciler.Options) { o.Telemetry.Metrics = counted })
			f.adopt()
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.forge.failWith("PutComment", fault)
			f.forge.failWith("SetStatus", fault)
			f.executeAll(good)
			for range 120 {
				f.post()
				f.clock.Advance(6 * time.Minute)
				f.settle()
			}
			if len(counted.kinds) > 0 {
				t.Errorf("given up: %v", counted.kinds)
			}
			posts, err := f.store.Posts(t.Context(), outgoing.PostFilter{PullRequest: onePR, Kind: outgoing.PostComment})
			f.must(err)
			if len(posts) != 1 || posts[0].GivenUp || posts[0].LastError != fault.Error() || posts[0].NotBefore.IsZero() {
				t.Errorf("its comment is on record as %+v", posts)
			}
			f.forge.failWith("PutComment", nil)
			f.forge.failWith("SetStatus", nil)
			f.clock.Advance(6 * time.Minute)
			f.post()
			f.settle()
			f.post()
			head := f.forge.get(1).Head
			if got := f.forge.status(head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
				t.Errorf("afterwards its status is %q: %q", got, f.forge.told(head, holdfast.ContextPlan))
			}
			for _, told := range f.forge.told(head, holdfast.ContextPlan) {
				if strings.HasPrefix(told, "error") {
					t.Errorf("its status was %q", told)
				}
			}
		})
	}
}

// What is to be posted to a repository that is not configured at a start is posted when
// it is again, without anybody's command.
func TestPostsToARepositoryThatIsNotConfiguredForAWhile(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	withOther(t, f)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.forge.failWith("PutComment", holdfast.ErrUnavailable)
	f.executeAll(good)
	f.post()
	f.forge.failWith("PutComment", nil)
	sources := f.opts.Sources
	f.restart(func(o *reconciler.Options) {
		o.Sources.Repositories = sources.Repositories[1:]
		o.Sources.Forges = maps.Clone(sources.Forges)
		delete(o.Sources.Forges, infra)
	})
	for range 12 {
		f.clock.Advance(6 * time.Minute)
		f.post()
		f.settle()
	}
	posts, err := f.store.Posts(t.Context(), outgoing.PostFilter{PullRequest: onePR})
	f.must(err)
	for _, post := range posts {
		if post.GivenUp {
			t.Errorf("given up: %+v", post)
		}
	}
	f.restart(func(o *reconciler.Options) { o.Sources = sources })
	f.post()
	f.settle()
	f.post()
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
		t.Errorf("configured again, its status is %q", got)
	}
}

// An outage, however long, is not a refusal; of a pull request that was closed nobody
// waits for the end of it.
func TestPostsDuringALongOutage(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.open(2, map[string]string{"infra/preprod/main.tf": module("two")})
	f.forge.failWith("SetStatus", holdfast.ErrUnavailable)
	f.executeAll(good)
	f.state(2, holdfast.PullRequestClosed)
	for range 240 {
		f.clock.Advance(6 * time.Minute)
		f.post()
	}
	f.forge.failWith("SetStatus", holdfast.ErrForbidden) // once
	f.clock.Advance(6 * time.Minute)
	_, err := f.r.Post(t.Context())
	f.must(err)
	f.forge.failWith("SetStatus", nil)
	f.clock.Advance(6 * time.Minute)
	f.post()
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
		t.Errorf("after the outage the status is %q", got)
	}
	posts, err := f.store.Posts(t.Context(), outgoing.PostFilter{PullRequest: holdfast.PullRequestRef{Repo: infra, Number: 2}, Kind: outgoing.PostStatus})
	f.must(err)
	for _, post := range posts {
		if post.Wanted > post.Posted && !post.GivenUp {
			t.Errorf("of the closed pull request this is still tried: %+v", post)
		}
	}
}
