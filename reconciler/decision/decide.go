package decision

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// HistoryDepth is how many of a cluster's runs a decision looks back on.
const HistoryDepth = 50

// The scopes of a suspension.
const (
	SuspendedCluster = "cluster"
	SuspendedProject = "project"
	SuspendedFleet   = "fleet"
)

// Input is everything that a decision may depend on: no clock, no database, no Git.
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

	// Unsaved is a state that the cluster's backend does not have; nil if there is
	// none.
	Unsaved *Unsaved

	// LastApply is the newest apply of the cluster that had begun, however it
	// ended; empty if there is none.
	LastApply string

	// Merges are the pull requests that were merged and touch the cluster since
	// its last apply, newest first. Tracked branch only.
	Merges []Merge
	// Ask is the person's command that is being executed; nil if none.
	Ask *Ask

	// Drift is the newest drift check that has ended since the last apply;
	// nil if there is none. Tracked branch only.
	Drift *holdfast.Run
	// Suspended is why no run may begin: "cluster", "project" or "fleet"; empty
	// if they may.
	Suspended string
	// Throttled is the time until which no run of the newest run's provider is handed
	// out; zero if they are.
	Throttled time.Time
	// Last is what was last applied, or what an apply since then has begun with:
	// what a destroy starts from. Zero if nothing ever was.
	Last holdfast.Applied
	// Unseen is true until this process has looked at the cluster's repository:
	// what belongs to one push may be on record in part.
	Unseen bool
	Newer
	// Parents are the clusters that this one depends on, Dependents those that
	// depend on it and are to be gone before it is destroyed.
	Parents, Dependents []holdfast.Relation
	Leaving

	// Window says whether the cluster's apply windows allow an apply now.
	Window Window

	Resumes Resumes
}

// Newer is what may be newer than the newest plan.
type Newer struct {
	// Released: the newest run is a plan that did not get the lock of its state, and this
	// was released after the plan had failed.
	Released bool
	// Policies identify those that are evaluated over plans of the cluster now; empty: none
	// are, or it is not known. Pull requests only.
	Policies holdfast.Digest
}

// Leaving counts the clusters of a repository that one is gone from.
type Leaving struct {
	// Removals is how many clusters of the repository are gone from its branch
	// and still to be destroyed, and Fleet how many of it were applied. Zero unless
	// this one is gone.
	Removals, Fleet int
}

// Resumes bound how an apply that failed in the middle for a transient cause is
// resumed automatically.
type Resumes struct {
	Most    int           // how often
	Backoff time.Duration // before the first one; it doubles each time
}

// Unsaved is a state that an engine could not save.
type Unsaved struct {
	State  holdfast.UnsavedState
	Detail string // its outcome, in a sentence
}

// Merge is a merged pull request with the plan that was reviewed in it.
type Merge struct {
	Review holdfast.Review // Run is empty if no plan of the merged head was posted before the merge
	At     time.Time       // of the merge, as the forge says
	// Asks are the conditions that the document had when it was merged. A later change does
	// not take them from what was merged with them.
	Asks holdfast.ApplySettings
	// Met are the names of the conditions of apply.requires that are met: one that is
	// not among them is not.
	Met []string
	// Missing says in words what the others lack, by their names.
	Missing map[string]string
	// NewestMet and NewestMissing say the same of what the newest run has planned, which
	// may be another plan than the one that was reviewed.
	NewestMet     []string
	NewestMissing map[string]string
	// Unknown and NewestUnknown are the names of those that are not met as nobody knows
	// whether they are.
	Unknown, NewestUnknown []string
}

// Ask is what a person asked for, once it is known that they may.
type Ask struct {
	Verb  holdfast.Verb // plan, apply or cancel
	Actor string
	// Person: Actor is a name that an identity provider gives: it is nobody whom a condition names.
	Person bool
	// Run is the plan that the person has seen, which an apply has to match; empty
	// if none was shown.
	Run string
	// Seen are the plans that the word names, one for each of its clusters that waits with
	// one, of pull requests as well: an apply of a merge has to be of one of them. Nil: it
	// names none, and is about what was reviewed before the merge.
	Seen []string
	// PullRequest is where it was said; zero: not in one. There it is about what
	// the pull request does: Removes is true if it removes the cluster.
	PullRequest holdfast.PullRequestRef
	Removes     bool
}

// bound reports whether the word is about one plan, and no other that waits as well.
func (a Ask) bound() bool { return a.Seen != nil || !a.PullRequest.IsZero() }

// named is who of those that conditions name has given the word; empty if nobody of them has.
func (a Ask) named() string {
	if a.Person {
		return ""
	}
	return a.Actor
}

// Action is what to do next.
type Action string

// The actions.
const (
	ActionNone   Action = "none"   // nothing to do, or wait for something that asks again automatically
	ActionWait   Action = "wait"   // a person or a condition has to act first; Reason says which
	ActionPlan   Action = "plan"   // queue a plan
	ActionApply  Action = "apply"  // queue an apply
	ActionRecord Action = "record" // Run has made applied what is desired
	ActionCarry  Action = "carry"  // Run's plan holds for a newer head too
	ActionDrift  Action = "drift"  // Run has ended a drift check
	ActionCheck  Action = "check"  // queue a drift check
	ActionRefuse Action = "refuse" // what a person asks for cannot be done; Reason says why
)

// Decision is what to do next and why.
type Decision struct {
	Action Action
	Reason holdfast.Reason // PascalCase and stable: shown to people, used as a metric label
	After  time.Duration   // when to look again; zero means only when asked to

	Cancel     []string          // runs to cancel first, for Reason
	Run        string            // record, carry, drift: the run in question; apply: how it is to be called, where that is known
	Reviews    []holdfast.Review // plan, apply: the merges it stands for
	Shown      string            // apply: the run whose plan it has to match; empty: any of Reviews
	Background bool              // plan: nobody waits for it
	Resume     bool              // apply: a subset of a review suffices
	Actor      string            // plan, apply: who asked; empty: Git did
	Confirmed  string            // wait: who has asked for the destruction that waits; the record keeps it
	Detail     string            // wait: the reason in a sentence, where it has more to tell
}

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
			return guarded(in, d)
		}
	}
	return Decision{Action: ActionNone, Reason: holdfast.ReasonUpToDate}
}

// guarded holds back what must not begin now, whichever rule asks for it.
func guarded(in Input, d Decision) Decision {
	for _, guard := range []func(Input, Decision) Decision{afterUnsaved, inOrder, inSafety, inPlace, inWindow, withConditions} {
		d = guard(in, d)
	}
	return d
}

// heldBack waits for a reason, and reports it to whoever has asked.
func heldBack(in Input, reason holdfast.Reason, detail string) Decision {
	d := Decision{Action: ActionWait, Reason: reason, Detail: detail}
	if in.Ask != nil {
		d.Action = ActionRefuse
	}
	return d
}

var pullRequestRules = []rule{
	damaged,
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
	waiverEnds,
}

var branchRules = []rule{
	unsaved,
	DriftChecked,
	inProgress,
	RecordOutcome,
	ended,
	missing,
	unseen,
	removed,
	invalid,
	revertDrift,
	leavesSuspension,
	upToDate,
	suspended,
	supersededRun,
	approvedApply,
	replanOnBranch,
	pendingRun,
	failedDestroy,
	failedApply,
	changedPlan,
	canceledApply,
	reviewedMerge,
	manualMerge,
	unreviewed,
}
