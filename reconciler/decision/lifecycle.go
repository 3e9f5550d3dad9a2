package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Reasons of conditions besides those of decisions.
const (
	becausePlanned     = "Planned"     // there is a plan of what Git desires
	becauseReviewed    = "Reviewed"    // the plan is that of a pull request; an apply compares with it
	becauseNotPlanned  = "NotPlanned"  // there is none
	becauseNotApplied  = "NotApplied"  // the cluster was never applied
	becauseUnchecked   = "Unchecked"   // nobody has looked for drift yet
	becauseNoDrift     = "NoDrift"     // the last check found none
	becauseCheckFailed = "CheckFailed" // the last check failed
	becauseNothing     = "NothingWaits"
	becauseNotObserved = "NotObserved" // nothing looks at that yet
)

// seenWait reports whether what waits for a reason is something of which a plan was
// seen: in a pull request, if there is none on the tracked branch.
func seenWait(reason holdfast.Reason) bool {
	return reason.OfGate() || slices.Contains(seenWaits, reason)
}

// seenWaits are these reasons besides those of conditions of apply.requires.
var seenWaits = []holdfast.Reason{
	holdfast.ReasonManual, holdfast.ReasonWindowClosed, holdfast.ReasonPlanChanged, holdfast.ReasonPolicyChanged, holdfast.ReasonStateWouldMove, holdfast.ReasonDriftHeld,
	holdfast.ReasonHasDependents, holdfast.ReasonMassDeletion, holdfast.ReasonDependencyPending, holdfast.ReasonDependencyFailed, holdfast.ReasonDependencyMissing,
}

// Lifecycle derives from a cluster's record and the runs of its tracked branch,
// newest first and without drift checks, in which phase it is and which
// conditions hold: one of each type, in the order of their constants. The
// record's own phase tells whether it was Active before, its own conditions
// since when each has its status.
//
//	Pending       nothing of it was applied yet
//	Provisioning  its first apply is executed, or continues automatically
//	Configuring   that has ended well, and what Git says has not been reached
//	              once yet: the infrastructure is there, more is to be set up
//	Active        it was as Git said; what Git says since then may wait
//	Updating      a later apply is executed, or continues automatically
//	Failed        an apply has failed in the middle, and nothing continues automatically
//	Deleting      its document is gone, and it is not yet
//	Deleted       it is gone
func Lifecycle(now time.Time, rec holdfast.ClusterRecord, runs []holdfast.Run) (holdfast.Phase, []holdfast.Condition) {
	l := newLife(rec, runs)
	conditions := []holdfast.Condition{
		l.commitPlanned(), l.planUpToDate(), l.applyUpToDate(), l.drifted(), l.blocked(),
		{Type: holdfast.ConditionHealthy, Status: holdfast.ConditionUnknown, Reason: becauseNotObserved},
	}
	for i, c := range conditions {
		conditions[i].Since = since(rec.Conditions, c, now)
	}
	return l.phase(), conditions
}

// Recorded reports whether a cluster's record says what has become of the runs of
// its tracked branch, newest first: what was applied is recorded as such, and
// phase and conditions are those that follow. Between the end of a run and the
// decision after it the record is behind.
func Recorded(rec holdfast.ClusterRecord, runs []holdfast.Run) bool {
	if _, open := RecordOutcome(Input{Cluster: rec, Runs: runs}); open {
		return false
	}
	phase, conditions := Lifecycle(time.Time{}, rec, runs)
	return phase == rec.Phase && slices.Equal(conditions, rec.Conditions)
}

// since is the time since which a condition has its status.
func since(before []holdfast.Condition, c holdfast.Condition, now time.Time) time.Time {
	for _, b := range before {
		if b.Type == c.Type && b.Status == c.Status {
			return b.Since
		}
	}
	return now
}

// life is what phase and conditions are made of.
type life struct {
	rec    holdfast.ClusterRecord
	runs   []holdfast.Run // of this life, newest first
	write  holdfast.Run   // the newest apply or destroy since the last applied one
	about  holdfast.Run   // the newest run of what Git desires since then
	failed *holdfast.Run  // the newest that has left something half done
}

func newLife(rec holdfast.ClusterRecord, runs []holdfast.Run) life {
	if i := slices.IndexFunc(runs, func(run holdfast.Run) bool { return run.ID <= rec.Life }); i >= 0 {
		runs = runs[:i]
	}
	l := life{rec: rec, runs: runs, failed: Begun(Input{Cluster: rec, Runs: runs})}
	for _, run := range runs {
		if run.ID <= rec.Applied.Run {
			break
		}
		if l.write.ID == "" && run.Kind.Writes() {
			l.write = run
		}
		if l.about.ID == "" && l.desires(run) {
			l.about = run
		}
	}
	return l
}

