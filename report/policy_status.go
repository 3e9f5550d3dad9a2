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
	state, description := policyState(outcomesOf(r))
	return r.linked(status(r.PullRequest.Head, holdfast.ContextPolicy, state, description))
}

func policyState(outcomes []outcome) (holdfast.StatusState, string) {
	var passed int
	var denied, failed []string
	for _, o := range outcomes {
		at := slices.IndexFunc(o.cluster.Gates, func(g holdfast.Gate) bool { return g.Name == holdfast.GatePolicy })
		switch {
		case o.cluster.Sample || at < 0:
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
	case passed == 0:
		return holdfast.StatusSuccess, "no cluster with policies is affected"
	}
	return holdfast.StatusSuccess, "policies let the plans of " + markdown.Plural(passed, "cluster") + " pass"
}
