package decision_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

const (
	oldDigest = holdfast.Digest("sha256:old")
	newDigest = holdfast.Digest("sha256:new")
)

// destroyDigest is of nothing left of what run-0 had applied to prod.
var destroyDigest = decision.DestroyDigest("prod", holdfast.Applied{Run: "run-0", SourceDigest: oldDigest})

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	onePR = holdfast.PullRequestRef{Repo: "infra", Number: 1}
)

// given is an Input that differs from a base by what a case says.
func given(in decision.Input, with ...func(*decision.Input)) decision.Input {
	for _, change := range with {
		change(&in)
	}
	return in
}

// onBranch is a cluster that was applied as run-0 and of which the branch says
// something new.
func onBranch(with ...func(*decision.Input)) decision.Input {
	return given(decision.Input{
		Now: noon, Request: holdfast.Request{Cluster: "prod"}, Resumes: decision.Resumes{Most: 2, Backoff: time.Minute},
		Cluster: holdfast.ClusterRecord{
			Name: "prod", Owner: "infra",
			Desired: holdfast.Desired{Revision: "b", SourceDigest: newDigest},
			Applied: holdfast.Applied{Run: "run-0", Revision: "a", SourceDigest: oldDigest},
		},
		Last:      holdfast.Applied{Run: "run-0", Revision: "a", SourceDigest: oldDigest},
		LastApply: "run-0",
	}, with...)
}

// atPullRequest is the same cluster in a pull request that changes it.
func atPullRequest(with ...func(*decision.Input)) decision.Input {
	return given(onBranch(func(in *decision.Input) {
		in.Cluster.Desired.SourceDigest = oldDigest
		in.Request.PullRequest = onePR
		in.PullRequest = &holdfast.PullRequestRecord{
			PullRequest: holdfast.PullRequest{PullRequestRef: onePR, State: holdfast.PullRequestOpen, Head: "h", BaseBranch: "main"},
			Base:        "a",
			Clusters:    []holdfast.PullRequestCluster{{Name: "prod", SourceDigest: newDigest}},
		}
	}), with...)
}

// runs are newest first.
func runs(list ...holdfast.Run) func(*decision.Input) {
	return func(in *decision.Input) { in.Runs = list }
}

// ran is a run about the new content.
func ran(id string, kind holdfast.RunKind, status holdfast.RunStatus, with ...func(*holdfast.Run)) holdfast.Run {
	run := holdfast.Run{
		ID: id, Cluster: "prod", Kind: kind, Status: status,
		FinishedAt: noon,
		RunSpec: holdfast.RunSpec{
			SourceDigest: newDigest,
			Revision:     "h", Base: "a",
		},
		RunProgress: holdfast.RunProgress{AppliedRun: "run-0", Attempt: 1},
	}
	if status.Good() {
		run.PlanDigest = "sha256:d"
	}
	if status == holdfast.RunCanceled {
		run.Reason = holdfast.ReasonCanceled
	}
	for _, change := range with {
		change(&run)
	}
	return run
}

func ofOld(run *holdfast.Run)        { run.SourceDigest = oldDigest }
func ofLock(run *holdfast.Run)       { run.Reason = holdfast.CauseStateLocked }
func outdated(run *holdfast.Run)     { run.PlanDigest = "" }
func byAlice(run *holdfast.Run)      { run.Actor = "alice" }
func hasBegun(run *holdfast.Run)     { run.Begun = true }
func resumed(run *holdfast.Run)      { run.Resume = true }
func neverClaimed(run *holdfast.Run) { run.Attempt, run.AppliedRun = 0, "" }
func passingCause(run *holdfast.Run) { run.Failure = &holdfast.Failure{Transient: true} }
func forReason(reason holdfast.Reason) func(*holdfast.Run) {
	return func(run *holdfast.Run) { run.Reason = reason }
}

func withDetail(text string) func(*holdfast.Run) {
	return func(run *holdfast.Run) { run.Detail = text }
}

func withReviews(list ...holdfast.Review) func(*holdfast.Run) {
	return func(run *holdfast.Run) { run.Reviews = list }
}

func asks(verb holdfast.Verb, run string) func(*decision.Input) {
	return func(in *decision.Input) {
		in.Ask = &decision.Ask{Verb: verb, Actor: "alice", Run: run}
	}
}

var seen = holdfast.Review{PullRequest: onePR, Run: "run-1", Fingerprint: "sha256:f", InputDigest: "sha256:i", PlanDigest: "sha256:d"}

// merged says that the pull request's plan was reviewed and merged.
func merged(in *decision.Input) {
	in.Merges = append(in.Merges, decision.Merge{Review: seen, Met: []string{"mergeable"}})
}

func mergedAt(at time.Time) func(*decision.Input) {
	return func(in *decision.Input) {
		merged(in)
		in.Merges[len(in.Merges)-1].At = at
	}
}

func mergedAfterFailure(in *decision.Input) {
	later := seen
	later.Run = "run-7"
	in.Merges = append([]decision.Merge{{Review: later}}, in.Merges...)
}

func mergedUnseen(in *decision.Input) {
	in.Merges = append(in.Merges, decision.Merge{Review: holdfast.Review{PullRequest: onePR}})
}

func manual(in *decision.Input)      { in.Cluster.Desired.Document.Apply.Manual = true }
func suspended(in *decision.Input)   { in.Cluster.Suspended = true }
func removed(in *decision.Input)     { in.Cluster.Desired.Removed = true }
func ofNothing(run *holdfast.Run)    { run.SourceDigest = destroyDigest }
func aDestruction(run *holdfast.Run) { run.SourceDigest, run.Destroy = destroyDigest, true }
func invalid(in *decision.Input)     { in.Cluster.Desired.SourceDigest = "" }
func upToDate(in *decision.Input)    { in.Cluster.Applied.SourceDigest = newDigest }
func movesFrom(suspended string) func(*decision.Input) {
	return func(in *decision.Input) { in.Suspended, in.Cluster.Applied.Document.Project = suspended, "former" }
}
func stateMoved(in *decision.Input)   { in.Cluster.StateSerial = 5 }
func lockReleased(in *decision.Input) { in.Released = true }
func fresh(in *decision.Input) {
	in.Cluster.Applied, in.Last, in.LastApply = holdfast.Applied{}, holdfast.Applied{}, ""
}

