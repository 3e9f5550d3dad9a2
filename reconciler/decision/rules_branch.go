package decision

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/statelock"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// The rules of the tracked branch, in the order of their list.

// inProgress leaves a run that is executed alone, unless it is a plan that a
// newer revision, a merge or a person has made useless.
func inProgress(in Input) (Decision, bool) {
	last := Newest(in.Runs)
	if last.Status != holdfast.RunRunning {
		return Decision{}, false
	}
	if last.Reason == holdfast.ReasonAgentSilent {
		return Decision{Action: ActionWait, Reason: holdfast.ReasonAgentSilent}, true
	}
	d := Decision{Action: ActionNone, Reason: holdfast.ReasonInProgress}
	_, settled := settledByMerge(in)
	useless := !last.SourceDigest.Equal(Desired(in)) || settled
	if last.Kind == holdfast.RunPlan && useless {
		d.Reason, d.Cancel = holdfast.ReasonSuperseded, []string{last.ID}
	}
	return d, true
}

// RecordOutcome updates the record with what has happened: nothing else changes
// Applied.
func RecordOutcome(in Input) (Decision, bool) {
	last := Newest(in.Runs)
	if last.ID == "" || last.ID == in.Cluster.Applied.Run || !NewerThanApplied(in, last) {
		return Decision{}, false
	}
	d := Decision{Action: ActionRecord, Reason: holdfast.ReasonApplied, Run: last.ID}
	if last.Destroys() {
		d.Reason = holdfast.ReasonDestroyed
	}
	switch {
	case last.Status == holdfast.RunApplied:
		return d, true
	case last.Status == holdfast.RunNoChanges && (last.Kind.Writes() || last.SourceDigest.Equal(Desired(in))):
		if last.Kind == holdfast.RunPlan && !last.Destroy {
			d.Reason = holdfast.ReasonAdopted
		}
		return d, true
	default:
		return Decision{}, false
	}
}

func invalid(in Input) (Decision, bool) {
	return Decision{Action: ActionWait, Reason: holdfast.ReasonInvalid, Cancel: Pending(in.Runs)}, Desired(in) == ""
}

// upToDate holds only if no failed apply has left something half done since.
func upToDate(in Input) (Decision, bool) {
	same := Desired(in).Equal(in.Cluster.Applied.SourceDigest)
	if !same || Begun(in) != nil || in.Ask != nil && in.Ask.Verb == holdfast.VerbPlan {
		return Decision{}, false
	}
	if in.Ask != nil && in.Ask.Verb == holdfast.VerbApply {
		return Decision{Action: ActionRefuse, Reason: holdfast.ReasonUpToDate}, true
	}
	return Decision{Action: ActionNone, Reason: holdfast.ReasonUpToDate, Cancel: Pending(in.Runs)}, true
}

// leavesSuspension keeps a cluster in the project that it was applied in as long as one
// of the two is suspended: a document that asks for nothing else would take it out of the
// suspension.
func leavesSuspension(in Input) (Decision, bool) {
	last := in.Cluster.Applied
	if in.Suspended != SuspendedProject || last.Run == "" || last.Document.Project == in.Cluster.Desired.Document.Project {
		return Decision{}, false
	}
	return suspended(in)
}

func suspended(in Input) (Decision, bool) {
	d := Decision{Action: ActionWait, Reason: holdfast.ReasonSuspended, Cancel: Pending(in.Runs)}
	if in.Ask != nil {
		d.Action = ActionRefuse
	}
	switch in.Suspended {
	case SuspendedProject:
		d.Detail = "all clusters of its project are suspended"
	case SuspendedFleet:
		d.Detail = "all clusters are suspended"
	}
	return d, in.Cluster.Suspended || in.Suspended != ""
}

// supersededRun ends what waits for its turn with content that Git has left, or would be
// executed with the credentials of a project or an environment that Git has left.
func supersededRun(in Input) (Decision, bool) {
	last := Newest(in.Runs)
	here := last.Destroys() || location.ScopeOf(last.Document) == location.ScopeOf(in.Cluster.Desired.Document)
	if !last.Status.Pending() || last.SourceDigest.Equal(Desired(in)) && here {
		return Decision{}, false
	}
	return Decision{Action: ActionNone, Reason: holdfast.ReasonSuperseded, Cancel: Pending(in.Runs), After: time.Nanosecond}, true
}

