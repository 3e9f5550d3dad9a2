package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
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
	if got := f.cluster("prod").Waiting; got != reconciler.ReasonUnreviewed {
		t.Fatalf("forced back, prod waits for %q, want Unreviewed", got)
	}
	_, err := f.r.Command(t.Context(), holdfast.Command{Verb: holdfast.VerbApply, Clusters: []string{"prod"}, Author: "ann", Trusted: true})
	f.must(err)
	f.settle()
	f.executeAll(good)

	f.repo.Git("update-ref", "refs/heads/"+master, after)
	f.look()
	f.executeAll(good)
	if run := f.newest("prod"); run.Kind != holdfast.RunPlan || f.cluster("prod").Waiting != reconciler.ReasonUnreviewed {
		t.Errorf("forced forth again, there is a %s %s, and prod waits for %q\n%s",
			run.Kind, run.Status, f.cluster("prod").Waiting, strings.Join(f.runs("prod"), "\n"))
	}
}
