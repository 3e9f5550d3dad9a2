package reconciler

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Input is all that a decision may depend on: no clock, no database, no Git.
type Input struct {
	Now     time.Time
	Request holdfast.Request
	Cluster holdfast.ClusterRecord // the zero record if the cluster was never seen on a tracked branch
	// Runs are those of this request, newest first: of the pull request, or of
	// the tracked branch.
	Runs []holdfast.Run

	// PullRequest is what is known of Request.PullRequest; nil on the tracked
	// branch.
	PullRequest *holdfast.PullRequestRecord

	// LastApply is the newest apply of the cluster that had begun, however it
	// ended; empty if there is none.
	LastApply string

	// Merges are the pull requests that were merged and touch the cluster since
	// its last apply, newest first. Tracked branch only.
	Merges []Merge
	// Approval is a person's word that is being acted on; nil if none.
	Approval *Approval

	// WindowClosed is true while the cluster's apply windows allow no apply, and
	// WindowChange when that may change; zero if never.
	WindowClosed bool
	WindowChange time.Time

	// MaxResumes is how often an apply that failed in the middle for a passing
	// cause goes on by itself.
	MaxResumes int
	// Backoff is the wait before the first resumption; it doubles each time.
	Backoff time.Duration
}

// Merge is a merged pull request with the plan that was reviewed in it.
type Merge struct {
	Review    holdfast.Review // Run is empty if no plan of the merged head was posted before the merge
	Approved  bool
	Mergeable bool
}

// Approval is what a person asked for, once it is known that they may.
type Approval struct {
	Verb  holdfast.Verb // plan, apply or cancel
	Actor string
	// Run is the plan that the person has seen, whose file an apply shall use;
	// empty if none was shown.
	Run string
}

// Action is what to do next.
type Action string

// The actions.
const (
	ActionNone   Action = "none"   // nothing to do, or wait for something that asks again by itself
	ActionWait   Action = "wait"   // a person or a condition has to act first; Reason says which
	ActionPlan   Action = "plan"   // queue a plan
	ActionApply  Action = "apply"  // queue an apply
	ActionRecord Action = "record" // Run has made applied what is desired
	ActionCarry  Action = "carry"  // Run's plan holds for a newer head too
	ActionRefuse Action = "refuse" // what the approval asks for cannot be done; Reason says why
)

// Decision is what to do next and why.
type Decision struct {
	Action Action
	Reason string        // PascalCase and stable: shown to people, used as a metric label
	After  time.Duration // when to look again; zero means only when asked to

	Cancel     []string          // runs to cancel first, for Reason
	Run        string            // record, carry: the run in question
	Reviews    []holdfast.Review // plan, apply: the merges it stands for
	StoredPlan string            // apply: exactly this run's plan file
	Resume     bool              // apply: a subset of a review suffices
	Actor      string            // plan, apply: who asked; empty: Git did
}

