package reconciler_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// hugely ends a run with a plan that destroys more than a comment can show.
func (f *fleet) hugely(a protocol.Assignment) {
	f.t.Helper()
	plan := holdfast.Plan{Counts: holdfast.Counts{Delete: 1000}}
	for i := range plan.Counts.Delete {
		plan.Changes = append(plan.Changes, holdfast.ResourceChange{
			Address: fmt.Sprintf("null_resource.%s_%d", strings.Repeat("long_", 14), i), Type: "null_resource", Action: holdfast.ActionDelete,
		})
	}
	summary, err := json.Marshal(plan)
	f.must(err)
	f.must(f.store.PutArtefact(f.t.Context(), a.AttemptRef, protocol.ArtefactPlan, bytes.NewReader(summary)))
	f.finish(a, planned(a))
}

// progressed is a fleet with a pull request of two clusters. Its comment shows the plan of
// prod, and the plan of preprod is being made.
func progressed(t *testing.T, files map[string]string) (*fleet, protocol.Assignment) {
	t.Helper()
	f := newFleet(t, files)
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two"), "infra/preprod/main.tf": module("two")})
	f.clock.Advance(time.Minute) // a word of progress is due
	first := f.claim()
	other := f.claim(first.AttemptRef)
	if first.Cluster != "prod" {
		first, other = other, first
	}
	f.must(f.store.PutArtefact(t.Context(), first.AttemptRef, protocol.ArtefactPlan, strings.NewReader("{}")))
	f.finish(first, planned(first))
	f.post()
	if run := f.newest("prod"); run.PostedAt.IsZero() || other.Cluster != "preprod" {
		t.Fatalf("the comment does not show the plan of prod:\n%s", f.forge.comment(1))
	}
	f.clock.Advance(2 * time.Second) // the stamps of a forge have seconds
	return f, other
}

// bare fails unless the comment shows none of the plans.
func (f *fleet) bare() {
	f.t.Helper()
	if comment := f.forge.comment(1); !strings.Contains(comment, "None of these plans counts as reviewed") {
		f.t.Fatalf("the comment is:\n%.1000s", comment)
	}
	f.clock.Advance(2 * time.Second)
}

// tells has the code host say another state of the pull request than it has.
func (f *fleet) tells(state holdfast.PullRequestState) {
	pr := f.forge.get(1)
	pr.State = state
	f.forge.set(pr)
}

