package decision

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// The rules of a pull request, in the order of their list.

// damaged leaves everything as it is until the pull request is on record again.
func damaged(in Input) (Decision, bool) {
	return Decision{Action: ActionNone, Reason: holdfast.ReasonUnreadable}, in.PullRequest.Damaged
}

// closed ends all plans of a pull request that is no longer open; the
// tracked branch decides what a merge means.
func closed(in Input) (Decision, bool) {
	if in.PullRequest.State == holdfast.PullRequestOpen {
		return Decision{}, false
	}
	return Decision{Action: ActionNone, Reason: holdfast.ReasonClosed, Cancel: unfinished(in.Runs)}, true
}

func notAffected(in Input) (Decision, bool) {
	_, ok := Affected(in)
	return Decision{Action: ActionNone, Reason: holdfast.ReasonNotAffected, Cancel: unfinished(in.Runs)}, !ok
}

// notPlanned covers forks, drafts, conflicts, faults, deletions of what is
// protected or was never there: reasons why there is nothing that could be
// planned.
func notPlanned(in Input) (Decision, bool) {
	want, _ := Affected(in)
	d := Decision{Action: ActionWait, Reason: in.PullRequest.Reason, Cancel: unfinished(in.Runs)}
	switch {
	case d.Reason != "":
	case want.Removed && in.Last.Run == "":
		d.Reason = holdfast.ReasonNeverApplied
	case want.Removed && guardedByDocument(in):
		d.Reason = holdfast.ReasonProtected
	case proposed(in) == "":
		d.Reason = holdfast.ReasonInvalid
	default:
		return Decision{}, false
	}
	return d, true
}

func replanRequested(in Input) (Decision, bool) {
	if in.Ask == nil || in.Ask.Verb != holdfast.VerbPlan {
		return Decision{}, false
	}
	return Decision{
		Action: ActionPlan, Reason: holdfast.ReasonRequested,
		Cancel: unfinished(in.Runs), Actor: in.Ask.Actor,
	}, true
}

func applyBeforeMerge(in Input) (Decision, bool) {
	return Decision{Action: ActionRefuse, Reason: holdfast.ReasonNotMerged},
		in.Ask != nil && in.Ask.Verb == holdfast.VerbApply
}

// supersededPlan replaces a plan that is not finished by one of what Git says now.
// A sample does not stand for a plan that people review, nor the other way round.
func supersededPlan(in Input) (Decision, bool) {
	last := Newest(in.Runs)
	want, _ := Affected(in)
	if last.ID == "" || last.SourceDigest.Equal(proposed(in)) && last.Sample == want.Sample {
		return Decision{}, false
	}
	return Decision{Action: ActionPlan, Reason: holdfast.ReasonNewRevision, Cancel: unfinished(in.Runs)}, true
}

// carriedPlan lets a plan hold for a newer head, or base, that says the same of
// this cluster.
func carriedPlan(in Input) (Decision, bool) {
	last := Newest(in.Runs)
	if last.ID == "" || last.Revision == in.PullRequest.Head && last.Base == in.PullRequest.Base {
		return Decision{}, false
	}
	return Decision{Action: ActionCarry, Reason: holdfast.ReasonUpToDate, Run: last.ID}, true
}

func pendingPlan(in Input) (Decision, bool) {
	last := Newest(in.Runs)
	return Decision{Action: ActionNone, Reason: holdfast.ReasonInProgress}, last.ID != "" && !last.Status.Done()
}

// stalePlan plans again when what the plan was made of has changed: that of its last
// attempt, if there was any.
func stalePlan(in Input) (Decision, bool) {
	last := Newest(in.Runs)
	switch {
	case last.ID == "":
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonNewRevision}, true
	case last.Attempt > 0 && last.AppliedRun != in.LastApply:
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonAppliedSince}, true
	case last.Attempt > 0 && last.StateSerial != in.Cluster.StateSerial:
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonStateMoved}, true
	case last.Attempt > 0 && len(last.Provisional) > 0 && settledSince(in, last):
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonDependencyApplied}, true
	case last.Status == holdfast.RunInterrupted:
		return again(in, holdfast.ReasonInterrupted), true
	case last.Status.Good() && last.PlanDigest == "" && !last.Sample:
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonPlanOutdated, Background: true}, true
	case last.Status.Good() && !last.Sample && in.Policies != "" && last.PoliciesGiven != in.Policies:
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonPolicyOutdated, Background: true}, true
	default:
		return Decision{}, false
	}
}

// settledSince reports whether all that a provisional plan was made ahead of is
// applied now.
func settledSince(in Input, plan holdfast.Run) bool {
	ahead := Unsettled(in.Parents)
	return !slices.ContainsFunc(plan.Provisional, func(name string) bool { return slices.Contains(ahead, name) })
}

// endedPlan makes a plan again that gave up waiting for a lock which somebody has released
// since: they have asked for that, so that it is made.
func endedPlan(in Input) (Decision, bool) {
	switch last := Newest(in.Runs); {
	case last.Status == holdfast.RunErrored && in.Released:
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonRequested}, true
	case last.Status == holdfast.RunErrored:
		return Decision{Action: ActionWait, Reason: holdfast.ReasonPlanFailed}, true
	case GivenUp(last): // it was closed, a draft or in conflict meanwhile
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonNewRevision}, true
	case last.Status == holdfast.RunCanceled:
		return Decision{Action: ActionWait, Reason: holdfast.ReasonCanceled}, true
	default:
		return Decision{}, false
	}
}

// waiverEnds comes back when one of the documents that waive policies for the plan ends, or has
// to say that it will: what is shown of the plan is another thing then.
func waiverEnds(in Input) (Decision, bool) {
	wait := time.Duration(0)
	for _, w := range Newest(in.Runs).PolicyWaivers {
		for _, at := range []time.Time{w.End().Add(-holdfast.WaiverNotice), w.End()} {
			if left := at.Sub(in.Now); !w.End().IsZero() && left > 0 && (wait == 0 || left < wait) {
				wait = left
			}
		}
	}
	return Decision{Action: ActionNone, Reason: holdfast.ReasonUpToDate, After: wait}, wait > 0
}
