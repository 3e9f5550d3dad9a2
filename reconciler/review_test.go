package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// A review is for one apply. A branch that is forced back and forth does not
// bring it to life again.
func TestReviewIsNotUsedTwice(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	before := strings.TrimSpace(f.repo.Git("rev-parse", master))
	f.merge(1, byMerge)
	f.executeAll(good)
	after := strings.TrimSpace(f.repo.Git("rev-parse", master))

	f.repo.Git("update-ref", "refs/heads/"+master, before)
	f.look()
	f.executeAll(good)
	if got := f.cluster("prod").Waiting; got != holdfast.ReasonUnreviewed {
		t.Fatalf("forced back, prod waits for %q, want Unreviewed", got)
	}
	f.api("ann", holdfast.VerbApply, "prod")
	f.executeAll(good)

	f.repo.Git("update-ref", "refs/heads/"+master, after)
	f.look()
	f.executeAll(good)
	if run := f.newest("prod"); run.Kind != holdfast.RunPlan || f.cluster("prod").Waiting != holdfast.ReasonUnreviewed {
		t.Errorf("forced forth again, there is a %s %s, and prod waits for %q\n%s",
			run.Kind, run.Status, f.cluster("prod").Waiting, strings.Join(f.runs("prod"), "\n"))
	}
}

// A pull request that was reviewed against the tracked branch and merged
// elsewhere is not a review of what comes to the tracked branch by a push.
func TestRetargetedPullRequestIsNotAReview(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.change(1, func(pr *holdfast.PullRequest) { pr.BaseBranch = "staging" })
	f.mergeUnnoticed(1, byMerge) // as if somebody pushed the same commit to the tracked branch
	f.look()
	f.lookAt(1)
	f.executeAll(good)
	if run := f.newest("prod"); run.Kind != holdfast.RunPlan || f.cluster("prod").Waiting != holdfast.ReasonUnreviewed {
		t.Errorf("there is a %s %s, and prod waits for %q", run.Kind, run.Status, f.cluster("prod").Waiting)
	}
}

// A person who asked for the apply of a plan that was shown, in a comment that
// reaches us only after another plan was shown, did not mean that one.
func TestLateCommandDoesNotMeanALaterPlan(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.forge.permission["ann"] = holdfast.PermissionWrite
	f.must(f.r.PollOnce(t.Context(), infra))
	f.merge(1, byMerge)
	f.finding = "other"
	f.executeAll(planned) // the apply finds another plan, and waits
	f.clock.Advance(time.Minute)
	f.forge.says(1, "ann", "/holdfast apply")
	f.clock.Advance(time.Minute)
	_, err := f.r.Command(t.Context(), holdfast.Command{Verb: holdfast.VerbPlan, Clusters: []string{"prod"}, Author: "bob", Trusted: true})
	f.must(err)
	f.settle()
	f.finding = "third"
	f.executeAll(planned)
	f.clock.Advance(time.Minute)
	f.must(f.r.PollOnce(t.Context(), infra))
	f.r.Obey(t.Context())
	f.settle()
	if run := f.newest("prod"); run.Kind != holdfast.RunPlan {
		t.Errorf("there is an %s of %s", run.Kind, run.Shown)
	}
	refused, err := f.store.Commands(t.Context(), holdfast.CommandRefused)
	f.must(err)
	if len(refused) != 1 || refused[0].Author != "ann" {
		t.Errorf("the refused commands are %+v, want that of ann", refused)
	}
}
