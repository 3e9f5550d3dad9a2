package decision

import "github.com/holdfast-dev/holdfast"

// Rules returns how many rules each side has.
func Rules() (pullRequest, branch int) { return len(pullRequestRules), len(branchRules) }

// DecideWithout is Decide with one rule left out.
func DecideWithout(in Input, skip int) Decision {
	rules := branchRules
	if !in.Request.PullRequest.IsZero() {
		rules = pullRequestRules
	}
	for i, rule := range rules {
		if i == skip {
			continue
		}
		if d, ok := rule(in); ok {
			return guarded(in, d)
		}
	}
	return Decision{Action: ActionNone, Reason: holdfast.ReasonUpToDate}
}
