package decision

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// unsaved holds everything back on the tracked branch while a state stands that
// the backend does not have: whatever is planned from the one that it has would
// make things twice. A run that writes and is executed is left alone.
func unsaved(in Input) (Decision, bool) {
	if in.Unsaved == nil {
		return Decision{}, false
	}
	d := heldBack(in, holdfast.ReasonStateUnsaved, in.Unsaved.Detail)
	for _, run := range in.Runs {
		if !run.Status.Done() && (run.Status.Pending() || !run.Kind.Writes()) {
			d.Cancel = append(d.Cancel, run.ID)
		}
	}
	return d, true
}

// afterUnsaved lets nothing begin meanwhile, whoever asks for it, in a pull
// request neither. Plans that are queued already are not handed out.
func afterUnsaved(in Input, d Decision) Decision {
	begins := d.Action == ActionPlan || d.Action == ActionApply || d.Action == ActionCheck
	if in.Unsaved == nil || !begins {
		return d
	}
	held := heldBack(in, holdfast.ReasonStateUnsaved, in.Unsaved.Detail)
	held.Cancel = d.Cancel
	return held
}

// inPlace holds an apply back that would begin with another state, until a person has
// asked for it: what is in the present one would be left behind. A state that was copied
// to its new place has what is in the present one. That a plan has no changes says less:
// an empty state and a document that asks for nothing agree as well.
func inPlace(in Input, d Decision) Decision {
	begins := d.Action == ActionApply || d.Action == ActionWait && slices.Contains(awaitApproval, d.Reason)
	to := in.Cluster.Desired
	if !begins || in.Ask != nil || to.Removed || !OtherState(in.Last, to.StateLocation, to.Document) {
		return d
	}
	if merge := reviewed(in.Merges); merge != nil && merge.Copied {
		return d
	}
	return Decision{Action: ActionWait, Reason: holdfast.ReasonNewState, Detail: OtherStateText(in.Last, to.StateLocation, to.Document), Cancel: d.Cancel}
}

// awaitApproval are reasons to wait that end as soon as a person approves the plan.
var awaitApproval = []holdfast.Reason{ //nolint:gochecknoglobals // a constant list
	holdfast.ReasonUnreviewed, holdfast.ReasonManual, holdfast.ReasonReplanned,
}

// leftBehind reports whether a plan of what is desired was made with another state than
// the present one, and does not have what is in that.
func leftBehind(in Input, plan holdfast.Run) bool {
	last := LastApplied(in.Cluster, in.Runs)
	return plan.Kind == holdfast.RunPlan && !plan.Destroy && !plan.Copied && OtherState(last, plan.StateLocation, plan.Document)
}

// OtherState reports whether a document whose state has a location would give its cluster
// another state than the one of what was last applied, as far as both are known.
func OtherState(last holdfast.Applied, to string, document holdfast.Cluster) bool {
	return location.Other(location.PlaceOf(last.StateLocation, last.Document), location.PlaceOf(to, document))
}

// OtherStateText says between which states a cluster would move.
func OtherStateText(last holdfast.Applied, to string, document holdfast.Cluster) string {
	return MoveText(StateNames(last, to, document))
}

// MoveText says the same of names.
func MoveText(was, is string) string { return fmt.Sprintf("its state is %s and would be %s", was, is) }

// StateNames are the names of the present state of a cluster and of the one that a
// document would give it, told apart if they are two.
func StateNames(last holdfast.Applied, to string, document holdfast.Cluster) (was, is string) {
	was, is = last.StateLocation, to
	if location.Same(was, is) && OtherState(last, to, document) {
		was, is = was+" of "+location.ScopeOf(last.Document), is+" of "+location.ScopeOf(document)
	}
	return was, is
}