// Reasons for what is done, or waited for.
const (
	ReasonUpToDate       = "UpToDate"
	ReasonNewRevision    = "NewRevision"    // Git says something else than what was planned
	ReasonAppliedSince   = "AppliedSince"   // an apply has changed the cluster since it was planned
	ReasonStateMoved     = "StateMoved"     // somebody else has written the state since
	ReasonMerged         = "Merged"         // a reviewed plan was merged
	ReasonApproved       = "Approved"       // a person asked for the apply of a plan that they saw
	ReasonRequested      = "Requested"      // a person asked for a plan
	ReasonInterrupted    = "Interrupted"    // the last attempt died; planned again
	ReasonInProgress     = "InProgress"     // a run is queued or running
	ReasonSuperseded     = "Superseded"     // a newer revision replaces the run
	ReasonClosed         = "Closed"         // the pull request was closed or merged
	ReasonNotAffected    = "NotAffected"    // the pull request does not change the cluster (any more)
	ReasonInvalid        = "Invalid"        // the cluster's document has faults
	ReasonRemoved        = "Removed"        // the document is gone; what it stood for is left alone
	ReasonSuspended      = "Suspended"      // runs are suspended
	ReasonUnreviewed     = "Unreviewed"     // nobody has seen a plan of this before it was merged
	ReasonNotApproved    = "NotApproved"    // apply.requires: approved
	ReasonNotMergeable   = "NotMergeable"   // apply.requires: mergeable, or a conflict
	ReasonWindowClosed   = "WindowClosed"   // the apply windows allow none now
	ReasonManual         = "Manual"         // apply.onMerge is false
	ReasonPlanChanged    = "PlanChanged"    // what would happen is not what was reviewed
	ReasonPlanFailed     = "PlanFailed"     // there is no plan to apply
	ReasonApplyFailed    = "ApplyFailed"    // an apply failed in the middle
	ReasonResumed        = "Resumed"        // what remains of a failed apply was reviewed
	ReasonCanceled       = "Canceled"       // a person cancelled the run
	ReasonAgentSilent    = "AgentSilent"    // an apply's agent is not heard of, and nobody may go on in its place
	ReasonBackingOff     = "BackingOff"     // a retry is due later
	ReasonApplied        = "Applied"        // the apply has ended well
	ReasonAdopted        = "Adopted"        // nothing differs: taken over without an apply
	ReasonNotMerged      = "NotMerged"      // an apply was asked for before the merge
	ReasonNothingPlanned = "NothingPlanned" // there is no plan that could be applied
	ReasonPlanMoved      = "PlanMoved"      // the plan that was seen is not the newest
	ReasonLocked         = "Locked"         // another run holds the cluster
	ReasonFork           = "Fork"           // plans of forks are switched off
	ReasonDraft          = "Draft"          // plans of drafts are switched off
	ReasonPreempted      = "Preempted"      // an apply goes first
)

type rule func(Input) (Decision, bool)

// Decide returns the next action that moves the applied state of one cluster
// towards the desired one, or keeps a pull request's plan true. The first rule
// with an opinion wins: their order is the policy.
func Decide(in Input) Decision {
	rules := branchRules
	if !in.Request.PullRequest.IsZero() {
		rules = pullRequestRules
	}
	for _, rule := range rules {
		if d, ok := rule(in); ok {
			return inWindow(in, d)
		}
	}
	return Decision{Action: ActionNone, Reason: ReasonUpToDate}
}

// inWindow holds every apply back while the windows are closed, whoever asks.
func inWindow(in Input, d Decision) Decision {
	if d.Action != ActionApply || !in.WindowClosed {
		return d
	}
	if in.Approval != nil {
		return Decision{Action: ActionRefuse, Reason: ReasonWindowClosed}
	}
	held := Decision{Action: ActionWait, Reason: ReasonWindowClosed}
	if !in.WindowChange.IsZero() {
		held.After = max(in.WindowChange.Sub(in.Now), time.Second)
	}
	return held
}

var pullRequestRules = []rule{
	closed,
	notAffected,
	notPlanned,
	replanRequested,
	applyBeforeMerge,
	supersededPlan,
	carriedPlan,
	pendingPlan,
	stalePlan,
	endedPlan,
}

var branchRules = []rule{
	inProgress,
	recordOutcome,
	removed,
	invalid,
	upToDate,
	suspended,
	supersededRun,
	approvedApply,
	replanOnBranch,
	pendingRun,
	failedApply,
	changedPlan,
	canceledApply,
	reviewedMerge,
	manualMerge,
	unreviewed,
}

// Rules of a pull request.

// closed ends all plans of a pull request that is not open any more; the
// tracked branch decides what a merge means.
func closed(in Input) (Decision, bool) {
	if in.PullRequest.State == holdfast.PullRequestOpen {
		return Decision{}, false
	}
	return Decision{Action: ActionNone, Reason: ReasonClosed, Cancel: unfinished(in.Runs)}, true
}

func notAffected(in Input) (Decision, bool) {
	_, ok := affected(in)
	return Decision{Action: ActionNone, Reason: ReasonNotAffected, Cancel: unfinished(in.Runs)}, !ok
}