func inBackground(d *decision.Decision) { d.Background = true }

func requires(gate string) func(*decision.Input) {
	return func(in *decision.Input) { in.Cluster.Desired.Document.Apply.Requires = []string{gate} }
}

func pr(change func(*holdfast.PullRequestRecord)) func(*decision.Input) {
	return func(in *decision.Input) { change(in.PullRequest) }
}

func later(d time.Duration) func(*decision.Input) {
	return func(in *decision.Input) { in.Now = noon.Add(d) }
}

const (
	plan  = holdfast.RunPlan
	apply = holdfast.RunApply
)

type situation struct {
	in   decision.Input
	want decision.Decision
}

// waivedUntil are documents that waived a policy when the plan was made, with their last days.
func waivedUntil(days ...string) func(*holdfast.Run) {
	return func(run *holdfast.Run) {
		for _, day := range days {
			run.PolicyWaivers = append(run.PolicyWaivers, holdfast.PolicyWaiver{Until: day})
		}
	}
}

func none(reason holdfast.Reason, cancel ...string) decision.Decision {
	return decision.Decision{Action: decision.ActionNone, Reason: reason, Cancel: cancel}
}

func wait(reason holdfast.Reason, cancel ...string) decision.Decision {
	return decision.Decision{Action: decision.ActionWait, Reason: reason, Cancel: cancel}
}

func refuse(reason holdfast.Reason) decision.Decision {
	return decision.Decision{Action: decision.ActionRefuse, Reason: reason}
}

func act(action decision.Action, reason holdfast.Reason, with ...func(*decision.Decision)) decision.Decision {
	d := decision.Decision{Action: action, Reason: reason}
	for _, change := range with {
		change(&d)
	}
	return d
}

func cancels(ids ...string) func(*decision.Decision) {
	return func(d *decision.Decision) { d.Cancel = ids }
}

func on(reviews ...holdfast.Review) func(*decision.Decision) {
	return func(d *decision.Decision) { d.Reviews = reviews }
}
func alice(d *decision.Decision) { d.Actor = "alice" }
func about(run string) func(*decision.Decision) {
	return func(d *decision.Decision) { d.Run = run }
}

func stored(run string) func(*decision.Decision) {
	return func(d *decision.Decision) { d.Shown = run }
}

