package decision

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// The rules about drift. Those of the tracked branch ask for them in their list.

// DriftFresh is how long what a check has found may be reverted automatically: after
// that the infrastructure may have changed, and is looked at again first.
const DriftFresh = time.Hour

// revertPatience is how long a replica may take to queue an apply that it has
// announced.
const revertPatience = 30 * time.Second

// onDriftApply is the policy that reverts drift.
const onDriftApply = "apply"

// DriftChecked records what a drift check has found. It does so whatever else happens,
// but never before the record says what was applied.
func DriftChecked(in Input) (Decision, bool) {
	run, was := in.Drift, in.Cluster.Drift
	if run == nil || in.Cluster.Deletion != nil || in.Cluster.Applied.Run == "" {
		return Decision{}, false
	}
	if _, first := RecordOutcome(in); first || !ofApplied(in, *run) {
		return Decision{}, false
	}
	rules := RulesDigest(DriftSettings(in.Cluster).Ignore, in.Now)
	judgedAnew := run.ID == was.Run && run.Status.Good() && rules != was.Rules
	return Decision{Action: ActionDrift, Reason: holdfast.ReasonChecked, Run: run.ID}, run.ID > was.Run || judgedAnew
}

// ofApplied reports whether a check is one of what is applied now. An apply that
// was made meanwhile has moved what it compared with: nothing follows from it.
func ofApplied(in Input, run holdfast.Run) bool {
	applied := in.Cluster.Applied
	if run.SourceDigest != applied.SourceDigest || run.Bundle != applied.Bundle || !NewerThanApplied(in, run) {
		return false
	}
	return !run.Status.Good() || run.AppliedRun == in.LastApply
}

// revertDrift reverts the drift of a cluster that is otherwise as Git says: at a
// person's command, or automatically where the document says so. Automatically it never
// does what needs a person's consent in any other case, never destroys, and reverts the
// same drift only once. An apply that finds another plan than the check has shown
// applies nothing: its plan is the drift on record from then on, and is not reverted
// before the next check has looked.
func revertDrift(in Input) (Decision, bool) {
	rec, last := in.Cluster, Newest(in.Runs)
	if !AsGitSays(in) || in.Ask != nil && in.Ask.Verb != holdfast.VerbApply {
		return Decision{}, false
	}
	byItself := DriftSettings(rec).OnDrift == onDriftApply
	stopped := rec.Suspended || in.Suspended != ""
	waits := Decision{Action: ActionNone, Reason: holdfast.ReasonInProgress}
	switch {
	case in.Ask != nil:
		return revertApproved(in)
	case stopped:
		return Decision{}, false
	case last.Status.Pending() && last.Actor != "":
		return waits, true
	case !byItself || !revertible(in): // what waits for its turn is no longer wanted
		return Decision{}, false
	case last.Status.Pending() && IsRevert(last) && last.Shown == in.Drift.ID && needsPerson(in) == "":
		return waits, true
	}
	if wait := Left(in.Now, rec.UpdatedAt, revertPatience); wait > 0 && reserved(rec, in.Runs) {
		return Decision{Action: ActionNone, Reason: holdfast.ReasonInProgress, After: wait}, true
	}
	if d, ok := heldDrift(in); ok {
		return d, true
	}
	moved := in.Drift.StateSerial != rec.StateSerial
	if (!Fresh(rec.Drift, in.Now) || moved) && !in.Window.Closed {
		return Decision{Action: ActionCheck, Reason: holdfast.ReasonSchedule, Cancel: Pending(in.Runs)}, true
	}
	return Decision{Action: ActionApply, Reason: holdfast.ReasonDrifted, Shown: in.Drift.ID, Cancel: Pending(in.Runs)}, true
}

// Fresh reports whether what the last check has found may be reverted automatically.
func Fresh(drift holdfast.DriftState, now time.Time) bool {
	return now.Sub(drift.CheckedAt).Abs() <= DriftFresh // and not in a time that has not come yet
}

// revertible reports whether there is drift, with a plan that would revert it.
func revertible(in Input) bool {
	drift := in.Cluster.Drift
	return drift.Status == holdfast.DriftFound && drift.Applied == in.Cluster.Applied.Run &&
		in.Drift != nil && in.Drift.ID == drift.Run && in.Drift.Status == holdfast.RunPlanned
}

// revertApproved queues the apply of exactly what a person has seen: what the last
// drift check has planned, a later plan that was asked for, or what an apply
// has found instead of that.
func revertApproved(in Input) (Decision, bool) {
	last, asked := Newest(in.Runs), in.Ask
	seen, waits := revertingPlan(in)
	if asked.Run != "" && asked.Run == last.ID && revertsToo(in, last) { // named although a later check has found more
		seen, waits = last, true
	}
	if !waits {
		return Decision{}, false
	}
	switch {
	case in.Cluster.Suspended || in.Suspended != "":
		return suspended(in)
	case last.Status.Pending():
		return Decision{Action: ActionRefuse, Reason: holdfast.ReasonInProgress}, true
	case !asked.PullRequest.IsZero() && (asked.Run == "" || in.Drift != nil && seen.ID == in.Drift.ID):
		return Decision{}, false // a command that names a merge does not mean what has drifted since
	case asked.Run != seen.ID:
		return Decision{Action: ActionRefuse, Reason: holdfast.ReasonPlanMoved}, true
	case seen.StateSerial != in.Cluster.StateSerial:
		return Decision{Action: ActionRefuse, Reason: holdfast.ReasonStateMoved}, true
	}
	if reason, detail := unmerged(in, seen, asked.named()); reason != "" {
		return Decision{Action: ActionRefuse, Reason: reason, Detail: detail}, true
	}
	return Decision{Action: ActionApply, Reason: holdfast.ReasonApproved, Shown: seen.ID, Actor: asked.Actor}, true
}