// notPlanned covers forks, drafts, conflicts, faults, deletions: reasons why
// there is nothing that could be planned.
func notPlanned(in Input) (Decision, bool) {
	want, _ := affected(in)
	d := Decision{Action: ActionWait, Reason: in.PullRequest.Reason, Cancel: unfinished(in.Runs)}
	switch {
	case d.Reason != "":
	case want.Deleted:
		d.Reason = ReasonRemoved
	case want.SourceDigest == "":
		d.Reason = ReasonInvalid
	default:
		return Decision{}, false
	}
	return d, true
}

func replanRequested(in Input) (Decision, bool) {
	if in.Approval == nil || in.Approval.Verb != holdfast.VerbPlan {
		return Decision{}, false
	}
	return Decision{
		Action: ActionPlan, Reason: ReasonRequested,
		Cancel: unfinished(in.Runs), Actor: in.Approval.Actor,
	}, true
}

func applyBeforeMerge(in Input) (Decision, bool) {
	return Decision{Action: ActionRefuse, Reason: ReasonNotMerged},
		in.Approval != nil && in.Approval.Verb == holdfast.VerbApply
}

// supersededPlan replaces a plan that is not finished by one of what Git says now.
func supersededPlan(in Input) (Decision, bool) {
	want, _ := affected(in)
	last := newest(in.Runs)
	if last.ID == "" || last.SourceDigest.Equal(want.SourceDigest) {
		return Decision{}, false
	}
	return Decision{Action: ActionPlan, Reason: ReasonNewRevision, Cancel: unfinished(in.Runs)}, true
}

// carriedPlan lets a plan hold for a newer head, or base, that says the same of
// this cluster.
func carriedPlan(in Input) (Decision, bool) {
	last := newest(in.Runs)
	if last.ID == "" || last.Revision == in.PullRequest.Head && last.Base == in.PullRequest.Base {
		return Decision{}, false
	}
	return Decision{Action: ActionCarry, Reason: ReasonUpToDate, Run: last.ID}, true
}

func pendingPlan(in Input) (Decision, bool) {
	last := newest(in.Runs)
	return Decision{Action: ActionNone, Reason: ReasonInProgress}, last.ID != "" && !last.Status.Done()
}

// stalePlan plans again when the world that the plan was made in has moved: that
// of its last attempt, if there was any.
func stalePlan(in Input) (Decision, bool) {
	last := newest(in.Runs)
	switch {
	case last.ID == "":
		return Decision{Action: ActionPlan, Reason: ReasonNewRevision}, true
	case last.Attempt > 0 && last.AppliedRun != in.LastApply:
		return Decision{Action: ActionPlan, Reason: ReasonAppliedSince}, true
	case last.Attempt > 0 && last.StateSerial != in.Cluster.StateSerial:
		return Decision{Action: ActionPlan, Reason: ReasonStateMoved}, true
	case last.Status == holdfast.RunInterrupted:
		return again(in, ReasonInterrupted), true
	default:
		return Decision{}, false
	}
}

func endedPlan(in Input) (Decision, bool) {
	switch last := newest(in.Runs); {
	case last.Status == holdfast.RunErrored:
		return Decision{Action: ActionWait, Reason: ReasonPlanFailed}, true
	case givenUp(last): // it was closed, a draft or in conflict meanwhile
		return Decision{Action: ActionPlan, Reason: ReasonNewRevision}, true
	case last.Status == holdfast.RunCanceled:
		return Decision{Action: ActionWait, Reason: ReasonCanceled}, true
	default:
		return Decision{}, false
	}
}

// Rules of the tracked branch.