func pullRequestSituations() map[string]situation {
	first := ran("run-1", plan, holdfast.RunPlanned)
	queued := ran("run-1", plan, holdfast.RunQueued, neverClaimed)
	planAgain := func(reason holdfast.Reason, with ...func(*decision.Decision)) decision.Decision {
		return act(decision.ActionPlan, reason, with...)
	}
	damaged := pr(func(pr *holdfast.PullRequestRecord) { pr.Damaged = true })
	closed := pr(func(pr *holdfast.PullRequestRecord) { pr.State = holdfast.PullRequestClosed })
	newHead := pr(func(pr *holdfast.PullRequestRecord) { pr.Head = "h2" })
	newBase := pr(func(pr *holdfast.PullRequestRecord) { pr.Base = "a2" })
	draft := pr(func(pr *holdfast.PullRequestRecord) { pr.Reason = holdfast.ReasonDraft })
	faulty := pr(func(pr *holdfast.PullRequestRecord) { pr.Clusters[0].SourceDigest = "" })
	other := pr(func(pr *holdfast.PullRequestRecord) { pr.Clusters[0].Name = "preprod" })
	interrupted := ran("run-1", plan, holdfast.RunInterrupted)
	return map[string]situation{
		"nothing planned yet": {atPullRequest(), planAgain(holdfast.ReasonNewRevision)},
		"planned":             {atPullRequest(runs(first)), none(holdfast.ReasonUpToDate)},
		"planned by a former version": {
			atPullRequest(runs(ran("run-1", plan, holdfast.RunPlanned, outdated))),
			act(decision.ActionPlan, holdfast.ReasonPlanOutdated, inBackground),
		},
		"planned with other policies": {
			atPullRequest(runs(ran("run-1", plan, holdfast.RunPlanned, func(run *holdfast.Run) { run.PoliciesGiven = "sha256:old" })),
				func(in *decision.Input) { in.Policies = "sha256:new" }),
			act(decision.ActionPlan, holdfast.ReasonPolicyOutdated, inBackground),
		},
		"planned before there were policies": {
			atPullRequest(runs(ran("run-1", plan, holdfast.RunNoChanges)), func(in *decision.Input) { in.Policies = "sha256:new" }),
			act(decision.ActionPlan, holdfast.ReasonPolicyOutdated, inBackground),
		},
		"planned with these policies, which an old agent has not evaluated": {
			atPullRequest(runs(ran("run-1", plan, holdfast.RunPlanned, func(run *holdfast.Run) { run.PoliciesGiven = "sha256:new" })),
				func(in *decision.Input) { in.Policies = "sha256:new" }),
			none(holdfast.ReasonUpToDate),
		},
		"planned with a waiver that ends next month": {
			atPullRequest(runs(ran("run-1", plan, holdfast.RunPlanned, waivedUntil("2026-03-31")))),
			act(decision.ActionNone, holdfast.ReasonUpToDate, func(d *decision.Decision) { d.After = 24*24*time.Hour - 12*time.Hour }),
		},
		"planned with a waiver that ends today": {
			atPullRequest(runs(ran("run-1", plan, holdfast.RunPlanned, waivedUntil("2026-03-31", "2026-03-01")))),
			act(decision.ActionNone, holdfast.ReasonUpToDate, func(d *decision.Decision) { d.After = 12 * time.Hour }),
		},
		"planned with a waiver that has ended": {
			atPullRequest(runs(ran("run-1", plan, holdfast.RunPlanned, waivedUntil("2026-02-28", "")))), none(holdfast.ReasonUpToDate),
		},
		"planned with policies that cannot be read now": {
			atPullRequest(runs(ran("run-1", plan, holdfast.RunPlanned, func(run *holdfast.Run) { run.PoliciesGiven = "sha256:old" }))),
			none(holdfast.ReasonUpToDate),
		},
		"nothing planned by a former version": {
			atPullRequest(runs(ran("run-1", plan, holdfast.RunNoChanges, outdated))),
			act(decision.ActionPlan, holdfast.ReasonPlanOutdated, inBackground),
		},
		"a sample of a former version": {
			atPullRequest(pr(func(rec *holdfast.PullRequestRecord) { rec.Clusters[0].Sample = true }),
				runs(ran("run-1", plan, holdfast.RunPlanned, outdated, func(run *holdfast.Run) { run.Sample = true }))),
			none(holdfast.ReasonUpToDate),
		},
		"its record is damaged":                  {atPullRequest(damaged, runs(queued)), none(holdfast.ReasonUnreadable)},
		"queued":                                 {atPullRequest(runs(queued)), none(holdfast.ReasonInProgress)},
		"closed while planned":                   {atPullRequest(closed, runs(queued)), none(holdfast.ReasonClosed, "run-1")},
		"closed in the end":                      {atPullRequest(closed, runs(first)), none(holdfast.ReasonClosed)},
		"closed, and a plan is asked for":        {atPullRequest(closed, asks(holdfast.VerbPlan, "")), none(holdfast.ReasonClosed)},
		"reopened":                               {atPullRequest(runs(ran("run-1", plan, holdfast.RunCanceled, forReason(holdfast.ReasonClosed)))), planAgain(holdfast.ReasonNewRevision)},
		"not affected any more":                  {atPullRequest(other, runs(queued)), none(holdfast.ReasonNotAffected, "run-1")},
		"draft":                                  {atPullRequest(draft, runs(queued)), wait(holdfast.ReasonDraft, "run-1")},
		"draft, and a plan is asked for":         {atPullRequest(draft, asks(holdfast.VerbPlan, "")), wait(holdfast.ReasonDraft)},
		"ready for review":                       {atPullRequest(runs(ran("run-1", plan, holdfast.RunCanceled, forReason(holdfast.ReasonDraft)))), planAgain(holdfast.ReasonNewRevision)},
		"conflict resolved":                      {atPullRequest(runs(ran("run-1", plan, holdfast.RunCanceled, forReason(holdfast.ReasonNotMergeable)))), planAgain(holdfast.ReasonNewRevision)},
		"faulty":                                 {atPullRequest(faulty, runs(queued)), wait(holdfast.ReasonInvalid, "run-1")},
		"a plan is asked for":                    {atPullRequest(runs(first), asks(holdfast.VerbPlan, "")), planAgain(holdfast.ReasonRequested, alice)},
		"a plan instead of the running":          {atPullRequest(runs(queued), asks(holdfast.VerbPlan, "")), planAgain(holdfast.ReasonRequested, alice, cancels("run-1"))},
		"an apply before the merge":              {atPullRequest(runs(first), asks(holdfast.VerbApply, "run-1")), refuse(holdfast.ReasonNotMerged)},
		"head says something else":               {atPullRequest(newHead, runs(ran("run-1", plan, holdfast.RunRunning, ofOld))), planAgain(holdfast.ReasonNewRevision, cancels("run-1"))},
		"head says something else, ended":        {atPullRequest(newHead, runs(ran("run-1", plan, holdfast.RunErrored, ofOld))), planAgain(holdfast.ReasonNewRevision)},
		"head says the same":                     {atPullRequest(newHead, runs(first)), act(decision.ActionCarry, holdfast.ReasonUpToDate, about("run-1"))},
		"base says the same":                     {atPullRequest(newBase, runs(queued)), act(decision.ActionCarry, holdfast.ReasonUpToDate, about("run-1"))},
		"applied meanwhile":                      {atPullRequest(runs(first), func(in *decision.Input) { in.LastApply = "run-5" }), planAgain(holdfast.ReasonAppliedSince)},
		"applied while it is planned":            {atPullRequest(runs(queued), func(in *decision.Input) { in.LastApply = "run-5" }), none(holdfast.ReasonInProgress)},
		"state moved":                            {atPullRequest(runs(first), stateMoved), planAgain(holdfast.ReasonStateMoved)},
		"interrupted, too early":                 {atPullRequest(runs(interrupted)), act(decision.ActionWait, holdfast.ReasonBackingOff, func(d *decision.Decision) { d.After = time.Minute })},
		"interrupted, by a clock that was wrong": {atPullRequest(runs(interrupted), later(-30*24*time.Hour)), planAgain(holdfast.ReasonInterrupted)},
		"interrupted, and the clock set back":    {atPullRequest(runs(interrupted), later(-10*time.Minute)), planAgain(holdfast.ReasonInterrupted)},
		"interrupted":                            {atPullRequest(runs(interrupted), later(time.Minute)), planAgain(holdfast.ReasonInterrupted)},
		"interrupted for ever": {
			atPullRequest(runs(interrupted, interrupted, interrupted), later(time.Hour)), wait(holdfast.ReasonPlanFailed),
		},
		"failed":                         {atPullRequest(runs(ran("run-1", plan, holdfast.RunErrored))), wait(holdfast.ReasonPlanFailed)},
		"canceled":                       {atPullRequest(runs(ran("run-1", plan, holdfast.RunCanceled))), wait(holdfast.ReasonCanceled)},
		"its lock is released":           {atPullRequest(runs(ran("run-1", plan, holdfast.RunErrored)), lockReleased), planAgain(holdfast.ReasonRequested)},
		"its lock is released too late":  {atPullRequest(closed, runs(ran("run-1", plan, holdfast.RunErrored)), lockReleased), none(holdfast.ReasonClosed)},
		"canceled before it was begun":   {atPullRequest(stateMoved, runs(ran("run-1", plan, holdfast.RunCanceled, neverClaimed))), wait(holdfast.ReasonCanceled)},
		"a cluster that is in no branch": {atPullRequest(fresh, func(in *decision.Input) { in.Cluster = holdfast.ClusterRecord{} }), planAgain(holdfast.ReasonNewRevision)},
	}
}