// approvedApply queues the apply of exactly the plan that a person has seen: the
// run plans itself, and has to match it.
func approvedApply(in Input) (Decision, bool) {
	if in.Ask == nil || in.Ask.Verb != holdfast.VerbApply {
		return Decision{}, false
	}
	apply := Decision{
		Action: ActionApply, Reason: holdfast.ReasonApproved, Reviews: reviews(in), Actor: in.Ask.Actor,
	}
	newest, merge := waitingPlans(in)
	planned := newest != nil && hasPlan(in, *newest)
	mine := planned && in.Ask.Run == newest.ID && (speaksOf(*in.Ask, in.Merges) || newest.StandsFor(in.Ask.PullRequest))
	switch {
	case newest != nil && newest.Status.Pending():
		d := Decision{Action: ActionRefuse, Reason: holdfast.ReasonInProgress}
		if newest.First() {
			d.Detail = "its first plan is queued behind everything else: `holdfast replan " + in.Cluster.Name + "` has it made now"
		}
		return d, true
	case mine && newest.StateSerial != in.Cluster.StateSerial:
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonStateMoved, Reviews: reviews(in), Actor: in.Ask.Actor}, true
	case mine:
		// Having seen a plan does not mean having approved it, or the merges that are in
		// it.
		reason, detail := barred(in, ofNewest)
		if len(in.Merges) == 0 {
			reason, detail = unmerged(in, *newest, in.Ask.named())
		}
		if reason != "" {
			return Decision{Action: ActionRefuse, Reason: reason, Detail: detail}, true
		}
		apply.Shown = newest.ID
		return apply, true
	case merge != nil && speaksOf(*in.Ask, in.Merges):
		// A manual merge: the plan has to be the reviewed one.
		if reason, detail := barred(in, ofReviewed); reason != "" {
			return Decision{Action: ActionRefuse, Reason: reason, Detail: detail}, true
		}
		if meansOther(*in.Ask, *merge) {
			return Decision{Action: ActionRefuse, Reason: holdfast.ReasonPlanMoved, Detail: waitingPlan(*merge)}, true
		}
		if in.Ask.bound() {
			apply.Reviews = only(apply.Reviews, merge.Review.Run)
		}
		return apply, true
	case planned:
		return Decision{Action: ActionRefuse, Reason: holdfast.ReasonPlanMoved}, true
	default:
		return Decision{Action: ActionRefuse, Reason: holdfast.ReasonNothingPlanned}, true
	}
}

// halfDone reports whether a failed apply has left something half done, and people have
// merged no plan that was made since.
func halfDone(in Input) bool {
	failed := Begun(in)
	return failed != nil && !reviewedSince(in, *failed)
}

// speaksOf reports whether a person's command is about one of the merges that are to be
// applied: in an older pull request it would be one about another change.
func speaksOf(ask Ask, merges []Merge) bool {
	return ask.PullRequest.IsZero() ||
		slices.ContainsFunc(merges, func(m Merge) bool { return m.Review.PullRequest == ask.PullRequest })
}

// meansOther reports whether a person's command about merges is for another plan than
// that of merge, which is the newest that was reviewed: a merge that a later one has
// replaced is no longer applied, one without a reviewed plan does not count for that of
// another, nor is a plan applied that was named before.
func meansOther(ask Ask, merge Merge) bool {
	if !ask.PullRequest.IsZero() && ask.PullRequest != merge.Review.PullRequest {
		return true
	}
	return ask.Seen != nil && !slices.Contains(ask.Seen, merge.Review.Run)
}

// waitingPlan says which plan of a merge an apply would have to match.
func waitingPlan(merge Merge) string {
	return fmt.Sprintf("what waits is `%s`, the plan of %s", merge.Review.Run, merge.Review.PullRequest)
}

// only leaves of reviews the plan of one run: the others stand for their merges alone.
func only(reviews []holdfast.Review, run string) []holdfast.Review {
	for i, v := range reviews {
		if v.Run != run {
			reviews[i] = holdfast.Review{PullRequest: v.PullRequest}
		}
	}
	return reviews
}

func replanOnBranch(in Input) (Decision, bool) {
	if in.Ask == nil || in.Ask.Verb != holdfast.VerbPlan {
		return Decision{}, false
	}
	d := Decision{Action: ActionPlan, Reason: holdfast.ReasonRequested, Reviews: reviews(in), Actor: in.Ask.Actor}
	if last := Newest(in.Runs); last.First() && last.Status.Pending() { // nobody has waited for it
		d.Cancel = Pending(in.Runs)
	} else if last.Status.Pending() {
		return Decision{Action: ActionRefuse, Reason: holdfast.ReasonInProgress}, true
	}
	return d, true
}