// desires reports whether a run is of what Git desires.
func (l life) desires(run holdfast.Run) bool {
	destroys := run.Destroys()
	if l.rec.Desired.Removed {
		return destroys
	}
	return !destroys && run.SourceDigest.Equal(l.rec.Desired.SourceDigest)
}

// settled reports whether what Git desires is what is applied, and nothing else is being
// applied.
func (l life) settled() bool {
	d := l.rec.Desired
	leaves := l.working() && !l.desires(l.write)
	return !d.Removed && l.failed == nil && !leaves && d.SourceDigest.Equal(l.rec.Applied.SourceDigest)
}

// Settled reports whether a cluster's record and the runs of its tracked branch, newest
// first, say that it is as Git says, that nobody knows of anything left to do, and that
// the record is not behind.
func Settled(rec holdfast.ClusterRecord, runs []holdfast.Run) bool {
	_, behind := RecordOutcome(Input{Cluster: rec, Runs: runs})
	return rec.Waiting == "" && rec.Desired.Missing == "" && newLife(rec, runs).settled() && !behind
}

// working reports whether something is written, or will be without a person: an apply
// between two attempts is not a failure either.
func (l life) working() bool {
	switch l.write.Status {
	case holdfast.RunRunning, holdfast.RunRetrying:
		return true
	case holdfast.RunQueued:
		return l.write.Resume
	default:
		return l.failed != nil && l.failed.ID == Newest(l.runs).ID && l.rec.Waiting == holdfast.ReasonBackingOff
	}
}

// halfInherited reports whether a run under the former name has left something
// half done: see inherited.
func (l life) halfInherited() bool {
	return l.rec.Applied.Run != "" && l.rec.Applied.SourceDigest == ""
}

// destroying reports whether a destroy is executed, or continues automatically: also of
// a cluster whose document is back.
func (l life) destroying() bool { return l.write.Kind == holdfast.RunDestroy && l.working() }

// young reports whether the cluster was never as Git says.
func (l life) young() bool {
	switch l.rec.Phase {
	case holdfast.PhasePending, holdfast.PhaseProvisioning, holdfast.PhaseConfiguring:
		return true
	default:
		return false
	}
}

func (l life) phase() holdfast.Phase {
	never := l.rec.Applied.Run == ""
	switch {
	case l.rec.Deletion != nil:
		return holdfast.PhaseDeleted
	case l.rec.Desired.Removed, l.destroying():
		return holdfast.PhaseDeleting
	case l.working() && never:
		return holdfast.PhaseProvisioning
	case l.working() && l.young():
		return holdfast.PhaseConfiguring
	case l.working():
		return holdfast.PhaseUpdating
	case l.failed != nil, l.halfInherited():
		return holdfast.PhaseFailed
	case never && l.write.Status == holdfast.RunApplied: // it is about to be recorded
		return holdfast.PhaseConfiguring
	case never:
		return holdfast.PhasePending
	case l.young() && !l.settled():
		return holdfast.PhaseConfiguring
	default:
		return holdfast.PhaseActive
	}
}

func condition(t holdfast.ConditionType, status holdfast.ConditionStatus, reason holdfast.Reason, message string) holdfast.Condition {
	return holdfast.Condition{Type: t, Status: status, Reason: reason, Message: message}
}

// unknowable is a condition that does not depend on runs: of a cluster that is
// gone, or of which Git says nothing that could be planned.
func (l life) unknowable(t holdfast.ConditionType) (holdfast.Condition, bool) {
	d := l.rec.Desired
	switch {
	case l.rec.Deletion != nil:
		return condition(t, holdfast.ConditionTrue, l.rec.Deletion.Reason, ""), true
	case d.Missing != "":
		return condition(t, holdfast.ConditionFalse, holdfast.ReasonMissing, d.Missing), true
	case d.Removed:
		return holdfast.Condition{}, false
	case len(d.Faults) > 0:
		return condition(t, holdfast.ConditionFalse, holdfast.ReasonInvalid, d.Faults[0].Error()), true
	case d.SourceDigest == "":
		return condition(t, holdfast.ConditionFalse, holdfast.ReasonInvalid, ""), true
	default:
		return holdfast.Condition{}, false
	}
}

func (l life) commitPlanned() holdfast.Condition {
	const t = holdfast.ConditionCommitPlanned
	if c, ok := l.unknowable(t); ok {
		return c
	}
	if l.settled() {
		return condition(t, holdfast.ConditionTrue, holdfast.ReasonApplied, "")
	}
	for _, run := range l.runs {
		if run.ID <= l.rec.Applied.Run {
			break
		}
		if l.desires(run) && (run.Status.Good() || run.Begun) {
			return condition(t, holdfast.ConditionTrue, becausePlanned, "by "+run.ID)
		}
	}
	if seenWait(l.rec.Waiting) || compares(l.about) {
		return condition(t, holdfast.ConditionTrue, becauseReviewed, "")
	}
	return l.unplanned(t)
}

