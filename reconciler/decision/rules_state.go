package decision

import "github.com/holdfast-dev/holdfast"

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