// pendingRun waits for a queued run, unless it is a plan for an unreviewed
// change that turns out to have been reviewed.
func pendingRun(in Input) (Decision, bool) {
	last := Newest(in.Runs)
	if !last.Status.Pending() {
		return Decision{}, false
	}
	if d, ok := settledByMerge(in); ok {
		d.Cancel = Pending(in.Runs)
		return d, true
	}
	if last.First() && !firstSeen(in) { // it is no longer one that nobody waits for
		return Decision{Action: ActionNone, Reason: holdfast.ReasonSuperseded, Cancel: Pending(in.Runs), After: time.Nanosecond}, true
	}
	if wait := in.Throttled.Sub(in.Now); wait > 0 {
		detail := ThrottledText(last.Document.Provider, in.Throttled)
		return Decision{Action: ActionWait, Reason: holdfast.ReasonProviderThrottled, Detail: detail, After: wait}, true
	}
	if last.Reason == holdfast.ReasonNoAgent {
		return Decision{Action: ActionWait, Reason: holdfast.ReasonNoAgent, Detail: last.Detail}, true
	}
	if AwaitsLock(last) {
		return Decision{Action: ActionWait, Reason: holdfast.CauseStateLocked, Detail: lockedText(last)}, true
	}
	return Decision{Action: ActionNone, Reason: holdfast.ReasonInProgress}, true
}

// lockedText says which lock a run waits for, as far as its engine has printed that.
func lockedText(run holdfast.Run) string {
	const again = "it is retried automatically"
	lock, known := statelock.Of(run)
	switch {
	case known && lock.Who != "":
		return lock.Who + " holds the lock " + lock.ID + "; " + again
	case known:
		return "the lock " + lock.ID + " is held; " + again
	default:
		return again
	}
}

// settledByMerge returns what would be decided without the newest run, if that
// is a plan which only the merge of a reviewed one was missing for. What waits
// for a person is not settled by it.
func settledByMerge(in Input) (Decision, bool) {
	last := Newest(in.Runs)
	if last.Kind != holdfast.RunPlan || last.Actor != "" || reviewed(in.Merges) == nil {
		return Decision{}, false
	}
	in.Runs = in.Runs[1:]
	for _, held := range []rule{failedDestroy, failedApply, changedPlan, canceledApply} {
		if _, ok := held(in); ok {
			return Decision{}, false
		}
	}
	if d, ok := reviewedMerge(in); ok {
		return d, true
	}
	return manualMerge(in)
}

// failedApply resumes automatically if the cause is transient, and otherwise
// shows a person what is left to do. What would be created a second time waits for
// a person as well: the resumed run finds that. Only a plan that people have seen since
// the failure, merged or approved, is applied after that.
func failedApply(in Input) (Decision, bool) {
	if !halfDone(in) {
		return Decision{}, false
	}
	failed, last := Begun(in), Newest(in.Runs)
	switch {
	case last.ID == failed.ID && Transient(*failed) && resumes(in) < in.Resumes.Most &&
		failed.SourceDigest.Equal(Desired(in)):
		wait := Left(in.Now, failed.FinishedAt, in.Resumes.Backoff<<resumes(in))
		if wait > 0 {
			return Decision{Action: ActionWait, Reason: holdfast.ReasonBackingOff, After: wait}, true
		}
		return Decision{Action: ActionApply, Reason: holdfast.ReasonResumed, Reviews: failed.Reviews, Shown: failed.Matched, Resume: true}, true
	case last.ID == failed.ID, !last.SourceDigest.Equal(Desired(in)), GivenUp(last):
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonApplyFailed, Reviews: reviews(in)}, true
	case last.Kind == holdfast.RunPlan && last.Status == holdfast.RunInterrupted:
		return again(in, holdfast.ReasonApplyFailed), true
	default:
		reason, detail := heldAfter(in, *failed)
		return Decision{Action: ActionWait, Reason: reason, Detail: detail}, true
	}
}

// heldAfter is why an apply that has failed in the middle waits for a person: because
// what would be created may exist already, if one that continued it has found that, or a
// plan since.
func heldAfter(in Input, failed holdfast.Run) (reason holdfast.Reason, detail string) {
	for _, run := range in.Runs {
		if run.ID == failed.ID {
			break
		}
		if reason, detail := orMayExist(run, holdfast.ReasonApplyFailed); reason == holdfast.ReasonMayExist {
			return reason, detail
		}
	}
	return holdfast.ReasonApplyFailed, ""
}

// orMayExist is the reason for which a plan waits for a person, unless what it would
// create may exist already: then that is why.
func orMayExist(plan holdfast.Run, reason holdfast.Reason) (because holdfast.Reason, detail string) {
	if plan.Status == holdfast.RunPlanned && plan.Reason == holdfast.ReasonMayExist {
		return plan.Reason, plan.Detail
	}
	return reason, ""
}

