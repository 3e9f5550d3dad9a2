package reconciler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// gaveUp counts what is not tried any longer.
type gaveUp struct {
	reconciler.Metrics
	kinds []holdfast.PostKind
}

func (g *gaveUp) GaveUp(kind holdfast.PostKind) { g.kinds = append(g.kinds, kind) }

// What a code host refuses for good is given up after a while, whatever it is, and
// posted when somebody asks for it, or when it changes.
func TestPostsThatAreRefusedForGood(t *testing.T) {
	t.Parallel()
	n := 0
	for name, refusal := range map[string]func() error{
		"forbidden": func() error {
			return fmt.Errorf("GitHub answered 403: Resource not accessible: %w", holdfast.ErrForbidden)
		},
		"invalid": func() error { return errors.New("GitHub answered 422: No commit found for SHA") },
		"invalid, in other words each time": func() error {
			n++
			return fmt.Errorf("GitHub answered 422: request %d", n)
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
			if len(counted.kinds) == 0 || counted.kinds[0] != holdfast.PostStatus {
				t.Errorf("given up: %v", counted.kinds)
			}
			posts, err := f.store.Posts(t.Context(), holdfast.PostFilter{PullRequest: onePR, Kind: holdfast.PostStatus})
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
	posts, err := f.store.Posts(t.Context(), holdfast.PostFilter{PullRequest: holdfast.PullRequestRef{Repo: infra, Number: 2}, Kind: holdfast.PostStatus})
	f.must(err)
	for _, post := range posts {
		if post.Wanted > post.Posted && !post.GivenUp {
			t.Errorf("of the closed pull request this is still tried: %+v", post)
		}
	}
}
