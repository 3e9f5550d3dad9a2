package decision

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
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
	begins := d.Action == ActionApply ||
		d.Action == ActionWait && (d.Reason == holdfast.ReasonUnreviewed || d.Reason == holdfast.ReasonManual)
	is, to := in.Last.StateLocation, in.Cluster.Desired.StateLocation
	if !begins || in.Ask != nil || in.Cluster.Desired.Removed || !OtherState(is, to) {
		return d
	}
	if merge := reviewed(in.Merges); merge != nil && merge.Copied {
		return d
	}
	return Decision{Action: ActionWait, Reason: holdfast.ReasonNewState, Detail: OtherStateText(is, to), Cancel: d.Cancel}
}

// leftBehind reports whether a plan of what is desired was made with another state than
// the present one, and does not have what is in that.
func leftBehind(in Input, plan holdfast.Run) bool {
	is := LastApplied(in.Cluster, in.Runs).StateLocation
	return plan.Kind == holdfast.RunPlan && !plan.Destroy && !plan.Copied && OtherState(is, plan.StateLocation)
}

// OtherState reports whether two locations are of different states, as far as both are
// known. In our own backend a state goes with the name of its cluster.
func OtherState(is, to string) bool {
	own := holdfast.OwnState(is) && holdfast.OwnState(to)
	return is != "" && to != "" && is != to && !own
}

// OtherStateText says between which states a cluster would move.
func OtherStateText(is, to string) string {
	return fmt.Sprintf("its state is %s and would be %s", is, to)
}
