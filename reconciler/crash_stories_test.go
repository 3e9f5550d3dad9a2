//go:build !race

package reconciler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// TestCrashes has the server die at each of its writes between a merge and the
// end of what follows from it: in the end all is as if it had not.
func TestCrashes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("begins again at every write")
	}
	for name, story := range map[string]struct {
		files map[string]string
		kind  holdfast.RunKind
		phase holdfast.Phase
	}{
		"an apply":  {map[string]string{"infra/prod/main.tf": module("two")}, holdfast.RunApply, holdfast.PhaseActive},
		"a destroy": {map[string]string{"clusters/prod.yaml": gitserver.Delete}, holdfast.RunDestroy, holdfast.PhaseDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := newFleet(t, twoClusters())
			base.adopt()
			base.open(1, story.files)
			base.executeAll(good)
			base.mergeUnnoticed(1, byMerge)
			base.must(base.store.Close())
			writes := crashAt(base.copied(), story.kind, story.phase, -1)
			if writes < 8 {
				t.Fatalf("the story has %d writes only", writes)
			}
			for n := range writes {
				crashAt(base.copied(), story.kind, story.phase, n)
			}
		})
	}
}

// TestCrashesOfTheOutbox has the server die at each of its writes to the outbox,
// where the answer to a comment got lost before, and who waits for a green status
// merges at once: what was merged was seen.
func TestCrashesOfTheOutbox(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("begins again at every write")
	}
	var writes int
	for n := -1; n < writes; n++ {
		f := newFleet(t, twoClusters())
		f.adopt()
		f.forge.lose = 1
		c := &crashing{fleet: f, done: map[holdfast.AttemptRef]protocol.Result{}, made: map[string]bool{}}
		c.store = &mortal{Store: f.store, left: n, outbox: true}
		c.restart(func(opts *reconciler.Options) { opts.Store = c.store })
		first := c.store
		f.openUnnoticed(1, map[string]string{"infra/prod/main.tf": module("two")})
		c.after = func() {
			pr := f.forge.get(1)
			if pr.State == holdfast.PullRequestOpen && f.forge.status(pr.Head, holdfast.ContextPlan) == holdfast.StatusSuccess {
				f.mergeUnnoticed(1, byMerge)
			}
		}
		for steps, idle := 0, 0; idle < 6; steps++ {
			if idle++; !c.step() {
				idle = 0
			}
			if steps > 80 {
				t.Fatalf("it never comes to rest after a crash at %s: %v", first.last, f.runs("prod"))
			}
		}
		if n < 0 {
			if writes = first.writes; writes < 5 {
				t.Fatalf("the story has %d writes only", writes)
			}
		}
		where := fmt.Sprintf("after a crash at write %d, %s,", n, first.last)
		if rec := f.cluster("prod"); rec.Waiting != "" || f.newest("prod").Status != holdfast.RunApplied {
			t.Errorf("%s it waits for %q: %v", where, rec.Waiting, f.runs("prod"))
		}
		if ours := f.forge.ours(); len(ours) != 1 || !strings.Contains(ours[0].Body, "Merged as") {
			t.Errorf("%s the comments are %+v", where, ours)
		}
		if got := f.forge.status(f.forge.get(1).MergeCommit, holdfast.ContextApply); got != holdfast.StatusSuccess {
			t.Errorf("%s the status of the merge is %q", where, got)
		}
	}
}
