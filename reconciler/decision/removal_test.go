package decision_test

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

const destroy = holdfast.RunDestroy

func protected(in *decision.Input) { in.Last.Document.Deletion.Protected = true }

func withDependent(phase holdfast.Phase) func(*decision.Input) {
	return func(in *decision.Input) {
		in.Dependents = append(in.Dependents, holdfast.Relation{Name: "app", Phase: phase})
	}
}

// among says how many clusters are gone at once, of how many.
func among(gone, fleet int) func(*decision.Input) {
	return func(in *decision.Input) { in.Removals, in.Fleet = gone, fleet }
}

func unreadable(in *decision.Input) { in.Cluster.Desired.Missing = "a file cannot be read" }

func gone(in *decision.Input) {
	removed(in)
	in.Cluster.Applied, in.Last = holdfast.Applied{}, holdfast.Applied{}
	in.Cluster.Life, in.Cluster.Deletion = "run-2", &holdfast.Deletion{Reason: holdfast.ReasonDestroyed}
}

func leaves(addresses ...string) func(*holdfast.Run) {
	return func(run *holdfast.Run) {
		run.Failure = &holdfast.Failure{Summary: "DependencyViolation", Remaining: addresses}
	}
}

func because(detail string) func(*decision.Decision) {
	return func(d *decision.Decision) { d.Detail = detail }
}

func waits(reason holdfast.Reason, with ...func(*decision.Decision)) decision.Decision {
	return act(decision.ActionWait, reason, with...)
}

func refuses(reason holdfast.Reason, with ...func(*decision.Decision)) decision.Decision {
	return act(decision.ActionRefuse, reason, with...)
}

func confirmed(d *decision.Decision) { d.Confirmed = "alice" }

func unlocked(run *holdfast.Run) {
	run.Failure = &holdfast.Failure{Cause: holdfast.ReasonAgentKilled}
}

func goesOn(d *decision.Decision) { d.Resume = true }

func in(d time.Duration) func(*decision.Decision) {
	return func(decision *decision.Decision) { decision.After = d }
}

