package decision

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// unsaved holds everything back on the tracked branch while there is a state that the
// backend does not have: whatever is planned from the one that it has would make things
// twice. A run that writes and is executed is left alone.
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

// inPlace lets nothing begin that would have another state than the current one, whoever asks
// for it: what is in that would be left behind, and made again. A person has it migrated.
func inPlace(in Input, d Decision) Decision {
	begins := d.Action == ActionPlan || d.Action == ActionApply || d.Action == ActionWait && slices.Contains(awaitApproval, d.Reason)
	to, document, ok := Destination(in)
	if !begins || !ok || !OtherState(in.Last, to, document) {
		return d
	}
	held := heldBack(in, holdfast.ReasonStateWouldMove, OtherStateText(in.Last, to, document))
	held.Cancel = d.Cancel
	return held
}

// Destination is where the state of a cluster is to be as the tracked branch, or a pull
// request, says; false if it says nothing of that.
func Destination(in Input) (to string, document holdfast.Cluster, ok bool) {
	if in.PullRequest == nil {
		want := in.Cluster.Desired
		return want.StateLocation, want.Document, !want.Removed
	}
	want, ok := Affected(in)
	return want.StateLocation, want.Document, ok && !want.Removed && !want.Sample
}

// awaitApproval are reasons to wait that end as soon as a person approves the plan.
var awaitApproval = []holdfast.Reason{ //nolint:gochecknoglobals // a constant list
	holdfast.ReasonUnreviewed, holdfast.ReasonManual, holdfast.ReasonReplanned,
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

// StateNames are the names of the current state of a cluster and of the one that a
// document would give it, two names if they differ.
func StateNames(last holdfast.Applied, to string, document holdfast.Cluster) (was, is string) {
	was, is = last.StateLocation, to
	if location.Same(was, is) && OtherState(last, to, document) {
		was, is = was+" of "+location.ScopeOf(last.Document), is+" of "+location.ScopeOf(document)
	}
	return was, is
}