// inProgress leaves a run that is executed alone, unless it is a plan that a
// newer revision, a merge or a person has made useless.
func inProgress(in Input) (Decision, bool) {
	last := newest(in.Runs)
	if last.Status != holdfast.RunRunning {
		return Decision{}, false
	}
	if last.Reason == ReasonAgentSilent {
		return Decision{Action: ActionWait, Reason: ReasonAgentSilent}, true
	}
	d := Decision{Action: ActionNone, Reason: ReasonInProgress}
	_, settled := settledByMerge(in)
	useless := !last.SourceDigest.Equal(in.Cluster.Desired.SourceDigest) || settled
	if last.Kind == holdfast.RunPlan && useless {
		d.Reason, d.Cancel = ReasonSuperseded, []string{last.ID}
	}
	return d, true
}

// recordOutcome makes the record say what has happened: it is the only way in
// which Applied moves.
func recordOutcome(in Input) (Decision, bool) {
	last := newest(in.Runs)
	if last.ID == "" || last.ID == in.Cluster.Applied.Run || !newerThanApplied(in, last) {
		return Decision{}, false
	}
	d := Decision{Action: ActionRecord, Reason: ReasonApplied, Run: last.ID}
	switch {
	case last.Status == holdfast.RunApplied:
		return d, true
	case last.Status == holdfast.RunNoChanges &&
		(last.Kind == holdfast.RunApply || last.SourceDigest.Equal(in.Cluster.Desired.SourceDigest)):
		if last.Kind == holdfast.RunPlan {
			d.Reason = ReasonAdopted
		}
		return d, true
	default:
		return Decision{}, false
	}
}

// removed leaves the infrastructure of a document that is gone alone.
func removed(in Input) (Decision, bool) {
	return Decision{Action: ActionWait, Reason: ReasonRemoved, Cancel: pending(in.Runs)}, in.Cluster.Desired.Removed
}

func invalid(in Input) (Decision, bool) {
	return Decision{Action: ActionWait, Reason: ReasonInvalid, Cancel: pending(in.Runs)},
		in.Cluster.Desired.SourceDigest == ""
}

// upToDate holds only if no failed apply has left something half done since.
func upToDate(in Input) (Decision, bool) {
	same := in.Cluster.Desired.SourceDigest.Equal(in.Cluster.Applied.SourceDigest)
	if !same || begun(in) != nil || in.Approval != nil && in.Approval.Verb == holdfast.VerbPlan {
		return Decision{}, false
	}
	if in.Approval != nil && in.Approval.Verb == holdfast.VerbApply {
		return Decision{Action: ActionRefuse, Reason: ReasonUpToDate}, true
	}
	return Decision{Action: ActionNone, Reason: ReasonUpToDate, Cancel: pending(in.Runs)}, true
}

func suspended(in Input) (Decision, bool) {
	d := Decision{Action: ActionWait, Reason: ReasonSuspended, Cancel: pending(in.Runs)}
	if in.Approval != nil {
		d.Action = ActionRefuse
	}
	return d, in.Cluster.Suspended
}

// supersededRun ends what waits for its turn with content that Git has left.
func supersededRun(in Input) (Decision, bool) {
	last := newest(in.Runs)
	if !last.Status.Pending() || last.SourceDigest.Equal(in.Cluster.Desired.SourceDigest) {
		return Decision{}, false
	}
	return Decision{Action: ActionNone, Reason: ReasonSuperseded, Cancel: pending(in.Runs), After: time.Nanosecond}, true
}