func removalSituations() map[string]situation {
	destroyed := ran("run-2", destroy, holdfast.RunApplied, hasBegun, ofNothing)
	failing := func(id string, with ...func(*holdfast.Run)) holdfast.Run {
		return ran(id, destroy, holdfast.RunErrored, append([]func(*holdfast.Run){
			hasBegun, ofNothing, withReviews(seen), leaves("aws_vpc.main"), func(run *holdfast.Run) { run.FinishedAt = noon },
		}, with...)...)
	}
	destructionSeen := ran("run-3", plan, holdfast.RunPlanned, aDestruction)
	mass := "6 of 100 clusters would be destroyed at once: holdfast apply destroys those that are named"
	left := "left in the state: aws_vpc.main"
	return map[string]situation{
		// What a removal leads to.
		"approved in another one":                 {onBranch(removed, merged, asks(holdfast.VerbApply, ""), saidIn(1, false)), refuses(holdfast.ReasonPlanMoved, because("it was removed since"))},
		"approved where it is removed":            {onBranch(removed, merged, manual, asks(holdfast.VerbApply, ""), saidIn(1, true)), act(decision.ActionApply, holdfast.ReasonApproved, on(seen), alice)},
		"approved where nothing is to be applied": {onBranch(removed, merged, asks(holdfast.VerbApply, ""), saidIn(99, true)), refuses(holdfast.ReasonNothingPlanned)},
		"nobody has seen it":                      {onBranch(removed), act(decision.ActionPlan, holdfast.ReasonUnreviewed, on())},
		"nobody has approved it":                  {onBranch(removed, runs(destructionSeen)), waits(holdfast.ReasonUnreviewed)},
		"approved as it was seen":                 {onBranch(removed, runs(destructionSeen), asks(holdfast.VerbApply, "run-3")), act(decision.ActionApply, holdfast.ReasonApproved, on(), stored("run-3"), alice)},
		"reviewed":                                {onBranch(removed, merged), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"reviewed, and manual":                    {onBranch(removed, merged, manual), waits(holdfast.ReasonManual)},
		"reviewed, queued":                        {onBranch(removed, merged, runs(ran("run-2", destroy, holdfast.RunQueued, ofNothing))), none(holdfast.ReasonInProgress)},
		"destroyed":                               {onBranch(removed, runs(destroyed)), act(decision.ActionRecord, holdfast.ReasonDestroyed, about("run-2"))},
		"nothing was left to destroy":             {onBranch(removed, runs(ran("run-2", destroy, holdfast.RunNoChanges, ofNothing))), act(decision.ActionRecord, holdfast.ReasonDestroyed, about("run-2"))},
		"its plan finds nothing":                  {onBranch(removed, runs(ran("run-2", plan, holdfast.RunNoChanges, aDestruction))), act(decision.ActionRecord, holdfast.ReasonDestroyed, about("run-2"))},
		"its plan has changed":                    {onBranch(removed, merged, runs(ran("run-2", destroy, holdfast.RunPlanned, ofNothing))), waits(holdfast.ReasonPlanChanged)},
		"the plan of a change was new":            {onBranch(removed, runs(ran("run-2", plan, holdfast.RunPlanned))), act(decision.ActionPlan, holdfast.ReasonUnreviewed, on())},
		"the document came back":                  {onBranch(runs(ran("run-2", destroy, holdfast.RunQueued, ofNothing))), act(decision.ActionNone, holdfast.ReasonSuperseded, cancels("run-2"), in(time.Nanosecond))},
		"it came back half destroyed":             {onBranch(upToDate, runs(failing("run-2"))), act(decision.ActionPlan, holdfast.ReasonApplyFailed, on())},
		"it is gone":                              {onBranch(gone, runs(destroyed)), none(holdfast.ReasonDestroyed)},
		"it is gone, and asked for":               {onBranch(gone, asks(holdfast.VerbApply, "")), none(holdfast.ReasonDestroyed)},
		"it was never there":                      {onBranch(removed, fresh, runs(ran("run-2", plan, holdfast.RunQueued))), act(decision.ActionRecord, holdfast.ReasonNeverApplied, cancels("run-2"))},
		"not yet seen by this process":            {onBranch(removed, merged, func(in *decision.Input) { in.Unseen = true }), none(holdfast.ReasonInProgress)},

		// What stands in the way.
		"not proven":                      {onBranch(unreadable, merged, runs(queued())), waits(holdfast.ReasonMissing, cancels("run-2"), because("a file cannot be read"))},
		"not proven, and asked for":       {onBranch(unreadable, merged, asks(holdfast.VerbApply, "")), refuses(holdfast.ReasonMissing, because("a file cannot be read"))},
		"protected":                       {onBranch(removed, merged, protected), waits(holdfast.ReasonProtected, because(unprotect))},
		"protected, and asked for":        {onBranch(removed, merged, protected, asks(holdfast.VerbApply, "")), refuses(holdfast.ReasonProtected, because(unprotect))},
		"a dependent is there":            {onBranch(removed, merged, withDependent(holdfast.PhaseActive)), waits(holdfast.ReasonHasDependents, because("waiting for these to be destroyed first: app"))},
		"a dependent is there, asked for": {onBranch(removed, merged, withDependent(holdfast.PhaseActive), asks(holdfast.VerbApply, "")), refuses(holdfast.ReasonHasDependents, because("waiting for these to be destroyed first: app"))},
		"a dependent goes, asked for":     {onBranch(removed, merged, withDependent(holdfast.PhaseDeleting), asks(holdfast.VerbApply, "")), waits(holdfast.ReasonHasDependents, because("waiting for these to be destroyed first: app"), confirmed)},
		"a dependent goes, unreviewed":    {onBranch(removed, withDependent(holdfast.PhaseDeleting), runs(ran("run-2", plan, holdfast.RunPlanned, ofNothing)), asks(holdfast.VerbApply, "run-2")), refuses(holdfast.ReasonHasDependents, because("waiting for these to be destroyed first: app"))},
		"a dependent came":                {onBranch(removed, merged, withDependent(holdfast.PhaseActive), runs(ran("run-2", destroy, holdfast.RunQueued, ofNothing))), waits(holdfast.ReasonHasDependents, cancels("run-2"), because("waiting for these to be destroyed first: app"))},
		"the dependent is gone":           {onBranch(removed, merged, withDependent(holdfast.PhaseDeleted)), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"a dependent, planned all along":  {onBranch(removed, withDependent(holdfast.PhaseActive)), act(decision.ActionPlan, holdfast.ReasonUnreviewed, on())},

		// Many at once.
		"five of many":                  {onBranch(removed, merged, among(5, 100)), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"six of many":                   {onBranch(removed, merged, among(6, 100)), waits(holdfast.ReasonMassDeletion, because(mass))},
		"two of twenty":                 {onBranch(removed, merged, among(2, 20)), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"two of nineteen":               {onBranch(removed, merged, among(2, 19)), waits(holdfast.ReasonMassDeletion, because("2 of 19 clusters would be destroyed at once: holdfast apply destroys those that are named"))},
		"one of two":                    {onBranch(removed, merged, among(1, 2)), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"six in one push, one by one":   {onBranch(removed, merged, among(1, 100), func(in *decision.Input) { in.Cluster.Desired.RemovedWith = 6 }), waits(holdfast.ReasonMassDeletion, because(mass))},
		"two of nineteen, of more now":  {onBranch(removed, merged, among(2, 100), func(in *decision.Input) { in.Cluster.Desired.RemovedFrom = 19 }), waits(holdfast.ReasonMassDeletion, because("2 of 19 clusters would be destroyed at once: holdfast apply destroys those that are named"))},
		"six of many, confirmed":        {onBranch(removed, merged, among(6, 100), asks(holdfast.VerbApply, "")), act(decision.ActionApply, holdfast.ReasonApproved, on(seen), alice)},
		"six of many, confirmed before": {onBranch(removed, merged, among(6, 100), runs(ran("run-2", destroy, holdfast.RunQueued, ofNothing, byAlice))), none(holdfast.ReasonInProgress)},
		"six of many, queued before":    {onBranch(removed, merged, among(6, 100), runs(ran("run-2", destroy, holdfast.RunQueued, ofNothing))), waits(holdfast.ReasonMassDeletion, cancels("run-2"), because(mass))},
		"six of many, half destroyed":   {onBranch(removed, among(6, 100), runs(failing("run-2")), later(time.Minute)), act(decision.ActionApply, holdfast.ReasonResumed, on(seen), goesOn)},

		// A destroy that fails.
		"failed, at first":                  {onBranch(removed, runs(failing("run-2"))), waits(holdfast.ReasonBackingOff, because(left), in(time.Minute))},
		"failed, by a clock that was wrong": {onBranch(removed, runs(failing("run-2")), later(-30*24*time.Hour)), act(decision.ActionApply, holdfast.ReasonResumed, on(seen), goesOn)},
		"failed, and the clock set back":    {onBranch(removed, runs(failing("run-2")), later(-10*time.Minute)), act(decision.ActionApply, holdfast.ReasonResumed, on(seen), goesOn)},
		"failed, later":                     {onBranch(removed, runs(failing("run-2")), later(time.Minute)), act(decision.ActionApply, holdfast.ReasonResumed, on(seen), goesOn)},
		"failed before it began":            {onBranch(removed, runs(failing("run-2", func(run *holdfast.Run) { run.Begun = false })), later(time.Minute)), act(decision.ActionApply, holdfast.ReasonResumed, on(seen), goesOn)},
		"failed for the last time":          {onBranch(removed, runs(failing("run-5", resumed), failing("run-4", resumed), failing("run-3", resumed), failing("run-2"))), act(decision.ActionPlan, holdfast.ReasonDestroyFailed, on())},
		"failed, what is left is planned": {
			onBranch(removed, runs(ran("run-6", plan, holdfast.RunPlanned, aDestruction), failing("run-5", resumed), failing("run-4", resumed), failing("run-3", resumed), failing("run-2"))),
			waits(holdfast.ReasonDestroyFailed, because(left)),
		},
		"failed, what is left is being planned": {
			onBranch(removed, runs(ran("run-6", plan, holdfast.RunQueued, aDestruction), failing("run-5", resumed), failing("run-4", resumed), failing("run-3", resumed), failing("run-2"))),
			none(holdfast.ReasonInProgress),
		},
		"failed, what is left is approved": {
			onBranch(removed, runs(ran("run-6", plan, holdfast.RunPlanned, aDestruction), failing("run-5", resumed), failing("run-4")), asks(holdfast.VerbApply, "run-6")),
			act(decision.ActionApply, holdfast.ReasonApproved, on(), stored("run-6"), alice),
		},
		"its lock was taken away": {onBranch(removed, runs(failing("run-2", unlocked, func(run *holdfast.Run) { run.Status = holdfast.RunInterrupted })), later(time.Hour)), act(decision.ActionPlan, holdfast.ReasonDestroyFailed, on())},

		// In a pull request.
		"a pull request removes it":           {atPullRequest(removes), act(decision.ActionPlan, holdfast.ReasonNewRevision)},
		"a pull request, planned":             {atPullRequest(removes, runs(ran("run-2", plan, holdfast.RunPlanned, aDestruction))), none(holdfast.ReasonUpToDate)},
		"a pull request, applied since":       {atPullRequest(removes, func(in *decision.Input) { in.Last.SourceDigest = newDigest }, runs(ran("run-2", plan, holdfast.RunPlanned, aDestruction))), act(decision.ActionPlan, holdfast.ReasonNewRevision)},
		"a pull request, never applied":       {atPullRequest(removes, fresh), waits(holdfast.ReasonNeverApplied)},
		"a pull request, protected":           {atPullRequest(removes, protected), waits(holdfast.ReasonProtected)},
		"a pull request that removes nothing": {atPullRequest(runs(ran("run-2", plan, holdfast.RunPlanned, aDestruction))), act(decision.ActionPlan, holdfast.ReasonNewRevision)},
	}
}

const unprotect = "its document has to be restored first"

func queued() holdfast.Run { return ran("run-2", apply, holdfast.RunQueued) }

// saidIn says in which pull request a person's word was said.
func saidIn(number int, removes bool) func(*decision.Input) {
	return func(in *decision.Input) {
		in.Ask.PullRequest, in.Ask.Removes = in.Merges[0].Review.PullRequest, removes
		if number != 1 {
			in.Ask.PullRequest.Number = number
		}
	}
}

func removes(in *decision.Input) {
	in.PullRequest.Clusters = []holdfast.PullRequestCluster{{Name: "prod", Removed: true}}
}

func parent(settled, failed bool, waiting string) func(*decision.Input) {
	return func(in *decision.Input) {
		in.Cluster.Desired.Document.DependsOn = append(in.Cluster.Desired.Document.DependsOn, "network")
		in.Parents = append(in.Parents, holdfast.Relation{
			Name: fmt.Sprintf("network%d", len(in.Parents)), Phase: holdfast.PhaseActive, Settled: settled, Failed: failed, Waiting: waiting,
		})
	}
}

func orderSituations() map[string]situation {
	settled, pending := parent(true, false, ""), parent(false, false, string(holdfast.ReasonManual))
	failed := parent(false, true, string(holdfast.ReasonApplyFailed))
	unknown := func(in *decision.Input) { in.Parents = []holdfast.Relation{{Name: "network"}} }
	provisional := func(run *holdfast.Run) { run.Provisional = []string{"network0"} }
	return map[string]situation{
		"the parent is applied":            {onBranch(merged, settled), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"the parent waits":                 {onBranch(merged, settled, pending), waits(holdfast.ReasonDependencyPending, because("network1 is applied by command (Manual)"))},
		"the parent failed":                {onBranch(merged, pending, failed), waits(holdfast.ReasonDependencyFailed, because("network1 failed to apply (ApplyFailed)"))},
		"the parent's turn comes":          {onBranch(merged, parent(false, false, string(holdfast.ReasonWindowClosed))), waits(holdfast.ReasonDependencyPending, because("network0 waits (WindowClosed)"))},
		"there is no parent":               {onBranch(merged, unknown), waits(holdfast.ReasonDependencyMissing, because(`cluster "network" does not exist`))},
		"the parent waits, and asked for":  {onBranch(merged, pending, asks(holdfast.VerbApply, "")), refuses(holdfast.ReasonDependencyPending, because("network0 is applied by command (Manual)"))},
		"the parent waits, planned anyway": {onBranch(pending), act(decision.ActionPlan, holdfast.ReasonUnreviewed, on())},
		"the parent is going, too":         {onBranch(removed, merged, pending), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"not yet seen by this process":     {onBranch(merged, settled, func(in *decision.Input) { in.Unseen = true }), none(holdfast.ReasonInProgress)},
		"a provisional plan":               {atPullRequest(pending, runs(ran("run-2", plan, holdfast.RunPlanned, provisional))), none(holdfast.ReasonUpToDate)},
		"a provisional plan, then applied": {atPullRequest(settled, runs(ran("run-2", plan, holdfast.RunPlanned, provisional))), act(decision.ActionPlan, holdfast.ReasonDependencyApplied)},
	}
}
