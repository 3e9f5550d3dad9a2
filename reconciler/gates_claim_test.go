package reconciler_test

import (
	"maps"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// An apply that is queued is taken back by what the code host tells of before an agent
// takes it, and queued again when its conditions are met again.
func TestAQueuedApplyIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		objects, relents func(*fleet)
	}{
		"changes are requested": {
			func(f *fleet) {
				f.change(1, func(pr *holdfast.PullRequest) {
					pr.Verdicts = []holdfast.Verdict{{By: "carol", Head: pr.Head, At: f.clock.Now()}}
				})
			},
			func(f *fleet) { f.change(1, func(pr *holdfast.PullRequest) { pr.Verdicts = nil }) },
		},
		"the approval ends": {
			func(f *fleet) {
				f.forge.mu.Lock()
				f.forge.comments[len(f.forge.comments)-1].UpdatedAt = f.clock.Now()
				f.forge.mu.Unlock()
				f.lookAt(1)
			},
			func(f *fleet) { f.obeys(1, "alice", "/holdfast approve") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := approvedAndMerged(t)
			tt.objects(f)
			f.expectQueued("prod")
			if a := f.claim(); a.Run != "" {
				t.Fatalf("a %s was handed out", a.Kind)
			}
			f.settle()
			if rec, run := f.cluster("prod"), f.newest("prod"); rec.Waiting != holdfast.ReasonNotApproved || run.Reason != holdfast.ReasonNotApproved {
				t.Errorf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
			f.clock.Advance(time.Minute)
			tt.relents(f)
			f.executeAll(good)
			f.waitsForNothing("prod")
		})
	}
}

// A check of drift is not an apply: it is handed out while a merge lacks its approval.
func TestADriftCheckNeedsNoApproval(t *testing.T) {
	t.Parallel()
	f := gated(t)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonNotApproved {
		t.Fatalf("it waits for %q", rec.Waiting)
	}
	f.claimDrift("prod")
}

// approvedAndMerged is a fleet whose cluster prod has an approved apply in the queue.
func approvedAndMerged(t *testing.T) *fleet {
	t.Helper()
	f := gated(t)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.obeys(1, "alice", "/holdfast approve")
	f.merge(1, byMerge)
	f.expectQueued("prod")
	f.clock.Advance(time.Minute)
	return f
}

func (f *fleet) expectQueued(cluster string) {
	f.t.Helper()
	if run := f.newest(cluster); run.Kind != holdfast.RunApply || run.Status != holdfast.RunQueued {
		f.t.Fatalf("the newest run of %s is %s %s: %v", cluster, run.Kind, run.Status, f.runs(cluster))
	}
}

// What was asked of the code host to queue an apply is on record when an agent takes it,
// though no delivery has told of it.
func TestAQueuedApplyIsNotTakenBackByAnOldReview(t *testing.T) {
	t.Parallel()
	f := gated(t)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.obeys(1, "alice", "/holdfast approve")
	f.change(1, func(pr *holdfast.PullRequest) {
		pr.Verdicts = []holdfast.Verdict{{By: "carol", Head: pr.Head, At: f.clock.Now()}}
	})
	f.merge(1, byMerge)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonNotApproved {
		t.Fatalf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
	pr := f.forge.get(1)
	pr.Verdicts = nil
	f.forge.set(pr)
	f.clock.Advance(time.Minute)
	f.ask("prod")
	f.expectQueued("prod")
	if a := f.claim(); a.Kind != holdfast.RunApply {
		t.Errorf("a %q was handed out: %v", a.Kind, f.runs("prod"))
	}
}

// What a person has seen, had approved and applied is judged by that plan.
func TestAQueuedApplyOfAnotherPlanIsJudgedByThat(t *testing.T) {
	t.Parallel()
	f := approvedAndMerged(t)
	f.finding = "changed meanwhile"
	f.executeAll(differs)
	f.obeys(1, "alice", "/holdfast approve")
	f.obeys(1, "alice", "/holdfast apply")
	f.clock.Advance(time.Minute)
	f.change(1, func(pr *holdfast.PullRequest) {
		pr.Verdicts = []holdfast.Verdict{{By: "carol", Head: pr.Head, At: f.clock.Now()}}
	})
	if a := f.claim(); a.Kind == holdfast.RunApply {
		t.Fatalf("it was handed out although changes were requested")
	}
	f.clock.Advance(time.Minute)
	f.change(1, func(pr *holdfast.PullRequest) { pr.Verdicts = nil })
	f.executeAll(differs)
	f.obeys(1, "alice", "/holdfast apply")
	f.executeAll(good)
	f.waitsForNothing("prod")
}

// A claim asks no code host: one that hangs would keep all agents waiting, also those
// that could execute something of another repository.
func TestAClaimAsksNoCodeHost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		want  holdfast.RunKind
	}{
		"an apply":  {map[string]string{"infra/prod/main.tf": module("two")}, holdfast.RunApply},
		"a destroy": {map[string]string{"clusters/prod.yaml": gitserver.Delete}, holdfast.RunDestroy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			files["clusters/prod.yaml"] = document("prod", "apply: {requires: [approved]}")
			f := built(t, files)
			f.open(1, tt.files)
			f.executeAll(withEngine)
			f.obeys(1, "alice", "/holdfast approve")
			f.merge(1, byMerge)
			f.clock.Advance(time.Minute)
			f.forge.mu.Lock()
			before := maps.Clone(f.forge.calls)
			f.forge.mu.Unlock()
			if a := f.claim(); a.Kind != tt.want {
				t.Errorf("%q was handed out: %v", a.Kind, f.runs("prod"))
			}
			f.forge.mu.Lock()
			defer f.forge.mu.Unlock()
			if !maps.Equal(before, f.forge.calls) {
				t.Errorf("the code host was asked for %v, before the claim for %v", f.forge.calls, before)
			}
		})
	}
}