// compares reports whether a run that has not ended, or was given up, is based on a
// plan that people have seen.
func compares(run holdfast.Run) bool {
	open := !run.Status.Done() || GivenUp(run) && !run.Begun
	return open && run.Kind.Writes() && slices.ContainsFunc(run.Reviews, func(v holdfast.Review) bool { return v.Run != "" })
}

// unplanned says why there is no plan of what Git desires.
func (l life) unplanned(t holdfast.ConditionType) holdfast.Condition {
	status, run := holdfast.ConditionFalse, l.about
	switch {
	case run.ID == "" && len(l.runs) > 0:
		return condition(t, status, holdfast.ReasonNewRevision, "the newest plan is for something else")
	case run.ID == "":
		return condition(t, status, becauseNotPlanned, "")
	case !run.Status.Done():
		return condition(t, status, holdfast.ReasonInProgress, run.ID)
	case run.Status == holdfast.RunCanceled:
		return condition(t, status, holdfast.ReasonCanceled, run.ID)
	default:
		return condition(t, status, holdfast.ReasonPlanFailed, failureText(run))
	}
}

func failureText(run holdfast.Run) string {
	if run.Failure == nil || run.Failure.Summary == "" {
		return run.ID
	}
	summary, _, _ := strings.Cut(run.Failure.Summary, "\n")
	return run.ID + ": " + summary
}

func (l life) planUpToDate() holdfast.Condition {
	const t = holdfast.ConditionPlanUpToDate
	if c, ok := l.unknowable(t); ok {
		return c
	}
	last := LastBegun(l.runs)
	switch run := l.about; {
	case l.settled():
		return condition(t, holdfast.ConditionTrue, holdfast.ReasonApplied, "")
	case compares(run) && run.Shown != "": // an apply has to match what was shown
		return condition(t, holdfast.ConditionTrue, becausePlanned, "by "+run.Shown)
	case compares(run), run.ID == "" && seenWait(l.rec.Waiting):
		return condition(t, holdfast.ConditionUnknown, becauseReviewed, "an apply will be compared with it")
	case run.ID == "", !run.Status.Done(), run.Status == holdfast.RunCanceled && !run.Begun:
		return l.unplanned(t)
	case run.Begun && !run.Status.Good():
		return condition(t, holdfast.ConditionFalse, holdfast.ReasonApplyFailed, failureText(run))
	case !run.Status.Good():
		return l.unplanned(t)
	case run.Status == holdfast.RunApplied:
		return condition(t, holdfast.ConditionTrue, holdfast.ReasonApplied, run.ID)
	case run.Attempt > 0 && last != "" && last != run.ID && last != run.AppliedRun:
		return condition(t, holdfast.ConditionFalse, holdfast.ReasonAppliedSince, "planned before "+last)
	case run.Attempt > 0 && run.StateSerial != l.rec.StateSerial:
		return condition(t, holdfast.ConditionFalse, holdfast.ReasonStateMoved, "")
	default:
		return condition(t, holdfast.ConditionTrue, becausePlanned, "by "+run.ID)
	}
}

func (l life) applyUpToDate() holdfast.Condition {
	const t = holdfast.ConditionApplyUpToDate
	rec := l.rec
	if rec.Desired.Missing != "" && rec.Deletion == nil {
		return condition(t, holdfast.ConditionUnknown, holdfast.ReasonMissing, rec.Desired.Missing)
	}
	if c, ok := l.unknowable(t); ok {
		return c
	}
	status := holdfast.ConditionFalse
	switch {
	case l.settled():
		return condition(t, holdfast.ConditionTrue, holdfast.ReasonApplied, "by "+rec.Applied.Run)
	case l.working():
		return condition(t, status, holdfast.ReasonInProgress, l.write.ID)
	case l.failed != nil:
		return condition(t, status, holdfast.ReasonApplyFailed, failureText(*l.failed))
	case rec.Waiting != "":
		return condition(t, status, rec.Waiting, rec.WaitingDetail)
	case rec.Desired.Removed:
		return condition(t, status, holdfast.ReasonRemoved, "")
	case rec.Applied.Run == "":
		return condition(t, status, becauseNotApplied, "")
	default:
		return condition(t, status, holdfast.ReasonNewRevision, "")
	}
}