// approvedApply queues the apply of exactly the plan that a person has seen.
func approvedApply(in Input) (Decision, bool) {
	if in.Approval == nil || in.Approval.Verb != holdfast.VerbApply {
		return Decision{}, false
	}
	last := newest(in.Runs)
	apply := Decision{
		Action: ActionApply, Reason: ReasonApproved, Reviews: reviews(in), Actor: in.Approval.Actor,
	}
	current, merge := current(in, last) && !givenUp(last), reviewed(in.Merges)
	mine := in.Approval.Run == last.ID
	switch {
	case current && last.Status.Pending():
		return Decision{Action: ActionRefuse, Reason: ReasonInProgress}, true
	case current && last.Status == holdfast.RunPlanned && mine && last.StateSerial != in.Cluster.StateSerial:
		return Decision{Action: ActionPlan, Reason: ReasonStateMoved, Reviews: reviews(in), Actor: in.Approval.Actor}, true
	case current && last.Status == holdfast.RunPlanned && mine:
		// To have seen a plan is not to have approved the merge.
		if len(in.Merges) > 0 {
			if reason := barred(in, in.Merges[0]); reason != "" {
				return Decision{Action: ActionRefuse, Reason: reason}, true
			}
		}
		apply.StoredPlan = last.ID
		return apply, true
	case merge != nil && begun(in) == nil && (!current || beforeMerge(last)):
		// A manual merge: the plan has to be the reviewed one.
		if reason := barred(in, *merge); reason != "" {
			return Decision{Action: ActionRefuse, Reason: reason}, true
		}
		return apply, true
	case current && last.Status == holdfast.RunPlanned:
		return Decision{Action: ActionRefuse, Reason: ReasonPlanMoved}, true
	default:
		return Decision{Action: ActionRefuse, Reason: ReasonNothingPlanned}, true
	}
}

func replanOnBranch(in Input) (Decision, bool) {
	if in.Approval == nil || in.Approval.Verb != holdfast.VerbPlan {
		return Decision{}, false
	}
	if last := newest(in.Runs); last.Status.Pending() {
		return Decision{Action: ActionRefuse, Reason: ReasonInProgress}, true
	}
	return Decision{
		Action: ActionPlan, Reason: ReasonRequested, Reviews: reviews(in), Actor: in.Approval.Actor,
	}, true
}

// pendingRun waits for a queued run, unless it is a plan for an unreviewed
// change that turns out to have been reviewed.
func pendingRun(in Input) (Decision, bool) {
	last := newest(in.Runs)
	if !last.Status.Pending() {
		return Decision{}, false
	}
	if d, ok := settledByMerge(in); ok {
		d.Cancel = pending(in.Runs)
		return d, true
	}
	return Decision{Action: ActionNone, Reason: ReasonInProgress}, true
}

// settledByMerge returns what would be decided without the newest run, if that
// is a plan which only the merge of a reviewed one was missing for. What waits
// for a person is not settled by it.
func settledByMerge(in Input) (Decision, bool) {
	last := newest(in.Runs)
	if last.Kind != holdfast.RunPlan || last.Actor != "" || reviewed(in.Merges) == nil {
		return Decision{}, false
	}
	in.Runs = in.Runs[1:]
	for _, held := range []rule{failedApply, changedPlan, canceledApply} {
		if _, ok := held(in); ok {
			return Decision{}, false
		}
	}
	if d, ok := reviewedMerge(in); ok {
		return d, true
	}
	return manualMerge(in)
}

// failedApply goes on by itself if the cause is a passing one, and otherwise
// shows a person what is left to do. Only a plan that people have seen since
// the failure, merged or approved, is applied after that.
func failedApply(in Input) (Decision, bool) {
	failed := begun(in)
	if failed == nil {
		return Decision{}, false
	}
	if merge := reviewed(in.Merges); merge != nil && merge.Review.Run > failed.ID {
		return Decision{}, false
	}
	last := newest(in.Runs)
	switch {
	case last.ID == failed.ID && passing(*failed) && resumes(in) < in.MaxResumes &&
		failed.SourceDigest.Equal(in.Cluster.Desired.SourceDigest):
		wait := failed.FinishedAt.Add(in.Backoff << resumes(in)).Sub(in.Now)
		if wait > 0 {
			return Decision{Action: ActionWait, Reason: ReasonBackingOff, After: wait}, true
		}
		return Decision{Action: ActionApply, Reason: ReasonResumed, Reviews: failed.Reviews, Resume: true}, true
	case last.ID == failed.ID, !last.SourceDigest.Equal(in.Cluster.Desired.SourceDigest), givenUp(last):
		return Decision{Action: ActionPlan, Reason: ReasonApplyFailed, Reviews: reviews(in)}, true
	case last.Kind == holdfast.RunPlan && last.Status == holdfast.RunInterrupted:
		return again(in, ReasonApplyFailed), true
	default:
		return Decision{Action: ActionWait, Reason: ReasonApplyFailed}, true
	}
}