// changedPlan holds an apply whose plan, or what policies say of it, was not what people had
// seen, or which would create
// what may exist already, until they merge one since.
func changedPlan(in Input) (Decision, bool) {
	last := unasked(in.Runs)
	reason, detail := orMayExist(last, holdfast.ReasonPlanChanged)
	if last.Reason == holdfast.ReasonPolicyChanged || last.Reason == holdfast.ReasonPolicyDenied {
		reason, detail = last.Reason, last.Detail
	}
	return Decision{Action: ActionWait, Reason: reason, Detail: detail},
		current(in, last) && last.Kind.Writes() && last.Status == holdfast.RunPlanned && !reviewedSince(in, last)
}

// canceledApply leaves an apply that did not begin to the person who canceled
// it, or to whoever reads why it failed, until a plan is merged since.
func canceledApply(in Input) (Decision, bool) {
	last := unasked(in.Runs)
	if !current(in, last) || !last.Kind.Writes() || last.Begun || reviewedSince(in, last) {
		return Decision{}, false
	}
	again := Newest(in.Runs)
	switch {
	case last.Status == holdfast.RunCanceled && !GivenUp(last):
		return Decision{Action: ActionWait, Reason: holdfast.ReasonCanceled}, true
	case last.Status != holdfast.RunErrored && last.Status != holdfast.RunInterrupted:
		return Decision{}, false
	case hasPlan(in, again) && current(in, again): // somebody asked for it
		reason, detail := orMayExist(again, holdfast.ReasonReplanned)
		return Decision{Action: ActionWait, Reason: reason, Detail: detail}, true
	default:
		return Decision{Action: ActionWait, Reason: holdfast.ReasonPlanFailed}, true
	}
}

// reviewedMerge applies what people have seen and merged. The head is compared
// with each of the reviewed plans, inside the run.
func reviewedMerge(in Input) (Decision, bool) {
	merge := reviewed(in.Merges)
	if merge == nil || byHand(in) {
		return Decision{}, false
	}
	if reason, detail := barred(in, ofReviewed); reason != "" {
		return Decision{Action: ActionWait, Reason: reason, Detail: detail}, true
	}
	return Decision{Action: ActionApply, Reason: holdfast.ReasonMerged, Reviews: reviews(in)}, true
}

func manualMerge(in Input) (Decision, bool) {
	wait := Decision{Action: ActionWait, Reason: holdfast.ReasonManual}
	if !in.Cluster.Desired.Document.Apply.Manual {
		wait.Detail = "the document no longer says `onMerge: false`, but the last applied version does"
	}
	return wait, reviewed(in.Merges) != nil && byHand(in)
}

// unreviewed plans what nobody has seen, and waits for a person.
func unreviewed(in Input) (Decision, bool) {
	last := Newest(in.Runs)
	if !current(in, last) || last.Kind != holdfast.RunPlan {
		return planUnreviewed(in), true
	}
	switch {
	case last.Status == holdfast.RunInterrupted:
		d := again(in, holdfast.ReasonInterrupted)
		d.Background = d.Action == ActionPlan && firstSeen(in) && last.First() // not if a person asked for it
		return d, true
	case last.Status == holdfast.RunErrored && in.Released: // what it gave up waiting for
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonRequested, Reviews: reviews(in)}, true
	case last.Status == holdfast.RunErrored:
		return Decision{Action: ActionWait, Reason: holdfast.ReasonPlanFailed}, true
	case last.Status == holdfast.RunCanceled:
		if GivenUp(last) {
			return planUnreviewed(in), true
		}
		return Decision{Action: ActionWait, Reason: holdfast.ReasonCanceled}, true
	default:
		reason, detail := orMayExist(last, holdfast.ReasonUnreviewed)
		return Decision{Action: ActionWait, Reason: reason, Detail: detail}, true
	}
}

func planUnreviewed(in Input) Decision {
	return Decision{Action: ActionPlan, Reason: holdfast.ReasonUnreviewed, Reviews: reviews(in), Background: firstSeen(in)}
}

// firstSeen reports whether a cluster was found in Git, and nobody waits for its plan:
// a fresh database may find all of a fleet.
func firstSeen(in Input) bool { return in.Cluster.Applied.Run == "" && len(in.Merges) == 0 }

// ThrottledText says until when the runs of a provider are held back.
func ThrottledText(provider string, until time.Time) string {
	return fmt.Sprintf("runs of %s wait until %s UTC", provider, until.UTC().Format(time.TimeOnly))
}