func branchSituations() map[string]situation {
	after := func(d time.Duration) func(*decision.Decision) {
		return func(d2 *decision.Decision) { d2.After = d }
	}
	resume := func(d *decision.Decision) { d.Resume = true }
	doApply := func(reason holdfast.Reason, with ...func(*decision.Decision)) decision.Decision {
		return act(decision.ActionApply, reason, with...)
	}
	doPlan := func(reason holdfast.Reason, with ...func(*decision.Decision)) decision.Decision {
		return act(decision.ActionPlan, reason, with...)
	}
	record := func(reason holdfast.Reason, run string) decision.Decision {
		return act(decision.ActionRecord, reason, about(run))
	}
	unseen, since := holdfast.Review{PullRequest: onePR}, seen
	since.Run = "run-7"
	failed := ran("run-3", apply, holdfast.RunErrored, hasBegun, withReviews(seen))
	passing := ran("run-3", apply, holdfast.RunErrored, hasBegun, passingCause, withReviews(seen))
	died := ran("run-3", apply, holdfast.RunInterrupted, hasBegun, passingCause, withReviews(seen))
	mayExist := ran("run-4", apply, holdfast.RunPlanned, resumed, forReason(holdfast.ReasonMayExist), withDetail("may exist already: a.b"))
	heldForIt := wait(holdfast.ReasonMayExist)
	heldForIt.Detail = "may exist already: a.b"
	changed := ran("run-3", apply, holdfast.RunPlanned, withReviews(seen))
	asked := ran("run-4", plan, holdfast.RunPlanned, byAlice)
	planned := ran("run-2", plan, holdfast.RunPlanned)
	queuedPlan := ran("run-2", plan, holdfast.RunQueued)
	queuedApply := ran("run-2", apply, holdfast.RunQueued)
	firstPlan := ran("run-2", plan, holdfast.RunQueued, func(run *holdfast.Run) { run.Background = true })
	notBeforeIt := act(decision.ActionRefuse, holdfast.ReasonInProgress)
	notBeforeIt.Detail = "its first plan is queued behind everything else: `holdfast replan prod` has it made now"
	dead := func(run holdfast.Run) holdfast.Run {
		run.Status = holdfast.RunInterrupted
		return run
	}
	canceledFor := func(reason holdfast.Reason) holdfast.Run {
		return ran("run-2", apply, holdfast.RunCanceled, forReason(reason))
	}
	return map[string]situation{
		// What runs.
		"an apply runs":                      {onBranch(merged, runs(ran("run-2", apply, holdfast.RunRunning))), none(holdfast.ReasonInProgress)},
		"an apply of an older revision runs": {onBranch(merged, runs(ran("run-2", apply, holdfast.RunRunning, ofOld))), none(holdfast.ReasonInProgress)},
		"an apply runs and is suspended":     {onBranch(suspended, runs(ran("run-2", apply, holdfast.RunRunning))), none(holdfast.ReasonInProgress)},
		"a plan runs":                        {onBranch(runs(ran("run-2", plan, holdfast.RunRunning))), none(holdfast.ReasonInProgress)},
		"a plan of an older revision runs":   {onBranch(runs(ran("run-2", plan, holdfast.RunRunning, ofOld))), none(holdfast.ReasonSuperseded, "run-2")},
		"a plan runs that a merge settles":   {onBranch(merged, runs(ran("run-2", plan, holdfast.RunRunning))), none(holdfast.ReasonSuperseded, "run-2")},
		"a plan runs that alice asked for":   {onBranch(merged, runs(ran("run-4", plan, holdfast.RunRunning, byAlice), changed)), none(holdfast.ReasonInProgress)},
		"a plan runs after a failed apply":   {onBranch(merged, runs(ran("run-4", plan, holdfast.RunRunning), failed)), none(holdfast.ReasonInProgress)},

		// What has ended.
		"applied":                           {onBranch(merged, runs(ran("run-2", apply, holdfast.RunApplied, hasBegun))), record(holdfast.ReasonApplied, "run-2")},
		"applied of an older revision":      {onBranch(runs(ran("run-2", apply, holdfast.RunApplied, hasBegun, ofOld))), record(holdfast.ReasonApplied, "run-2")},
		"applied and removed since":         {onBranch(removed, runs(ran("run-2", apply, holdfast.RunApplied, hasBegun))), record(holdfast.ReasonApplied, "run-2")},
		"an apply found nothing to do":      {onBranch(runs(ran("run-2", apply, holdfast.RunNoChanges, ofOld))), record(holdfast.ReasonApplied, "run-2")},
		"a first plan is empty":             {onBranch(fresh, runs(ran("run-2", plan, holdfast.RunNoChanges))), record(holdfast.ReasonAdopted, "run-2")},
		"an older plan is empty":            {onBranch(runs(ran("run-2", plan, holdfast.RunNoChanges, ofOld))), doPlan(holdfast.ReasonUnreviewed, on())},
		"the plan after a failure is empty": {onBranch(merged, runs(ran("run-4", plan, holdfast.RunNoChanges), failed)), record(holdfast.ReasonAdopted, "run-4")},

		// What stands in the way.
		"invalid":                                   {onBranch(invalid, merged, runs(queuedApply)), wait(holdfast.ReasonInvalid, "run-2")},
		"up to date":                                {onBranch(upToDate), none(holdfast.ReasonUpToDate)},
		"up to date again, by a revert":             {onBranch(upToDate, runs(queuedApply)), none(holdfast.ReasonUpToDate, "run-2")},
		"up to date, and an apply":                  {onBranch(upToDate, asks(holdfast.VerbApply, "")), refuse(holdfast.ReasonUpToDate)},
		"up to date, and a plan":                    {onBranch(upToDate, asks(holdfast.VerbPlan, "")), doPlan(holdfast.ReasonRequested, on(), alice)},
		"up to date, but half applied":              {onBranch(upToDate, runs(failed)), doPlan(holdfast.ReasonApplyFailed, on())},
		"suspended":                                 {onBranch(suspended, merged, runs(queuedApply)), wait(holdfast.ReasonSuspended, "run-2")},
		"as Git says, out of a suspended project":   {onBranch(upToDate, movesFrom(decision.SuspendedProject)), waits(holdfast.ReasonSuspended, because("all clusters of its project are suspended"))},
		"as Git says, of another project":           {onBranch(upToDate, movesFrom("")), none(holdfast.ReasonUpToDate)},
		"as Git says, of another project, all stop": {onBranch(upToDate, movesFrom(decision.SuspendedFleet)), none(holdfast.ReasonUpToDate)},
		"suspended, and an apply":                   {onBranch(suspended, merged, asks(holdfast.VerbApply, "")), refuse(holdfast.ReasonSuspended)},
		"suspended, and a plan":                     {onBranch(suspended, merged, asks(holdfast.VerbPlan, "")), refuse(holdfast.ReasonSuspended)},
		"applied once more":                         {onBranch(upToDate, runs(ran("run-2", apply, holdfast.RunApplied, hasBegun))), record(holdfast.ReasonApplied, "run-2")},
		"resumed":                                   {onBranch(merged, runs(canceledFor(holdfast.ReasonSuspended))), doApply(holdfast.ReasonMerged, on(seen))},
		"what waits is of an older revision": {
			onBranch(merged, runs(ran("run-2", apply, holdfast.RunQueued, ofOld))),
			act(decision.ActionNone, holdfast.ReasonSuperseded, cancels("run-2"), after(time.Nanosecond)),
		},
		"what backs off is of an older revision": {
			onBranch(runs(ran("run-2", plan, holdfast.RunRetrying, ofOld))), act(decision.ActionNone, holdfast.ReasonSuperseded, cancels("run-2"), after(time.Nanosecond)),
		},

		// What people ask for.
		"apply what was shown":               {onBranch(runs(planned), asks(holdfast.VerbApply, "run-2")), doApply(holdfast.ReasonApproved, on(), alice, stored("run-2"))},
		"apply what differs, as it is shown": {onBranch(merged, runs(changed), asks(holdfast.VerbApply, "run-3")), doApply(holdfast.ReasonApproved, on(seen), alice, stored("run-3"))},
		"apply what is not the newest":       {onBranch(runs(planned), asks(holdfast.VerbApply, "run-1")), refuse(holdfast.ReasonPlanMoved)},
		"apply when the state moved":         {onBranch(stateMoved, runs(planned), asks(holdfast.VerbApply, "run-2")), doPlan(holdfast.ReasonStateMoved, on(), alice)},
		"apply what is queued":               {onBranch(merged, runs(queuedApply), asks(holdfast.VerbApply, "")), refuse(holdfast.ReasonInProgress)},
		"apply what runs":                    {onBranch(merged, runs(ran("run-2", apply, holdfast.RunRunning)), asks(holdfast.VerbApply, "")), none(holdfast.ReasonInProgress)},
		"apply a manual merge":               {onBranch(merged, manual, asks(holdfast.VerbApply, "")), doApply(holdfast.ReasonApproved, on(seen), alice)},
		"apply a manual merge that was planned before it was known": {
			onBranch(merged, manual, runs(planned), asks(holdfast.VerbApply, "")), doApply(holdfast.ReasonApproved, on(seen), alice),
		},
		"apply a manual merge that is not approved": {
			onBranch(merged, manual, requires("approved"), asks(holdfast.VerbApply, "")), refuse(holdfast.ReasonNotApproved),
		},
		"apply what nobody planned":         {onBranch(asks(holdfast.VerbApply, "")), refuse(holdfast.ReasonNothingPlanned)},
		"apply after a failure, unplanned":  {onBranch(merged, runs(failed), asks(holdfast.VerbApply, "run-3")), refuse(holdfast.ReasonNothingPlanned)},
		"apply after a failure, as planned": {onBranch(merged, runs(ran("run-4", plan, holdfast.RunPlanned), failed), asks(holdfast.VerbApply, "run-4")), doApply(holdfast.ReasonApproved, on(seen), alice, stored("run-4"))},
		"plan what waits":                   {onBranch(runs(planned), asks(holdfast.VerbPlan, "")), doPlan(holdfast.ReasonRequested, on(), alice)},
		"plan what is queued":               {onBranch(runs(queuedPlan), asks(holdfast.VerbPlan, "")), refuse(holdfast.ReasonInProgress)},

		// What waits for its turn.
		"an apply is queued":                {onBranch(merged, runs(queuedApply)), none(holdfast.ReasonInProgress)},
		"a plan backs off":                  {onBranch(runs(ran("run-2", plan, holdfast.RunRetrying))), none(holdfast.ReasonInProgress)},
		"an apply waits for a lock":         {onBranch(merged, runs(ran("run-2", apply, holdfast.RunRetrying, ofLock))), act(decision.ActionWait, holdfast.CauseStateLocked, because("it is retried automatically"))},
		"an apply runs after a lock":        {onBranch(merged, runs(ran("run-2", apply, holdfast.RunRunning, ofLock))), none(holdfast.ReasonInProgress)},
		"a plan is queued, and was seen":    {onBranch(merged, runs(queuedPlan)), doApply(holdfast.ReasonMerged, on(seen), cancels("run-2"))},
		"a plan is queued after a failure":  {onBranch(merged, runs(ran("run-4", plan, holdfast.RunQueued), failed)), none(holdfast.ReasonInProgress)},
		"a plan is queued, by alice":        {onBranch(merged, runs(ran("run-4", plan, holdfast.RunQueued, byAlice))), none(holdfast.ReasonInProgress)},
		"a plan is queued, but manual":      {onBranch(merged, manual, runs(queuedPlan)), wait(holdfast.ReasonManual, "run-2")},
		"a plan is queued, but not allowed": {onBranch(merged, requires("approved"), runs(queuedPlan)), wait(holdfast.ReasonNotApproved, "run-2")},

		// What has failed in the middle.
		"failed":                             {onBranch(merged, runs(failed)), doPlan(holdfast.ReasonApplyFailed, on(seen))},
		"failed, and planned":                {onBranch(merged, runs(ran("run-4", plan, holdfast.RunPlanned), failed)), wait(holdfast.ReasonApplyFailed)},
		"failed, and planning failed":        {onBranch(merged, runs(ran("run-4", plan, holdfast.RunErrored), failed)), wait(holdfast.ReasonApplyFailed)},
		"failed, and planning died":          {onBranch(merged, later(time.Hour), runs(ran("run-4", plan, holdfast.RunInterrupted), failed)), doPlan(holdfast.ReasonApplyFailed)},
		"failed, planned and pushed to":      {onBranch(merged, runs(ran("run-4", plan, holdfast.RunPlanned, ofOld), failed)), doPlan(holdfast.ReasonApplyFailed, on(seen))},
		"failed, planning was given up":      {onBranch(merged, runs(ran("run-4", plan, holdfast.RunCanceled, forReason(holdfast.ReasonSuspended)), failed)), doPlan(holdfast.ReasonApplyFailed, on(seen))},
		"failed, and seen since":             {onBranch(merged, mergedAfterFailure, runs(failed)), doApply(holdfast.ReasonMerged, on(holdfast.Review{PullRequest: onePR, Run: "run-7", Fingerprint: seen.Fingerprint, InputDigest: seen.InputDigest, PlanDigest: seen.PlanDigest}, seen))},
		"canceled in the middle":             {onBranch(merged, runs(ran("run-3", apply, holdfast.RunCanceled, hasBegun))), doPlan(holdfast.ReasonApplyFailed, on(seen))},
		"passing, too early":                 {onBranch(merged, runs(passing)), act(decision.ActionWait, holdfast.ReasonBackingOff, after(time.Minute))},
		"passing, by a clock that was wrong": {onBranch(merged, later(-30*24*time.Hour), runs(passing)), doApply(holdfast.ReasonResumed, on(seen), resume)},
		"passing, and the clock set back":    {onBranch(merged, later(-10*time.Minute), runs(passing)), doApply(holdfast.ReasonResumed, on(seen), resume)},
		"passing":                            {onBranch(merged, later(time.Minute), runs(passing)), doApply(holdfast.ReasonResumed, on(seen), resume)},
		"passing, again":                     {onBranch(merged, later(time.Minute), runs(ran("run-4", apply, holdfast.RunInterrupted, hasBegun, passingCause, resumed), passing)), act(decision.ActionWait, holdfast.ReasonBackingOff, after(time.Minute))},
		"passing, too often":                 {onBranch(merged, later(time.Hour), runs(ran("run-5", apply, holdfast.RunErrored, hasBegun, passingCause, resumed), ran("run-4", apply, holdfast.RunErrored, hasBegun, passingCause, resumed), passing)), doPlan(holdfast.ReasonApplyFailed, on(seen))},
		"passing, but pushed to":             {onBranch(later(time.Hour), runs(ran("run-3", apply, holdfast.RunErrored, hasBegun, passingCause, ofOld))), doPlan(holdfast.ReasonApplyFailed, on())},
		"resumed and differs":                {onBranch(merged, runs(ran("run-4", apply, holdfast.RunPlanned, resumed), passing)), wait(holdfast.ReasonApplyFailed)},
		"died":                               {onBranch(merged, later(time.Minute), runs(died)), doApply(holdfast.ReasonResumed, on(seen), resume)},
		"died, and may exist":                {onBranch(merged, later(time.Hour), runs(mayExist, died)), heldForIt},
		"died, may exist, alice looked":      {onBranch(merged, later(time.Hour), runs(ran("run-5", plan, holdfast.RunPlanned, byAlice), mayExist, died)), heldForIt},
		"died, may exist, and seen since":    {onBranch(merged, mergedAfterFailure, runs(mayExist, died)), doApply(holdfast.ReasonMerged, on(holdfast.Review{PullRequest: onePR, Run: "run-7", Fingerprint: seen.Fingerprint, InputDigest: seen.InputDigest, PlanDigest: seen.PlanDigest}, seen))},
		"died, may exist, alice says so":     {onBranch(merged, asks(holdfast.VerbApply, "run-4"), runs(mayExist, died)), doApply(holdfast.ReasonApproved, on(seen), alice, stored("run-4"))},

		// What did not begin.
		"the plan differs":                     {onBranch(merged, runs(changed)), wait(holdfast.ReasonPlanChanged)},
		"the plan differs, alice looked again": {onBranch(merged, runs(asked, changed)), wait(holdfast.ReasonPlanChanged)},
		"canceled":                             {onBranch(merged, runs(canceledFor(holdfast.ReasonCanceled))), wait(holdfast.ReasonCanceled)},
		"canceled, the forge's clock is ahead": {onBranch(mergedAt(noon.Add(time.Minute)), runs(ran("run-2", apply, holdfast.RunCanceled, withReviews(seen)))), wait(holdfast.ReasonCanceled)},
		"canceled, then another merge":         {onBranch(mergedAt(noon.Add(time.Minute)), runs(ran("run-2", apply, holdfast.RunCanceled, withReviews(holdfast.Review{PullRequest: holdfast.PullRequestRef{Repo: "infra", Number: 99}})))), doApply(holdfast.ReasonMerged, on(seen))},
		"canceled, alice looked again":         {onBranch(merged, runs(asked, canceledFor(holdfast.ReasonCanceled))), wait(holdfast.ReasonCanceled)},
		"canceled by a newer revision":         {onBranch(merged, runs(canceledFor(holdfast.ReasonSuperseded))), doApply(holdfast.ReasonMerged, on(seen))},
		"the apply could not plan":             {onBranch(merged, runs(ran("run-3", apply, holdfast.RunErrored))), wait(holdfast.ReasonPlanFailed)},
		"the apply could not plan, and alice's plan could": {
			onBranch(merged, runs(asked, ran("run-3", apply, holdfast.RunErrored))), wait(holdfast.ReasonReplanned),
		},
		"the apply could not plan, nor could alice's plan": {
			onBranch(merged, runs(ran("run-4", plan, holdfast.RunErrored, byAlice), ran("run-3", apply, holdfast.RunErrored))), wait(holdfast.ReasonPlanFailed),
		},
		"the apply could not plan, and alice's plan is of something else": {
			onBranch(merged, runs(ran("run-4", plan, holdfast.RunPlanned, byAlice, ofOld), ran("run-3", apply, holdfast.RunErrored))), wait(holdfast.ReasonPlanFailed),
		},
		"alice asks for what she had planned since": {
			onBranch(merged, runs(asked, ran("run-3", apply, holdfast.RunErrored)), asks(holdfast.VerbApply, "run-4")),
			doApply(holdfast.ReasonApproved, on(seen), alice, stored("run-4")),
		},
		"the apply died before it began": {onBranch(merged, runs(ran("run-3", apply, holdfast.RunInterrupted))), wait(holdfast.ReasonPlanFailed)},

		// What did not begin, was taken back, and was reviewed and merged once more.
		"the plan differed, and was seen since":          {onBranch(mergedAfterFailure, runs(changed)), doApply(holdfast.ReasonMerged, on(since))},
		"the plan differed, looked at, seen since":       {onBranch(mergedAfterFailure, runs(asked, changed)), doApply(holdfast.ReasonMerged, on(since))},
		"canceled, and seen since":                       {onBranch(mergedAfterFailure, runs(canceledFor(holdfast.ReasonCanceled))), doApply(holdfast.ReasonMerged, on(since))},
		"the apply could not plan, and was seen since":   {onBranch(mergedAfterFailure, runs(ran("run-3", apply, holdfast.RunErrored))), doApply(holdfast.ReasonMerged, on(since))},
		"the plan differed, and was seen since, manual":  {onBranch(mergedAfterFailure, manual, runs(changed)), wait(holdfast.ReasonManual)},
		"apply a manual merge that was seen since":       {onBranch(mergedAfterFailure, manual, runs(changed), asks(holdfast.VerbApply, "")), doApply(holdfast.ReasonApproved, on(since), alice)},
		"apply a manual merge, as it differed before":    {onBranch(mergedAfterFailure, manual, runs(changed), asks(holdfast.VerbApply, "run-3")), doApply(holdfast.ReasonApproved, on(since), alice)},
		"the plan differs, and a later merge was unseen": {onBranch(mergedUnseen, merged, runs(changed)), wait(holdfast.ReasonPlanChanged)},
		"the plan differs from what was seen since":      {onBranch(mergedAfterFailure, runs(ran("run-8", apply, holdfast.RunPlanned, withReviews(since)), changed)), wait(holdfast.ReasonPlanChanged)},

		// What Git says.
		"a reviewed merge":               {onBranch(merged), doApply(holdfast.ReasonMerged, on(seen))},
		"a reviewed merge, and another":  {onBranch(mergedUnseen, merged), doApply(holdfast.ReasonMerged, on(unseen, seen))},
		"a reviewed merge, planned late": {onBranch(merged, runs(planned)), doApply(holdfast.ReasonMerged, on(seen))},
		"not approved":                   {onBranch(merged, requires("approved")), wait(holdfast.ReasonNotApproved)},
		"approved": {
			onBranch(merged, requires("approved"), func(in *decision.Input) { in.Merges[0].Met = []string{"approved"} }),
			doApply(holdfast.ReasonMerged, on(seen)),
		},
		"not mergeable": {
			onBranch(merged, requires("mergeable"), func(in *decision.Input) { in.Merges[0].Met = nil }),
			wait(holdfast.ReasonNotMergeable),
		},
		"manual":                         {onBranch(merged, manual), wait(holdfast.ReasonManual)},
		"a merge that nobody saw":        {onBranch(mergedUnseen), doPlan(holdfast.ReasonUnreviewed, on(unseen))},
		"a direct push":                  {onBranch(), doPlan(holdfast.ReasonUnreviewed, on())},
		"a direct push, planned":         {onBranch(runs(planned)), wait(holdfast.ReasonUnreviewed)},
		"a direct push, planning failed": {onBranch(runs(ran("run-2", plan, holdfast.RunErrored))), wait(holdfast.ReasonPlanFailed)},
		"a direct push, lock released":   {onBranch(runs(ran("run-2", plan, holdfast.RunErrored)), lockReleased), doPlan(holdfast.ReasonRequested, on())},
		"an apply, and lock released":    {onBranch(merged, runs(ran("run-3", apply, holdfast.RunErrored)), lockReleased), wait(holdfast.ReasonPlanFailed)},
		"a direct push, planning died":   {onBranch(later(time.Hour), runs(ran("run-2", plan, holdfast.RunInterrupted))), doPlan(holdfast.ReasonInterrupted)},
		"a direct push, canceled":        {onBranch(runs(ran("run-2", plan, holdfast.RunCanceled))), wait(holdfast.ReasonCanceled)},
		"a direct push, given up":        {onBranch(runs(ran("run-2", plan, holdfast.RunCanceled, forReason(holdfast.ReasonSuspended)))), doPlan(holdfast.ReasonUnreviewed, on())},
		"a fresh database":               {onBranch(fresh), doPlan(holdfast.ReasonUnreviewed, on(), inBackground)},
		"a fresh database, given up":     {onBranch(fresh, runs(ran("run-2", plan, holdfast.RunCanceled, forReason(holdfast.ReasonSuspended)))), doPlan(holdfast.ReasonUnreviewed, on(), inBackground)},
		"a first plan is queued":         {onBranch(fresh, runs(firstPlan)), act(decision.ActionNone, holdfast.ReasonInProgress)},
		"a first plan, asked for":        {onBranch(fresh, runs(firstPlan), asks(holdfast.VerbPlan, "")), act(decision.ActionPlan, holdfast.ReasonRequested, on(), alice, cancels("run-2"))},
		"a first plan died":              {onBranch(fresh, later(time.Hour), runs(dead(firstPlan))), doPlan(holdfast.ReasonInterrupted, inBackground)},
		"a first plan, asked for, died":  {onBranch(fresh, later(time.Hour), runs(ran("run-3", plan, holdfast.RunInterrupted, byAlice), ran("run-2", plan, holdfast.RunCanceled))), doPlan(holdfast.ReasonInterrupted)},
		"a first plan, to be applied":    {onBranch(fresh, runs(firstPlan), asks(holdfast.VerbApply, "")), notBeforeIt},
		"a first plan, merged since":     {onBranch(fresh, mergedUnseen, runs(firstPlan)), act(decision.ActionNone, holdfast.ReasonSuperseded, cancels("run-2"), after(time.Nanosecond))},
		"a new cluster that was merged":  {onBranch(fresh, mergedUnseen), doPlan(holdfast.ReasonUnreviewed, on(unseen))},

		"a state was not saved":            {onBranch(unsaved, runs(ran("run-2", apply, holdfast.RunErrored, hasBegun))), act(decision.ActionWait, holdfast.ReasonStateUnsaved)},
		"a state was not saved, planned":   {onBranch(unsaved, runs(ran("run-2", plan, holdfast.RunPlanned)), asks(holdfast.VerbApply, "run-2")), act(decision.ActionRefuse, holdfast.ReasonStateUnsaved)},
		"a state was not saved, plan runs": {onBranch(unsaved, runs(ran("run-2", plan, holdfast.RunRunning))), canceling(act(decision.ActionWait, holdfast.ReasonStateUnsaved), "run-2")},
		"a state was not saved, applied":   {onBranch(unsaved, runs(ran("run-2", apply, holdfast.RunRunning))), act(decision.ActionWait, holdfast.ReasonStateUnsaved)},
		"a state was not saved, proposed":  {atPullRequest(unsaved), act(decision.ActionWait, holdfast.ReasonStateUnsaved)},
	}
}

