package decision

import "github.com/holdfast-dev/holdfast"

// PlannedRun is the run whose plan an apply of the cluster would be of if a person asked
// for one now, naming it: a plan is named to them before they confirm, and their
// confirmation is for that plan. Empty if no plan waits. Whether it may be applied yet is
// not asked: conditions, windows and suspensions say nothing about which plan it is.
func PlannedRun(in Input) string {
	rec := in.Cluster
	switch {
	case in.Unsaved != nil, rec.Deletion != nil, rec.Desired.Missing != "", Desired(in) == "":
		return ""
	case AsGitSays(in):
		plan, _ := revertingPlan(in)
		return plan.ID
	}
	newest, merge := waitingPlans(in)
	switch {
	case merge != nil:
		return merge.Review.Run
	case newest != nil && hasPlan(in, *newest):
		return newest.ID
	default:
		return ""
	}
}

// waitingPlans are the plans by which an apply of what Git says can be made. Newest is
// the newest run, if it is about what is desired and nothing was reviewed since; it may
// still be executed. Merge is the newest merge that was reviewed, unless newest has
// taken its place.
func waitingPlans(in Input) (newest *holdfast.Run, merge *Merge) {
	last := Newest(in.Runs)
	outdated := GivenUp(last) || last.Status.Done() && reviewedSince(in, last)
	if current(in, last) && !outdated {
		newest = &last
	}
	if !halfDone(in) && (newest == nil || beforeMerge(last)) {
		merge = reviewed(in.Merges)
	}
	return newest, merge
}

// hasPlan reports whether the newest run has ended with a plan that can be applied.
func hasPlan(in Input, newest holdfast.Run) bool {
	return newest.Status == holdfast.RunPlanned
}

// revertingPlan is the plan by which drift would be reverted: the one of the last check, or
// a later one that was asked for; false if there is none.
func revertingPlan(in Input) (holdfast.Run, bool) {
	last, found := Newest(in.Runs), revertible(in)
	switch {
	case revertsToo(in, last) && (!found || last.ID > in.Drift.ID):
		return last, true
	case found:
		return *in.Drift, true
	default:
		return holdfast.Run{}, false
	}
}

// revertsToo reports whether the newest run is, apart from drift checks, a plan of what is
// applied already.
func revertsToo(in Input, last holdfast.Run) bool {
	return last.Kind != holdfast.RunDrift && last.Status == holdfast.RunPlanned && current(in, last)
}