// changedPlan holds an apply whose plan was not what people had seen.
func changedPlan(in Input) (Decision, bool) {
	last := unasked(in.Runs)
	return Decision{Action: ActionWait, Reason: ReasonPlanChanged},
		current(in, last) && last.Kind == holdfast.RunApply && last.Status == holdfast.RunPlanned
}

// canceledApply leaves an apply that did not begin to the person who cancelled
// it, or to whoever reads why it failed.
func canceledApply(in Input) (Decision, bool) {
	last := unasked(in.Runs)
	if !current(in, last) || last.Kind != holdfast.RunApply || last.Begun {
		return Decision{}, false
	}
	switch {
	case last.Status == holdfast.RunCanceled && !givenUp(last):
		return Decision{Action: ActionWait, Reason: ReasonCanceled}, true
	case last.Status == holdfast.RunErrored, last.Status == holdfast.RunInterrupted:
		return Decision{Action: ActionWait, Reason: ReasonPlanFailed}, true
	default:
		return Decision{}, false
	}
}

// reviewedMerge applies what people have seen and merged. The head is compared
// with each of the reviewed plans, inside the run.
func reviewedMerge(in Input) (Decision, bool) {
	merge := reviewed(in.Merges)
	if merge == nil || in.Cluster.Desired.Document.Apply.Manual {
		return Decision{}, false
	}
	if reason := barred(in, *merge); reason != "" {
		return Decision{Action: ActionWait, Reason: reason}, true
	}
	return Decision{Action: ActionApply, Reason: ReasonMerged, Reviews: reviews(in)}, true
}

// barred is which of the conditions for the apply of a merge is not met; empty
// if all are.
func barred(in Input, merge Merge) string {
	for _, gate := range in.Cluster.Desired.Document.Apply.Requires {
		switch {
		case gate == "approved" && !merge.Approved:
			return ReasonNotApproved
		case gate == "mergeable" && !merge.Mergeable:
			return ReasonNotMergeable
		}
	}
	return ""
}

func manualMerge(in Input) (Decision, bool) {
	return Decision{Action: ActionWait, Reason: ReasonManual},
		reviewed(in.Merges) != nil && in.Cluster.Desired.Document.Apply.Manual
}

// unreviewed plans what nobody has seen, and waits for a person.
func unreviewed(in Input) (Decision, bool) {
	last := newest(in.Runs)
	if !current(in, last) || last.Kind != holdfast.RunPlan {
		return Decision{Action: ActionPlan, Reason: ReasonUnreviewed, Reviews: reviews(in)}, true
	}
	switch last.Status {
	case holdfast.RunInterrupted:
		return again(in, ReasonInterrupted), true
	case holdfast.RunErrored:
		return Decision{Action: ActionWait, Reason: ReasonPlanFailed}, true
	case holdfast.RunCanceled:
		if givenUp(last) {
			return Decision{Action: ActionPlan, Reason: ReasonUnreviewed, Reviews: reviews(in)}, true
		}
		return Decision{Action: ActionWait, Reason: ReasonCanceled}, true
	default:
		return Decision{Action: ActionWait, Reason: ReasonUnreviewed}, true
	}
}

// What the rules ask of an Input.

func newest(runs []holdfast.Run) holdfast.Run {
	if len(runs) == 0 {
		return holdfast.Run{}
	}
	return runs[0]
}

// affected returns what the pull request's merge result says of the cluster.
func affected(in Input) (holdfast.PullRequestCluster, bool) {
	for _, c := range in.PullRequest.Clusters {
		if c.Name == in.Request.Cluster {
			return c, true
		}
	}
	return holdfast.PullRequestCluster{}, false
}

// givenUp reports whether the run was cancelled by what has changed, and not by
// a person: once that is different again, it is made anew.
func givenUp(run holdfast.Run) bool {
	return run.Status == holdfast.RunCanceled && run.Reason != ReasonCanceled
}