// unsaved says that an engine could not save its state.
func unsaved(in *decision.Input) {
	in.Unsaved = &decision.Unsaved{State: holdfast.UnsavedState{Run: "run-1"}}
}

func canceling(d decision.Decision, ids ...string) decision.Decision {
	d.Cancel = ids
	return d
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, tt := range situations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, decision.Decide(tt.in), sameEmpty); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecideNeedsEveryRule leaves out one rule after another: some situation
// above must notice.
func TestDecideNeedsEveryRule(t *testing.T) {
	t.Parallel()
	pullRequest, branch := decision.Rules()
	for skip := range max(pullRequest, branch) {
		sides := map[string]bool{"pull request": skip >= pullRequest, "branch": skip >= branch}
		for _, tt := range situations() {
			side := "branch"
			if tt.in.PullRequest != nil {
				side = "pull request"
			}
			if !sides[side] && !cmp.Equal(tt.want, decideWithout(tt.in, skip), sameEmpty) {
				sides[side] = true
			}
		}
		for side, noticed := range sides {
			if !noticed {
				t.Errorf("rule %d of the %s could be left out", skip, side)
			}
		}
	}
}

// decideWithout takes a panic, such as that of a rule which relies on an
// earlier one, for a difference.
func decideWithout(in decision.Input, skip int) (d decision.Decision) {
	defer func() {
		if recover() != nil {
			d = decision.Decision{}
		}
	}()
	return decision.DecideWithout(in, skip)
}

var sameEmpty = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b holdfast.Digest) bool { return a == b }),
}

func situations() map[string]situation {
	all := make(map[string]situation)
	for name, s := range pullRequestSituations() {
		all["pull request: "+name] = s
	}
	for name, s := range branchSituations() {
		all["branch: "+name] = s
	}
	for name, s := range removalSituations() {
		all["removal: "+name] = s
	}
	for name, s := range orderSituations() {
		all["order: "+name] = s
	}
	for name, s := range driftSituations() {
		all["drift: "+name] = s
	}
	return all
}
