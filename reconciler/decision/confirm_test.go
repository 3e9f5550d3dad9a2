package decision_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// TestDecideAppliesWhatIsNamed: of several merges that wait for a person's word, the
// newest one that was reviewed is applied, and only if the word is about that.
func TestDecideAppliesWhatIsNamed(t *testing.T) {
	t.Parallel()
	twoPR := holdfast.PullRequestRef{Repo: onePR.Repo, Number: 2}
	later := holdfast.Review{PullRequest: twoPR, Run: "run-3", Fingerprint: "sha256:g", InputDigest: "sha256:j", PlanDigest: "sha256:e"}
	first := func(in *decision.Input) { in.Merges = append([]decision.Merge{{Review: later}}, in.Merges...) }
	about := func(pr holdfast.PullRequestRef, seen ...string) func(*decision.Input) {
		return func(in *decision.Input) {
			in.Ask = &decision.Ask{Verb: holdfast.VerbApply, Actor: "alice", PullRequest: pr, Seen: seen}
		}
	}
	branch := holdfast.PullRequestRef{}
	moved := decision.Decision{Action: decision.ActionRefuse, Reason: holdfast.ReasonPlanMoved, Detail: "what waits is `run-3`, the plan of infra#2"}
	alone := act(decision.ActionApply, holdfast.ReasonApproved, on(later, holdfast.Review{PullRequest: onePR}), alice)
	for name, c := range map[string]situation{
		"the later pull request":             {onBranch(merged, first, manual, about(twoPR)), alone},
		"the earlier pull request":           {onBranch(merged, first, manual, about(onePR)), moved},
		"the plan of the later":              {onBranch(merged, first, manual, about(branch, "run-3")), alone},
		"the plan of the earlier":            {onBranch(merged, first, manual, about(branch, "run-1")), moved},
		"the plan of the earlier, and where": {onBranch(merged, first, manual, about(onePR, "run-1")), moved},
		"another plan of the later":          {onBranch(merged, first, manual, about(twoPR, "run-2")), moved},
		"a plan of the branch":               {onBranch(merged, first, manual, about(branch, "run-0")), moved},
		"nothing but the cluster":            {onBranch(merged, first, manual, about(branch)), act(decision.ActionApply, holdfast.ReasonApproved, on(later, seen), alice)},
		"the later, which was unseen": {
			onBranch(func(in *decision.Input) {
				in.Merges = append(in.Merges, decision.Merge{Review: holdfast.Review{PullRequest: twoPR}})
			}, merged, manual, about(twoPR)),
			decision.Decision{Action: decision.ActionRefuse, Reason: holdfast.ReasonPlanMoved, Detail: "what waits is `run-1`, the plan of infra#1"},
		},
		"no plan, as none waited": {onBranch(merged, manual, func(in *decision.Input) {
			in.Ask = &decision.Ask{Verb: holdfast.VerbApply, Actor: "alice", Seen: []string{}}
		}), decision.Decision{Action: decision.ActionRefuse, Reason: holdfast.ReasonPlanMoved, Detail: "what waits is `run-1`, the plan of infra#1"}},
		"the earlier, and the later was unseen": {onBranch(mergedUnseen, merged, manual, about(onePR, "run-1")), act(decision.ActionApply, holdfast.ReasonApproved, on(holdfast.Review{PullRequest: onePR}, seen), alice)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, decision.Decide(c.in), sameEmpty); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// A plan of the branch is not applied by a word in a pull request that it is not of.
func TestDecideAppliesWhereItIsSaid(t *testing.T) {
	t.Parallel()
	other := holdfast.PullRequestRef{Repo: onePR.Repo, Number: 9}
	planned := ran("run-2", plan, holdfast.RunPlanned)
	planned.Reviews = []holdfast.Review{{PullRequest: onePR}}
	said := func(pr holdfast.PullRequestRef) func(*decision.Input) {
		return func(in *decision.Input) {
			in.Ask = &decision.Ask{Verb: holdfast.VerbApply, Actor: "alice", Run: "run-2", PullRequest: pr}
		}
	}
	for name, c := range map[string]struct {
		pr   holdfast.PullRequestRef
		want decision.Action
	}{"there": {onePR, decision.ActionApply}, "not in one": {holdfast.PullRequestRef{}, decision.ActionApply}, "elsewhere": {other, decision.ActionRefuse}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := decision.Decide(onBranch(runs(planned), said(c.pr)))
			if d.Action != c.want || c.want == decision.ActionRefuse && d.Reason != holdfast.ReasonPlanMoved {
				t.Errorf("it is %s (%s)", d.Action, d.Reason)
			}
		})
	}
}