// unasked returns the newest run that is not a plan which a person has asked for
// and got: to look is not to decide.
func unasked(runs []holdfast.Run) holdfast.Run {
	for _, run := range runs {
		if run.Kind != holdfast.RunPlan || run.Actor == "" || !run.Status.Done() {
			return run
		}
	}
	return holdfast.Run{}
}

// beforeMerge reports whether the run is a plan of a change of which it was not
// known yet that it had been merged: no pull request shows it.
func beforeMerge(run holdfast.Run) bool {
	return run.Kind == holdfast.RunPlan && run.Actor == "" && len(run.Reviews) == 0
}

func unfinished(runs []holdfast.Run) []string {
	return ids(runs, func(s holdfast.RunStatus) bool { return !s.Done() })
}

func pending(runs []holdfast.Run) []string {
	return ids(runs, holdfast.RunStatus.Pending)
}

func ids(runs []holdfast.Run, match func(holdfast.RunStatus) bool) []string {
	var out []string
	for _, run := range runs {
		if match(run.Status) {
			out = append(out, run.ID)
		}
	}
	return out
}

// current reports whether run is about the desired content, and later than the
// last apply.
func current(in Input, run holdfast.Run) bool {
	return run.ID != "" && run.SourceDigest.Equal(in.Cluster.Desired.SourceDigest) && newerThanApplied(in, run)
}

// newerThanApplied reports whether run was made after the last applied one: ids
// sort by the time of their making.
func newerThanApplied(in Input, run holdfast.Run) bool {
	return run.ID > in.Cluster.Applied.Run
}

// begun returns the newest apply since the last applied run whose engine had
// begun to apply and did not end well; nil if there is none.
func begun(in Input) *holdfast.Run {
	for i, run := range in.Runs {
		if !newerThanApplied(in, run) {
			return nil
		}
		if run.Kind == holdfast.RunApply && run.Begun && run.Status.Done() && !run.Status.Good() {
			return &in.Runs[i]
		}
	}
	return nil
}

// resumes counts how often the failed apply at the head of the runs went on by
// itself, without a break.
func resumes(in Input) int {
	n := 0
	for _, run := range in.Runs {
		if run.Kind != holdfast.RunApply || !run.Resume {
			break
		}
		n++
	}
	return n
}

// passing reports whether what ended the run may not end the next one.
func passing(run holdfast.Run) bool {
	ended := run.Status == holdfast.RunInterrupted || run.Status == holdfast.RunErrored
	return ended && run.Failure != nil && run.Failure.Transient
}

// again plans once more after a death, with a delay that doubles, and gives up
// in the end: something about this plan may be what kills.
func again(in Input, reason string) Decision {
	deaths := deaths(in.Runs)
	if deaths > in.MaxResumes {
		return Decision{Action: ActionWait, Reason: ReasonPlanFailed}
	}
	wait := newest(in.Runs).FinishedAt.Add(in.Backoff << (deaths - 1)).Sub(in.Now)
	if wait > 0 {
		return Decision{Action: ActionWait, Reason: ReasonBackingOff, After: wait}
	}
	return Decision{Action: ActionPlan, Reason: reason, Reviews: newest(in.Runs).Reviews}
}

// deaths counts the runs at the head of the list that were interrupted, without
// a break.
func deaths(runs []holdfast.Run) int {
	n := slices.IndexFunc(runs, func(run holdfast.Run) bool { return run.Status != holdfast.RunInterrupted })
	if n < 0 {
		return len(runs)
	}
	return n
}

// reviewed returns the newest merge that has a reviewed plan; nil if none has.
func reviewed(merges []Merge) *Merge {
	for i := range merges {
		if merges[i].Review.Run != "" {
			return &merges[i]
		}
	}
	return nil
}

// reviews returns what each of the merges was reviewed with.
func reviews(in Input) []holdfast.Review {
	out := make([]holdfast.Review, 0, len(in.Merges))
	for _, m := range in.Merges {
		out = append(out, m.Review)
	}
	return out
}
