package report

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// PolicyStatus returns holdfast/policy for the head of an open pull request: a failure if
// policies do not let one of its plans pass, or one could not be made.
func PolicyStatus(r PullRequest) holdfast.CommitStatus {
	state, description := policyState(r)
	return r.linked(status(r.PullRequest.Head, holdfast.ContextPolicy, state, description))
}

func policyState(r PullRequest) (holdfast.StatusState, string) {
	switch pr := r.PullRequest; {
	case pr.Reason == holdfast.ReasonDraft:
		return holdfast.StatusPending, plain(reasonOf(pr.Reason).Words)
	case pr.Reason == holdfast.ReasonOtherBase:
		return holdfast.StatusSuccess, "nothing to plan: " + plain(reasonOf(pr.Reason).Words)
	case pr.Reason == holdfast.ReasonUnreadable:
		return holdfast.StatusError, plain(reasonOf(pr.Reason).Words)
	case pr.Reason != "": // nobody knows what its plans would be
		return holdfast.StatusFailure, "not evaluated: " + plain(reasonOf(pr.Reason).Words)
	}
	var passed int
	var denied, failed []string
	for _, o := range outcomesOf(r) {
		at := slices.IndexFunc(o.cluster.Gates, func(g holdfast.Gate) bool { return g.Name == holdfast.GatePolicy })
		switch {
		case o.cluster.Sample || at < 0 || o.cluster.Gates[at].Idle:
		case o.cluster.Removed && over[o.cluster.Waiting] != "": // nothing is destroyed
		case o.stage == stageWorking:
			return holdfast.StatusPending, planning + "clusters with policies"
		case o.stage == stageFailed:
			failed = append(failed, o.cluster.Name)
		case o.cluster.Gates[at].Met:
			passed++
		default:
			denied = append(denied, fmt.Sprintf("%s: %s", o.cluster.Name, o.cluster.Gates[at].Missing))
		}
	}
	switch {
	case len(denied) > 0:
		return holdfast.StatusFailure, markdown.List(denied, 3)
	case len(failed) > 0:
		return holdfast.StatusFailure, "not evaluated, as the plan failed: " + markdown.List(failed, 3)
	case len(r.PullRequest.Faults) > 0: // which clusters are in such a file is not known
		return holdfast.StatusFailure, "not evaluated: " + markdown.Plural(len(distinct(r.PullRequest.Faults)), "error") + " in the files"
	case passed == 0:
		return holdfast.StatusSuccess, "no cluster with policies is affected"
	}
	return holdfast.StatusSuccess, "policies let the plans of " + markdown.Plural(passed, "cluster") + " pass"
}