// heldDrift is why drift is not reverted automatically.
func heldDrift(in Input) (Decision, bool) {
	held := Decision{Action: ActionWait, Reason: holdfast.ReasonDriftHeld, Detail: needsPerson(in), Cancel: Pending(in.Runs)}
	if held.Detail == "" && in.Drift.Kind.Writes() {
		held.Detail = in.Drift.ID + " was to revert it, and found another plan: the next check decides"
	}
	if run, ok := RevertOf(in.Cluster, in.Runs); ok && (held.Detail == "" || !run.Status.Pending()) {
		held.Reason, held.Detail = holdfast.ReasonRevertFailed, run.ID+" was to revert it, and it is still there, or is back"
	}
	return held, held.Detail != ""
}

// needsPerson is why drift may not be reverted without a person's consent; empty if it
// may.
func needsPerson(in Input) string {
	required, lifted := Required(in.Cluster.Desired.Document, in.Cluster.Applied)
	beyond, _ := beyondCost(Terms(in.Cluster.Desired.Document, in.Cluster.Applied).Costs, *in.Drift, "")
	switch drift := in.Cluster.Drift; {
	case slices.Contains(lifted, holdfast.GateApproved):
		return "applies of this cluster need an approval: the document no longer requires it, but the last applied version does"
	case slices.Contains(required, holdfast.GateApproved):
		return "applies of this cluster need an approval"
	case slices.Contains(required, holdfast.GatePolicy) && (in.Drift.Policies == nil || in.Drift.Policies.DeniesBut(in.Drift.WaivedByDocuments(in.Now))):
		return "policies do not let the plan pass that reverts it"
	case slices.Contains(required, holdfast.GateCost) && beyond != "":
		return "reverting it costs more than it may, or nobody knows what it costs"
	case drift.Destroys:
		return "reverting it would destroy or replace something"
	case drift.Hides:
		return "reverting it would also revert what an ignore rule hides"
	default:
		return appliedElsewhere(in)
	}
}

// appliedElsewhere says of a check that it was made with the credentials of another
// environment than the last apply was: what is not found there may exist all the same.
// Empty if it was not, or if the apply is too long ago to be known.
func appliedElsewhere(in Input) string {
	i := slices.IndexFunc(in.Runs, func(run holdfast.Run) bool { return run.ID == in.Cluster.Applied.Run })
	if i < 0 {
		return ""
	}
	was, is := location.ScopeOf(in.Runs[i].Document), location.ScopeOf(in.Drift.Document)
	if was == is {
		return ""
	}
	return fmt.Sprintf("it was applied in %s, and the check was made in %s", was, is)
}

// RevertOf returns the apply that was to revert the drift that is on record, unless
// it was given up. That it is one can be seen in the runs as well: the record may
// not say so yet.
func RevertOf(rec holdfast.ClusterRecord, runs []holdfast.Run) (holdfast.Run, bool) {
	known := rec.Drift.Revert != ""
	for _, run := range runs {
		recorded := run.ID == rec.Drift.Revert
		if !recorded && (run.Shown == "" || run.Shown != rec.Drift.Run) {
			continue
		}
		if !GivenUp(run) {
			return run, true
		}
		known = known && !recorded
	}
	return holdfast.Run{ID: rec.Drift.Revert}, known && !reserved(rec, runs)
}

// reserved reports whether the apply that is to revert the drift is named in the
// record, and is not there: somebody is about to queue it, or died before.
func reserved(rec holdfast.ClusterRecord, runs []holdfast.Run) bool {
	revert := rec.Drift.Revert
	named := func(run holdfast.Run) bool { return run.ID == revert }
	if revert == "" || slices.ContainsFunc(runs, named) {
		return false
	}
	return len(runs) < HistoryDepth || revert > runs[len(runs)-1].ID // otherwise it is too old to be among them
}

// IsRevert reports whether a run is an apply of what was applied already.
func IsRevert(run holdfast.Run) bool { return run.Kind == holdfast.RunApply && run.Exact }

// DriftSettings are a cluster's settings of drift as its document was last read: of one
// with faults, what was applied.
func DriftSettings(rec holdfast.ClusterRecord) holdfast.DriftSettings {
	if len(rec.Desired.Faults) > 0 || rec.Desired.Missing != "" {
		return rec.Applied.Document.Drift
	}
	return rec.Desired.Document.Drift
}

// SettledDrift is what the record says of drift after a decision: which apply is
// to revert it, and why that is not done.
func SettledDrift(in Input, d Decision, runs []holdfast.Run) holdfast.DriftState {
	drift := in.Cluster.Drift
	if drift.Status != holdfast.DriftFound {
		return drift
	}
	if !reserved(in.Cluster, runs) {
		drift.Revert = ""
	}
	if run, ok := RevertOf(in.Cluster, runs); ok {
		drift.Revert = run.ID
	}
	drift.Hold = ""
	if d.Action == ActionWait && AsGitSays(in) && DriftSettings(in.Cluster).OnDrift == onDriftApply && revertible(in) {
		drift.Hold = string(d.Reason)
		if d.Detail != "" && d.Reason == holdfast.ReasonDriftHeld {
			drift.Hold = d.Detail
		}
	}
	return drift
}
