package reconciler_test

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A pull request that is open for long is merged after many that are newer: it is the last
// merge all the same, with what people have seen of it and what its apply requires. One
// that nobody has seen has to be approved before it is applied by a person's word.
func TestAnOldPullRequestIsMergedLast(t *testing.T) {
	t.Parallel()
	const newer = 20
	for name, seen := range map[string]bool{"reviewed": true, "not reviewed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			files["clusters/prod.yaml"] = document("prod", "apply: {requires: [approved]}")
			f := newFleet(t, files)
			f.adopt()
			for number := 2; number < 2+newer; number++ { // as if each had been merged and applied
				pr := holdfast.PullRequestRecord{Clusters: []holdfast.PullRequestCluster{{Name: "prod"}}}
				pr.PullRequestRef, pr.State = holdfast.PullRequestRef{Repo: infra, Number: number}, holdfast.PullRequestMerged
				pr.MergeCommit, pr.MergedAt = f.cluster("prod").Applied.Revision, f.clock.Now()
				_, err := f.store.SavePullRequest(t.Context(), pr)
				f.must(err)
			}
			f.clock.Advance(1)
			change := map[string]string{"infra/prod/main.tf": module("two")}
			if seen {
				f.open(1, change)
				f.executeAll(good)
				f.post()
			} else {
				f.openUnnoticed(1, change)
			}
			f.merge(1, byMerge)
			want := holdfast.ReasonNotApproved
			if !seen {
				want = holdfast.ReasonUnreviewed
				f.executeAll(planned)
			}
			if rec := f.cluster("prod"); rec.Waiting != want {
				t.Errorf("it waits for %q (%s), want %q", rec.Waiting, rec.WaitingDetail, want)
			}
			if done := f.api("alice", holdfast.VerbApply, "prod"); done.Status == holdfast.CommandDone {
				t.Errorf("the apply without approval is %s: %v", done.Status, f.runs("prod"))
			}
			if done := f.command(1, "alice", "/holdfast approve"); done.Status != holdfast.CommandDone {
				t.Fatalf("the approval is %s: %s", done.Status, done.Reply)
			}
			if !seen {
				if done := f.api("alice", holdfast.VerbApply, "prod"); done.Status != holdfast.CommandDone {
					t.Errorf("approved, the apply is %s: %s", done.Status, done.Reply)
				}
			}
			f.executeAll(good)
			rec, run := f.cluster("prod"), f.newest("prod")
			mine := func(v holdfast.Review) bool { return v.PullRequest.Number == 1 }
			if rec.Waiting != "" || rec.Applied.Run != run.ID || !slices.ContainsFunc(run.Reviews, mine) {
				t.Errorf("it waits for %q, its apply stands for %+v", rec.Waiting, run.Reviews)
			}
		})
	}
}