func (l life) drifted() holdfast.Condition {
	const t = holdfast.ConditionDrifted
	d := l.rec.Drift
	switch {
	case l.rec.Deletion != nil:
		return condition(t, holdfast.ConditionUnknown, l.rec.Deletion.Reason, "")
	case l.rec.Applied.Run == "":
		return condition(t, holdfast.ConditionUnknown, becauseNotApplied, "")
	case d.Status == holdfast.DriftFailed:
		return condition(t, holdfast.ConditionUnknown, becauseCheckFailed, d.Detail)
	case d.Status == holdfast.DriftFound && d.Applied != "" && d.Applied != l.rec.Applied.Run:
		return condition(t, holdfast.ConditionUnknown, holdfast.ReasonAppliedSince, "found before "+l.rec.Applied.Run)
	case d.Status == holdfast.DriftFound:
		return condition(t, holdfast.ConditionTrue, holdfast.ReasonDrifted, driftText(d.Counts))
	case d.Status == holdfast.DriftNone:
		return condition(t, holdfast.ConditionFalse, becauseNoDrift, "")
	default:
		return condition(t, holdfast.ConditionUnknown, becauseUnchecked, "")
	}
}

func driftText(c holdfast.DriftCounts) string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{c.Changed, "changed outside"}, {c.Gone, "gone"}, {c.Input, "with other inputs"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

func (l life) blocked() holdfast.Condition {
	const t = holdfast.ConditionBlocked
	switch {
	case l.rec.Deletion != nil:
		return condition(t, holdfast.ConditionFalse, l.rec.Deletion.Reason, "")
	case l.rec.Waiting == "":
		return condition(t, holdfast.ConditionFalse, becauseNothing, "")
	default:
		return condition(t, holdfast.ConditionTrue, l.rec.Waiting, l.rec.WaitingDetail)
	}
}

// Transitions is what has changed of a cluster's phase, and of the statuses of
// its conditions. That a condition is known for the first time is not a change.
func Transitions(at time.Time, before, after holdfast.ClusterRecord, runs []holdfast.Run) []holdfast.Transition {
	var out []holdfast.Transition
	if before.Phase != after.Phase {
		reason, run := phaseCause(after, runs)
		out = append(out, holdfast.Transition{
			Cluster: after.Name, At: at, What: "phase", From: string(before.Phase), To: string(after.Phase),
			Reason: reason, Run: run,
		})
	}
	for _, c := range after.Conditions {
		i := slices.IndexFunc(before.Conditions, func(b holdfast.Condition) bool { return b.Type == c.Type })
		if i < 0 || before.Conditions[i].Status == c.Status {
			continue
		}
		t := holdfast.Transition{
			Cluster: after.Name, At: at, What: string(c.Type), From: string(before.Conditions[i].Status), To: string(c.Status),
			Reason: c.Reason, Run: runSince(before, runs),
		}
		if c.Type == holdfast.ConditionDrifted {
			t.Run = after.Drift.Run
		}
		out = append(out, t)
	}
	return out
}

// runSince is the newest run if something has happened to it since the record was
// written; empty if what has changed is not its doing.
func runSince(before holdfast.ClusterRecord, runs []holdfast.Run) string {
	run := Newest(runs)
	for _, at := range []time.Time{run.CreatedAt, run.StartedAt, run.FinishedAt} {
		if at.After(before.UpdatedAt) {
			return run.ID
		}
	}
	return ""
}

// phaseCause is what brought a cluster into its phase.
func phaseCause(rec holdfast.ClusterRecord, runs []holdfast.Run) (reason holdfast.Reason, run string) {
	l := newLife(rec, runs)
	switch rec.Phase {
	case holdfast.PhaseDeleted:
		return rec.Deletion.Reason, rec.Deletion.Run
	case holdfast.PhaseDeleting:
		return holdfast.ReasonRemoved, l.write.ID
	case holdfast.PhaseProvisioning, holdfast.PhaseConfiguring, holdfast.PhaseUpdating:
		if l.write.ID == "" {
			return holdfast.ReasonApplied, rec.Applied.Run
		}
		return whyWritten(l.write), l.write.ID
	case holdfast.PhaseFailed:
		if l.failed == nil {
			return holdfast.ReasonRenamed, rec.Applied.Run
		}
		if l.failed.Failure != nil {
			return l.failed.Failure.Cause, l.failed.ID
		}
		return l.failed.Reason, l.failed.ID
	case holdfast.PhaseActive:
		return holdfast.ReasonApplied, rec.Applied.Run
	default:
		return holdfast.ReasonNewRevision, ""
	}
}

// whyWritten is the reason for which an apply or a destroy was made, which a run
// that is executed no longer carries.
func whyWritten(run holdfast.Run) holdfast.Reason {
	switch {
	case run.Reason != "":
		return run.Reason
	case run.Resume:
		return holdfast.ReasonResumed
	case run.Actor != "":
		return holdfast.ReasonApproved
	case slices.ContainsFunc(run.Reviews, func(v holdfast.Review) bool { return !v.PullRequest.IsZero() }):
		return holdfast.ReasonMerged
	case run.Shown != "":
		return holdfast.ReasonDrifted
	default:
		return holdfast.ReasonApplied
	}
}
