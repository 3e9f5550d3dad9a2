package reconciler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// What can go wrong on the way of a plan to those who review it: whoever merges
// as soon as the status is green has a comment to look at.
func TestThePlanIsSeenBeforeItsStatusIsGreen(t *testing.T) {
	t.Parallel()
	later := func(f *fleet) { f.clock.Advance(10 * time.Minute); f.post() }
	for name, trouble := range map[string]func(*fleet){
		"nothing":       func(*fleet) {},
		"a lost answer": func(f *fleet) { f.forge.lose = 1 },
		"an outage for comments": func(f *fleet) {
			f.forge.failWith("PutComment", holdfast.ErrUnavailable)
			f.executeAll(good)
			later(f)
			f.forge.failWith("PutComment", nil)
		},
		"an outage for statuses": func(f *fleet) {
			f.forge.failWith("SetStatus", holdfast.ErrUnavailable)
			f.executeAll(good)
			later(f)
			f.forge.failWith("SetStatus", nil)
		},
		"a limit, then a refusal that passes": func(f *fleet) {
			f.forge.failWith("PutComment", &holdfast.RateLimitError{RetryAt: f.clock.Now().Add(time.Minute), Err: holdfast.ErrForbidden})
			f.executeAll(good)
			later(f)
			f.forge.failWith("PutComment", holdfast.ErrForbidden)
			later(f)
			f.forge.failWith("PutComment", nil)
		},
		"a new server": func(f *fleet) {
			f.forge.failWith("PutComment", holdfast.ErrUnavailable)
			f.executeAll(good)
			f.forge.failWith("PutComment", nil)
			f.restart()
			f.look()
			f.lookAt(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			head := f.forge.get(1).Head
			f.forge.watch = func(call string, status holdfast.CommitStatus) {
				switch {
				case call == "PutComment" && f.forge.status(head, holdfast.ContextPlan) == holdfast.StatusSuccess:
					t.Error("the status is green before the comment is there")
				case call == "SetStatus" && status.State == holdfast.StatusSuccess && f.newest("prod").PostedAt.IsZero():
					t.Error("the status is green before the plan counts as posted")
				}
			}
			trouble(f)
			f.executeAll(good)
			later(f)
			if got := f.forge.status(head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
				t.Fatalf("the status is %q in the end: %q", got, f.forge.told(head, holdfast.ContextPlan))
			}
			f.forge.watch = nil
			f.merge(1, byMerge)
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != "" || f.newest("prod").Status != holdfast.RunApplied {
				t.Errorf("merged when it was green, it waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
		})
	}
}

// Words that the code host refuses for good, as in a conversation that is locked:
// nobody has seen the plan, and the status says so.
func TestAPlanThatCannotBeShown(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"forbidden": holdfast.ErrForbidden,
		"invalid":   fmt.Errorf("GitHub answered 422: body is too long: %w", holdfast.ErrRejected),
		"gone":      holdfast.ErrNotFound,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.forge.failWith("PutComment", refusal)
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			head := f.forge.get(1).Head
			for range 12 {
				if got := f.forge.status(head, holdfast.ContextPlan); got == holdfast.StatusSuccess {
					t.Fatal("the status is green, and nobody can see the plan")
				}
				f.clock.Advance(10 * time.Minute)
				f.post()
				f.settle()
			}
			f.post()
			told := f.forge.told(head, holdfast.ContextPlan)
			if last := told[len(told)-1]; !strings.HasPrefix(last, "error the plan cannot be shown") || !strings.Contains(last, refusal.Error()) {
				t.Errorf("the status says %q", told)
			}
			calls := f.forge.count("PutComment")
			f.restart()
			f.look()
			f.lookAt(1)
			f.post()
			if again := f.forge.count("PutComment"); again != calls {
				t.Errorf("%d more calls after a restart", again-calls)
			}

			// A plan that is asked for afterwards is shown, if it can be.
			f.forge.failWith("PutComment", nil)
			f.command(1, "alice", "/holdfast plan")
			f.executeAll(good)
			if got := f.forge.status(head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
				t.Errorf("once it can be shown the status is %q: %q", got, f.forge.told(head, holdfast.ContextPlan))
			}
		})
	}
}

func TestAPlanThatWasRefusedIsNotReviewed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.forge.failWith("PutComment", holdfast.ErrForbidden)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	for range 5 {
		f.clock.Advance(time.Minute)
		f.post()
		f.settle()
	}
	f.merge(1, byMerge)
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonUnreviewed {
		t.Errorf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
}

// The plan that counts is the last one that people saw, and a failure is not a plan.
func TestAPlanThatFailedIsNotReviewed(t *testing.T) {
	t.Parallel()
	again := func(f *fleet, result func(protocol.Assignment) protocol.Result) {
		f.command(1, "alice", "/holdfast plan")
		f.executeAll(result)
	}
	for name, test := range map[string]struct {
		happens func(*fleet)
		applied bool
	}{
		"it failed": {happens: func(f *fleet) { again(f, failing) }},
		"it failed, and is planned again": {happens: func(f *fleet) {
			again(f, failing)
			f.command(1, "alice", "/holdfast plan")
		}},
		"it failed, and was planned again": {happens: func(f *fleet) {
			again(f, failing)
			again(f, good)
		}, applied: true},
		"it was canceled": {happens: func(f *fleet) {
			f.command(1, "alice", "/holdfast plan")
			f.command(1, "alice", "/holdfast cancel")
		}, applied: true},
		"it failed after the merge": {happens: func(f *fleet) {
			f.command(1, "alice", "/holdfast plan")
			f.mergeUnnoticed(1, byMerge)
			f.clock.Advance(2 * time.Second)
			f.executeAll(failing)
		}, applied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t)
			test.happens(f)
			f.clock.Advance(2 * time.Second)
			if f.forge.get(1).State == holdfast.PullRequestOpen {
				f.mergeUnnoticed(1, byMerge)
			}
			f.look()
			f.executeAll(good)
			rec := f.cluster("prod")
			if applied := rec.Applied.SourceDigest == rec.Desired.SourceDigest; applied != test.applied || !applied && rec.Waiting != holdfast.ReasonUnreviewed {
				t.Errorf("applied: %t, it waits for %q (%s): %v", applied, rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
		})
	}
}
