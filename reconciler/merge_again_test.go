package reconciler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// differs is an apply that comes to something else than what was reviewed.
func differs(a protocol.Assignment) protocol.Result {
	result := planned(a)
	if a.Kind.Writes() {
		result.Reason = holdfast.ReasonPlanChanged
	}
	return result
}

// unplannable is an apply that cannot even plan.
func unplannable(a protocol.Assignment) protocol.Result {
	if !a.Kind.Writes() {
		return planned(a)
	}
	return protocol.Result{Status: holdfast.RunErrored, Failure: &holdfast.Failure{
		Step: "plan", Summary: "no such region", Cause: "InvalidConfiguration",
	}}
}

// ways in which an apply ends that has not begun, and why the cluster waits then.
func ways() map[string]struct {
	ends func(*fleet)
	held holdfast.Reason
} {
	return map[string]struct {
		ends func(*fleet)
		held holdfast.Reason
	}{
		"its plan had differed": {func(f *fleet) { f.executeAll(differs) }, holdfast.ReasonPlanChanged},
		"it had not planned":    {func(f *fleet) { f.executeAll(unplannable) }, holdfast.ReasonPlanFailed},
		"it was canceled":       {func(f *fleet) { f.api("root", holdfast.VerbCancel, "prod") }, holdfast.ReasonCanceled},
	}
}

// What came of a merge that was taken back does not hold the same content when that
// is reviewed and merged once more.
func TestTheSameContentIsReviewedAgain(t *testing.T) {
	t.Parallel()
	for name, first := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			turn := func(number int, text string) {
				f.open(number, map[string]string{"infra/prod/main.tf": module(text)})
				f.executeAll(planned)
				f.merge(number, byMerge)
			}
			turn(1, "two")
			first.ends(f)
			if got := f.cluster("prod").Waiting; got != first.held {
				t.Fatalf("it waits for %q, want %s", got, first.held)
			}
			turn(2, "one")
			f.executeAll(good)
			turn(3, "two")
			f.executeAll(good)
			f.ticks()
			if rec := f.cluster("prod"); rec.Waiting != "" || f.newest("prod").Status != holdfast.RunApplied {
				t.Errorf("what was reviewed in #3 waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
			for _, status := range f.forge.told(f.forge.get(3).MergeCommit, holdfast.ContextApply) {
				if strings.HasPrefix(status, "failure") {
					t.Errorf("its merge was told of as %q", status)
				}
			}
		})
	}
}

// The same holds for a plan that is older, as its pull request was open all the time: it
// was merged later.
func TestAnOlderPlanOfTheSameContentIsMerged(t *testing.T) {
	t.Parallel()
	for name, first := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			for _, number := range []int{1, 3} {
				f.open(number, map[string]string{"infra/prod/main.tf": module("two"), "README.md": fmt.Sprint(number)})
				f.executeAll(planned)
			}
			f.ticks()
			f.merge(1, byMerge)
			first.ends(f)
			ended := f.newest("prod")
			f.ticks()
			if got := f.cluster("prod").Waiting; got != first.held {
				t.Fatalf("it waits for %q, want %s", got, first.held)
			}
			f.open(2, map[string]string{"infra/prod/main.tf": module("one"), "README.md": "hello"})
			f.executeAll(planned)
			f.merge(2, byMerge)
			f.executeAll(good)
			f.ticks()
			f.executeAll(planned)
			f.merge(3, byMerge)
			f.executeAll(good)
			f.ticks()
			rec, newest := f.cluster("prod"), f.newest("prod")
			if rec.Waiting != "" || newest.Status != holdfast.RunApplied {
				t.Fatalf("what was reviewed in #3 waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
			for _, status := range f.forge.told(f.forge.get(3).MergeCommit, holdfast.ContextApply) {
				if strings.HasPrefix(status, "failure") {
					t.Errorf("its merge was told of as %q", status)
				}
			}
			if newest.Reviews[0].PullRequest.Number != 3 || newest.Reviews[0].Run > ended.ID {
				t.Errorf("applied is %+v: it was to be the plan of before %s", newest.Reviews, ended.ID)
			}
		})
	}
}

// A plan that a person asked for and got ends the wait for one.
func TestAGoodPlanEndsPlanFailed(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.executeAll(unplannable)
	f.command(1, "alice", "/holdfast plan")
	f.executeAll(unplannable)
	rec := f.cluster("prod")
	if rec.Waiting != holdfast.ReasonReplanned {
		t.Errorf("it waits for %q", rec.Waiting)
	}
	if relation := decision.RelationOf(rec); relation.Failed {
		t.Errorf("those that depend on it are told %+v", relation)
	}
	f.ticks()
	f.command(1, "alice", "/holdfast apply")
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != "" || f.newest("prod").Status != holdfast.RunApplied {
		t.Errorf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
}

// A change that waits is applied by command, whatever has drifted beside it.
func TestWaitingChangeIsAppliedWithDrift(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")})
	f.look()
	f.executeAll(planned)
	f.drift(scaled("5"))
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonUnreviewed || rec.Drift.Status != holdfast.DriftFound {
		t.Fatalf("it waits for %q, its drift is %s", rec.Waiting, rec.Drift.Status)
	}
	if c := f.asks(holdfast.VerbApply, "prod"); c.Status != holdfast.CommandDone {
		t.Fatalf("apply: %s: %s", c.Status, c.Reply)
	}
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != "" || f.newest("prod").Status != holdfast.RunApplied {
		t.Errorf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
}

// A head that moved at the last moment was not looked at before the merge. What it
// asks for was reviewed if that is what was shown before, and not otherwise.
func TestHeadMovesAtTheLastMoment(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		moves []map[string]string // commits on top of what was planned and shown
		look  bool                // before the last one
		want  string
	}{
		"to the same":            {[]map[string]string{{"README.md": "x"}}, false, "apply queued Merged"},
		"to the same, at length": {[]map[string]string{{"infra/prod/main.tf": module("x")}, {"infra/prod/main.tf": module("two")}}, false, "apply queued Merged"},
		"to something else":      {[]map[string]string{{"infra/prod/main.tf": module("three")}}, false, "plan queued Unreviewed"},
		"back to what was shown before the last plan": {
			[]map[string]string{{"infra/prod/main.tf": module("three")}, {"infra/prod/main.tf": module("two")}}, true, "plan queued Unreviewed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t)
			for i, files := range tt.moves {
				if tt.look && i == len(tt.moves)-1 {
					f.lookAt(1)
					f.executeAll(planned)
				}
				pr := f.forge.get(1)
				head := f.repo.Commit(pr.Branch, "more", files)
				f.repo.SetPullRequest(1, head, "")
				pr.Head = holdfast.Revision(head)
				f.forge.set(pr)
			}
			f.merge(1, byMerge)
			runs := f.runs("prod")
			if got := runs[len(runs)-1]; got != tt.want {
				t.Errorf("the newest run is %q, want %q", got, tt.want)
			}
			if name != "to the same" {
				return
			}
			// The plan that was shown is the plan of the head.
			f.executeAll(good)
			f.post()
			if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
				t.Errorf("the plan status of the head is %q", got)
			}
		})
	}
}