// Nobody has reviewed a plan that an earlier comment has shown, if the one that stands at the
// merge shows none of the plans.
func TestPlansThatTheLastCommentDoesNotShow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		happens func(*fleet, protocol.Assignment)
		applied bool
	}{
		"they do not fit": {happens: func(f *fleet, a protocol.Assignment) {
			f.hugely(a)
			f.post()
			f.bare()
		}},
		"of another push": {happens: func(f *fleet, a protocol.Assignment) {
			f.finish(a, planned(a))
			f.post()
			f.push(1, map[string]string{"infra/preprod/main.tf": module("three")})
			f.hugely(f.claim())
			f.post()
			f.bare()
		}},
		"the comment is refused": {happens: func(f *fleet, a protocol.Assignment) {
			f.forge.failWith("PutComment", holdfast.ErrForbidden)
			f.finish(a, planned(a))
			for range 5 {
				f.post()
				f.clock.Advance(time.Minute)
				f.settle()
			}
			if told := f.forge.told(f.forge.get(1).Head, holdfast.ContextPlan); !strings.Contains(told[len(told)-1], "cannot be shown") {
				f.t.Fatalf("the status is %q", told)
			}
		}},
		"the answer is lost": {happens: func(f *fleet, a protocol.Assignment) {
			f.hugely(a)
			f.forge.lose = 1
			f.post()
			f.bare()
		}},
		"the answer is lost, and read back": {happens: func(f *fleet, a protocol.Assignment) {
			f.hugely(a)
			f.forge.lose = 1
			f.post()
			f.bare()
			f.mergeUnnoticed(1, byMerge)
			f.clock.Advance(time.Minute)
			f.post()
		}},
		"the answer is lost, and it is written over": {happens: func(f *fleet, a protocol.Assignment) {
			f.hugely(a)
			f.forge.lose = 1
			f.post()
			f.bare()
			f.mergeUnnoticed(1, byMerge)
			f.clock.Advance(2 * time.Second)
			_, err := f.store.StoreCommand(f.t.Context(), commandsOf(f.forge.says(1, "alice", "/holdfast plan preprod"))[0])
			f.must(err)
			f.tells(holdfast.PullRequestOpen) // the merge is not told of yet
			f.r.Obey(f.t.Context())
			f.settle()
			f.executeAll(good)
			f.clock.Advance(time.Minute)
			f.post()
			f.tells(holdfast.PullRequestMerged)
		}},
		"merged, and shown again before that is noticed": {happens: func(f *fleet, a protocol.Assignment) {
			f.hugely(a)
			f.post()
			f.bare()
			f.mergeUnnoticed(1, byMerge)
			f.tells(holdfast.PullRequestOpen)
			f.clock.Advance(2 * time.Second)
			f.command(1, "alice", "/holdfast plan preprod")
			f.executeAll(good)
			f.tells(holdfast.PullRequestMerged)
		}},
		"shown again by a push": {happens: func(f *fleet, a protocol.Assignment) {
			f.hugely(a)
			f.post()
			f.bare()
			f.push(1, map[string]string{"infra/preprod/main.tf": module("one")})
			f.executeAll(good)
		}, applied: true},
		"shown again by a plan": {happens: func(f *fleet, a protocol.Assignment) {
			f.hugely(a)
			f.post()
			f.bare()
			f.command(1, "alice", "/holdfast plan preprod")
			f.executeAll(good)
		}, applied: true},
		"refused, and posted later": {happens: func(f *fleet, a protocol.Assignment) {
			f.forge.failWith("PutComment", holdfast.ErrForbidden)
			f.finish(a, planned(a))
			for range 5 {
				f.post()
				f.clock.Advance(time.Minute)
				f.settle()
			}
			f.forge.failWith("PutComment", nil)
			f.command(1, "alice", "/holdfast plan")
			f.executeAll(good)
		}, applied: true},
		"merged before": {happens: func(f *fleet, a protocol.Assignment) {
			f.mergeUnnoticed(1, byMerge)
			f.clock.Advance(2 * time.Second)
			f.hugely(a)
			f.post()
			f.bare()
		}, applied: true},
		"merged before it was refused": {happens: func(f *fleet, a protocol.Assignment) {
			f.mergeUnnoticed(1, byMerge)
			f.clock.Advance(2 * time.Second)
			f.forge.failWith("PutComment", holdfast.ErrForbidden)
			f.finish(a, planned(a))
			for range 5 {
				f.post()
				f.clock.Advance(time.Minute)
				f.settle()
			}
		}, applied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, a := progressed(t, twoClusters())
			test.happens(f, a)
			f.clock.Advance(2 * time.Second)
			if f.forge.get(1).State == holdfast.PullRequestOpen {
				f.mergeUnnoticed(1, byMerge)
			}
			f.look()
			f.executeAll(good)
			f.clock.Advance(time.Minute)
			f.post()
			rec := f.cluster("prod")
			if applied := rec.Applied.SourceDigest == rec.Desired.SourceDigest; applied != test.applied || !applied && rec.Waiting != holdfast.ReasonUnreviewed {
				t.Errorf("applied: %t, it waits for %q (%s): %v", applied, rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
		})
	}
}

// Who approves what our comment does not show has not seen it.
func TestAnApprovalOfWhatIsNotShown(t *testing.T) {
	t.Parallel()
	review := func(f *fleet) {
		f.clock.Advance(2 * time.Second)
		f.change(1, func(pr *holdfast.PullRequest) {
			pr.Verdicts = []holdfast.Verdict{{By: "alice", Approves: true, Head: pr.Head, At: f.clock.Now()}}
			pr.Approved = true
		})
		f.clock.Advance(2 * time.Second)
	}
	none := func(*fleet) {}
	for name, test := range map[string]struct {
		shown, unshown, again func(*fleet)
		counts                bool
	}{
		"while it is shown":     {shown: review, unshown: none, again: none, counts: true},
		"while it is not":       {shown: none, unshown: review, again: none},
		"when it is again":      {shown: none, unshown: none, again: review, counts: true},
		"by command":            {shown: func(f *fleet) { f.obeys(1, "alice", "/holdfast approve") }, unshown: none, again: none, counts: true},
		"by command that fails": {shown: none, unshown: func(f *fleet) { f.command(1, "alice", "/holdfast approve") }, again: none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			files["clusters/prod.yaml"] = document("prod", "apply: {requires: [approved]}")
			f, a := progressed(t, files)
			test.shown(f)
			f.clock.Advance(2 * time.Second)
			f.hugely(a)
			f.post()
			f.bare()
			test.unshown(f)
			f.command(1, "alice", "/holdfast plan preprod")
			f.executeAll(good)
			test.again(f)
			f.clock.Advance(2 * time.Second)
			f.merge(1, byMerge)
			f.executeAll(good)
			rec := f.cluster("prod")
			if counts := rec.Applied.SourceDigest == rec.Desired.SourceDigest; counts != test.counts || !counts && rec.Waiting != holdfast.ReasonNotApproved {
				t.Errorf("applied: %t, it waits for %q (%s): %v", counts, rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
		})
	}
}
