package decision_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// TestDecideNever draws situations from all that may come together and holds
// each decision to what must never happen, whatever the rules are.
func TestDecideNever(t *testing.T) {
	t.Parallel()
	const draws = 80_000
	rnd := rand.New(rand.NewPCG(1, 2))
	actions := map[decision.Action]int{}
	for range draws {
		in := draw(rnd)
		d := decision.Decide(in)
		actions[d.Action]++
		if wrong := never(in, d); wrong != "" {
			t.Fatalf("%s:\ndecision %+v\nrequest %+v\ncluster %+v\nlast apply %q\nmerges %+v\napproval %+v\nruns %s",
				wrong, d, in.Request, in.Cluster, in.LastApply, in.Merges, in.Ask, list(in.Runs))
		}
	}
	for _, action := range []decision.Action{
		decision.ActionNone, decision.ActionWait, decision.ActionPlan, decision.ActionApply,
		decision.ActionRecord, decision.ActionCarry, decision.ActionRefuse,
	} {
		if actions[action] < draws/2000 {
			t.Errorf("%s was decided %d times only: the draws prove little", action, actions[action])
		}
	}
}

// never returns what is wrong with a decision; empty if nothing is.
func never(in decision.Input, d decision.Decision) string {
	atPullRequest := in.PullRequest != nil
	unfinished := func(id string) bool {
		return slices.ContainsFunc(in.Runs, func(run holdfast.Run) bool { return run.ID == id && !run.Status.Done() })
	}
	queues := d.Action == decision.ActionPlan || d.Action == decision.ActionApply
	switch {
	case d.Reason == "":
		return "no reason"
	case in.Unsaved != nil && (queues || d.Action == decision.ActionCheck || d.Action == decision.ActionRecord):
		return "begins something, or believes in a plan, while a state stands that could not be saved"
	case in.Unsaved != nil && !atPullRequest && d.Reason != holdfast.ReasonStateUnsaved:
		return "does not say that a state stands that could not be saved"
	case !slices.ContainsFunc([]decision.Action{"none", "wait", "plan", "apply", "record", "carry", "refuse"},
		func(a decision.Action) bool { return a == d.Action }):
		return "an unknown action"
	case slices.ContainsFunc(d.Cancel, func(id string) bool { return !unfinished(id) }):
		return "cancels what has ended"
	case atPullRequest && (d.Action == decision.ActionApply || d.Action == decision.ActionRecord):
		return "a pull request applies"
	case !atPullRequest && d.Action == decision.ActionCarry:
		return "the branch carries"
	case d.Action == decision.ActionRefuse && in.Ask == nil:
		return "refuses what nobody asked for"
	case queues && d.After != 0:
		return "queues and comes back for more"
	case queues && slices.ContainsFunc(in.Runs, func(run holdfast.Run) bool {
		return !run.Status.Done() && run.Cancel == "" && !slices.Contains(d.Cancel, run.ID)
	}):
		return "queues beside what is queued or runs"
	case d.Background && (d.Action != decision.ActionPlan || atPullRequest && (!in.Runs[0].Status.Good() || in.Runs[0].PlanDigest != "") ||
		!atPullRequest && (in.Cluster.Applied.Run != "" || len(in.Merges) > 0)):
		return "lets something wait that somebody waits for"
	case atPullRequest && d.Action == decision.ActionNone && d.Reason == holdfast.ReasonUpToDate && in.Runs[0].PlanDigest == "":
		return "is content with a plan that no apply can be compared with"
	case d.Action != decision.ActionApply && (d.Shown != "" || d.Resume):
		return "what only an apply has"
	case d.Action == decision.ActionApply:
		return neverApplied(in, d)
	case !atPullRequest && d.Action == decision.ActionWait && in.Ask == nil && reviewedAfterAll(in) && slices.Contains(ofOlderRuns, d.Reason):
		return "holds what people have seen since"
	case d.Action == decision.ActionPlan && in.Ask == nil && len(in.Runs) > 0 && canceledByPerson(in):
		return "does again what a person canceled"
	case d.Action == decision.ActionNone && d.Reason == holdfast.ReasonInProgress && !slices.ContainsFunc(in.Runs,
		func(run holdfast.Run) bool { return !run.Status.Done() }):
		return "waits for nothing"
	}
	return ""
}

// ofOlderRuns are the reasons that come from how a run has ended.
var ofOlderRuns = []holdfast.Reason{
	holdfast.ReasonPlanChanged, holdfast.ReasonCanceled, holdfast.ReasonPlanFailed, holdfast.ReasonReplanned, holdfast.ReasonApplyFailed,
	holdfast.ReasonMayExist,
}

// reviewedAfterAll: people have merged a plan that was made after all runs of the
// branch.
func reviewedAfterAll(in decision.Input) bool {
	i := slices.IndexFunc(in.Merges, func(m decision.Merge) bool { return m.Review.Run != "" })
	return i >= 0 && len(in.Runs) > 0 && in.Merges[i].Review.Run > in.Runs[0].ID
}

func neverApplied(in decision.Input, d decision.Decision) string {
	desired, want := in.Cluster.Desired, wanted(in)
	failed := failedOf(in)
	asked := in.Ask != nil && in.Ask.Verb == holdfast.VerbApply
	isReviewed := slices.ContainsFunc(in.Merges, func(m decision.Merge) bool { return m.Review.Run != "" })
	seenSince := slices.ContainsFunc(in.Merges, func(m decision.Merge) bool {
		return failed != nil && m.Review.Run > failed.ID
	})
	switch {
	case in.Cluster.Suspended, want == "":
		return "applies while suspended or invalid"
	case desired.Removed && (in.Last.Document.Deletion.Protected || len(in.Dependents) > 0):
		return "destroys what is protected or has dependents"
	case desired.Removed && in.Removals > 5 && !asked && !begunToDestroy(in):
		return "destroys many without a word"
	case !desired.Removed && slices.ContainsFunc(in.Parents, func(p holdfast.Relation) bool { return !p.Settled }):
		return "applies before its parents"
	case in.Window.Closed:
		return "applies outside of the windows"
	case !desired.Removed && !asked && decision.OtherState(in.Last, desired.StateLocation, desired.Document):
		return "leaves a state behind without a word"
	case slices.ContainsFunc(in.Runs, func(run holdfast.Run) bool { return run.Status == holdfast.RunRunning }):
		return "applies while something runs"
	case in.Ask != nil && !asked:
		return "applies where something else was asked for"
	case d.Resume:
		return neverResumed(in, d, failed)
	case d.Shown != "":
		plan := in.Runs[0]
		if !asked || in.Ask.Run != plan.ID || d.Shown != plan.ID || plan.Status != holdfast.RunPlanned ||
			plan.SourceDigest != want || plan.StateSerial != in.Cluster.StateSerial || d.Actor == "" {
			return "applies another plan than the newest, as it was seen"
		}
		if decision.AsGitSays(in) { // drift is reverted, which is of no merge
			return ""
		}
		return unmet(in, func(m decision.Merge) []string { return m.NewestMet })
	case !isReviewed:
		return "applies what nobody has seen"
	case len(d.Reviews) != len(in.Merges):
		return "does not compare with all merges"
	case asked && meansOther(in, d):
		return "applies another plan than the one that was named"
	case failed != nil && !seenSince:
		return "applies over a failed apply"
	case (desired.Document.Apply.Manual || in.Cluster.Applied.Document.Apply.Manual) && !asked:
		return "applies by itself what is manual"
	}
	return unmet(in, func(m decision.Merge) []string { return m.Met })
}

// unmet: one of the merges that would be applied does not meet what is required.
func unmet(in decision.Input, met func(decision.Merge) []string) string {
	for _, name := range holdfast.GateNames() {
		lacks := func(m decision.Merge) bool { return !slices.Contains(met(m), name) }
		merges := in.Merges
		if name == holdfast.GatePolicy {
			merges = merges[:min(len(merges), 1)] // what is applied is what it has planned
		}
		if asksFor(in, name) && slices.ContainsFunc(merges, lacks) {
			return "applies what is not " + name
		}
	}
	return ""
}

// meansOther: the word names a plan or a pull request, and what would be applied is, or
// may be, another plan.
func meansOther(in decision.Input, d decision.Decision) bool {
	newest := newestReviewed(in).Review
	if in.Ask.Seen == nil && in.Ask.PullRequest.IsZero() {
		return false
	}
	if !in.Ask.PullRequest.IsZero() && in.Ask.PullRequest != newest.PullRequest {
		return true
	}
	return in.Ask.Seen != nil && !slices.Contains(in.Ask.Seen, newest.Run) ||
		slices.ContainsFunc(d.Reviews, func(v holdfast.Review) bool { return v.Run != "" && v.Run != newest.Run })
}

func neverResumed(in decision.Input, d decision.Decision, failed *holdfast.Run) string {
	switch {
	case in.Cluster.Desired.Removed && in.Runs[0].Kind == destroy:
		return neverDestroyedAgain(in)
	case failed == nil || in.Runs[0].ID != failed.ID:
		return "resumes without a failure"
	case failed.Failure == nil || !failed.Failure.Transient || failed.Status == holdfast.RunCanceled:
		return "resumes after a failure that is not passing"
	case failed.SourceDigest != wanted(in):
		return "resumes with other content"
	case !slices.Equal(d.Reviews, failed.Reviews) || d.Shown != failed.Matched:
		return "resumes with other reviews"
	}
	n := 0
	for n < len(in.Runs) && in.Runs[n].Resume && in.Runs[n].Kind == holdfast.RunApply {
		n++
	}
	if n >= in.Resumes.Most {
		return "resumes for ever"
	}
	return ""
}

func neverDestroyedAgain(in decision.Input) string {
	last := in.Runs[0]
	n := slices.IndexFunc(in.Runs, func(run holdfast.Run) bool { return !run.Resume || !run.Kind.Writes() })
	if n < 0 {
		n = len(in.Runs)
	}
	switch {
	case last.Status != holdfast.RunErrored && last.Status != holdfast.RunInterrupted, last.SourceDigest != wanted(in):
		return "destroys again what did not fail"
	case n >= 3:
		return "destroys again for ever"
	}
	return ""
}

// wanted is what the tracked branch asks for.
func wanted(in decision.Input) holdfast.Digest {
	if in.Cluster.Desired.Removed {
		return decision.DestroyDigest(in.Cluster.Name, in.Last)
	}
	return in.Cluster.Desired.SourceDigest
}

func begunToDestroy(in decision.Input) bool {
	return slices.ContainsFunc(in.Runs, func(run holdfast.Run) bool {
		return run.Kind == destroy && (run.Begun || run.Actor != "")
	})
}

func newestReviewed(in decision.Input) decision.Merge {
	i := slices.IndexFunc(in.Merges, func(m decision.Merge) bool { return m.Review.Run != "" })
	return in.Merges[i]
}

// asksFor reports whether the desired document asks for a condition, or the one that was
// last applied, or begun, or one of a merge.
func asksFor(in decision.Input, name string) bool {
	return slices.Contains(in.Cluster.Desired.Document.Apply.Requires, name) ||
		slices.Contains(in.Cluster.Applied.Document.Apply.Requires, name) ||
		slices.Contains(in.Last.Document.Apply.Requires, name) ||
		slices.ContainsFunc(in.Merges, func(m decision.Merge) bool { return slices.Contains(m.Asks.Requires, name) })
}

func failedOf(in decision.Input) *holdfast.Run {
	for i, run := range in.Runs {
		if run.ID > in.Cluster.Applied.Run && run.Kind == holdfast.RunApply && run.Begun && run.Status.Done() && !run.Status.Good() {
			return &in.Runs[i]
		}
	}
	return nil
}

// canceledByPerson: the newest run is one that a person has stopped before it
// began, and nothing has changed since.
func canceledByPerson(in decision.Input) bool {
	last := in.Runs[0]
	if last.Status != holdfast.RunCanceled || last.Reason != holdfast.ReasonCanceled || last.Begun || failedOf(in) != nil {
		return false
	}
	if pr := in.PullRequest; pr != nil {
		same := last.SourceDigest == pr.Clusters[0].SourceDigest
		return same && last.AppliedRun == in.LastApply && last.StateSerial == in.Cluster.StateSerial
	}
	return last.SourceDigest == wanted(in) && last.ID > in.Cluster.Applied.Run
}

// draw makes up a situation.
func draw(rnd *rand.Rand) decision.Input {
	chance := func(percent int) bool { return rnd.IntN(100) < percent }
	in := onBranch()
	if chance(25) {
		in = atPullRequest()
		rec := in.PullRequest
		rec.State = pick(rnd, holdfast.PullRequestOpen, holdfast.PullRequestOpen, holdfast.PullRequestOpen, holdfast.PullRequestMerged, holdfast.PullRequestClosed)
		rec.Reason = pick(rnd, "", "", "", holdfast.ReasonDraft, holdfast.ReasonNotMergeable)
		rec.Head = pick[holdfast.Revision](rnd, "h", "h", "h2")
		rec.Base = pick[holdfast.Revision](rnd, "a", "a", "a2")
		rec.Clusters[0].SourceDigest = pick(rnd, newDigest, newDigest, newDigest, oldDigest, "")
	}
	in.Cluster.Desired.SourceDigest = pick(rnd, newDigest, newDigest, newDigest, newDigest, oldDigest, "")
	in.Cluster.Desired.Removed, in.Cluster.Suspended = chance(15), chance(5)
	in.Cluster.Desired.Document.Apply.Manual = chance(20)
	in.Window.Closed = chance(10)
	if chance(20) {
		in.Cluster.Desired.Document.Apply.Requires = []string{pick(rnd, holdfast.GateNames()...)}
	}
	if chance(20) {
		in.Cluster.Applied.Document.Apply = holdfast.ApplySettings{Manual: chance(50), Requires: []string{pick(rnd, holdfast.GateNames()...)}}
	}
	if chance(10) {
		in.Unsaved = &decision.Unsaved{State: holdfast.UnsavedState{Cluster: in.Cluster.Name, Run: "run-1"}}
	}
	in.Cluster.StateSerial = pick[int64](rnd, 0, 0, 0, 5)
	in.Now = noon.Add(pick(rnd, 0, time.Minute, time.Hour))
	if chance(20) {
		in.Cluster.Applied, in.LastApply = holdfast.Applied{}, ""
	}
	for i := range rnd.IntN(5) {
		run := drawRun(rnd, fmt.Sprintf("run-%d", 2+i))
		if len(in.Runs) > 0 && !in.Runs[0].Status.Done() { // one after another, except for what is asked to stop
			in.Runs[0].Status, in.Runs[0].Reason = holdfast.RunCanceled, holdfast.ReasonSuperseded
			if in.PullRequest != nil && chance(30) {
				in.Runs[0].Status, in.Runs[0].Cancel = holdfast.RunRunning, holdfast.ReasonSuperseded
			}
		}
		if in.PullRequest != nil {
			run.Kind = holdfast.RunPlan
		}
		if chance(10) {
			run.PlanDigest = "" // a former version made it
		}
		in.Runs = append([]holdfast.Run{run}, in.Runs...)
	}
	if in.Cluster.Desired.Removed {
		drawRemoval(rnd, &in)
	} else if chance(10) {
		in.Parents = []holdfast.Relation{{Name: "network", Phase: holdfast.PhaseActive, Settled: chance(50), Failed: chance(20)}}
	}
	for i := range rnd.IntN(3) {
		merge := decision.Merge{
			Review: holdfast.Review{PullRequest: holdfast.PullRequestRef{Repo: onePR.Repo, Number: 2 - i}, Run: pick(rnd, "", "run-1", "run-1", "run-7")},
		}
		if chance(10) {
			merge.Asks.Requires = []string{pick(rnd, holdfast.GateNames()...)}
		}
		for _, name := range holdfast.GateNames() {
			if chance(65) {
				merge.Met = append(merge.Met, name)
			}
			if chance(65) {
				merge.NewestMet = append(merge.NewestMet, name)
			}
		}
		in.Merges = append(in.Merges, merge)
	}
	if chance(30) {
		in.Ask = &decision.Ask{
			Verb: pick(rnd, holdfast.VerbApply, holdfast.VerbApply, holdfast.VerbPlan), Actor: "alice",
			Run: pick(rnd, "", "run-2", "run-3", "run-4", "run-5"),
		}
		if chance(30) {
			in.Ask.Seen = pick(rnd, []string{"run-1"}, []string{"run-3"}, []string{"run-7"}, []string{})
		} else if chance(40) {
			in.Ask.PullRequest = holdfast.PullRequestRef{Repo: onePR.Repo, Number: pick(rnd, 1, 2, 3)}
		}
	}
	if chance(20) {
		in.Last.StateLocation, in.Cluster.Desired.StateLocation = "s3:old", pick(rnd, "s3:old", "s3:new")
	}
	return in
}

// drawRemoval makes most runs those of a destruction.
func drawRemoval(rnd *rand.Rand, in *decision.Input) {
	chance := func(percent int) bool { return rnd.IntN(100) < percent }
	for i := range in.Runs {
		if chance(70) && in.PullRequest == nil {
			asDestruction(&in.Runs[i])
		}
	}
	in.Last.Document.Deletion.Protected = chance(15)
	in.Removals, in.Fleet = pick(rnd, 1, 1, 3, 6), pick(rnd, 10, 100)
	if chance(15) {
		in.Dependents = []holdfast.Relation{{Name: "app", Phase: holdfast.PhaseActive}}
	}
}

func newestID(runs []holdfast.Run) string {
	if len(runs) == 0 {
		return ""
	}
	return runs[0].ID
}

func asDestruction(run *holdfast.Run) {
	run.SourceDigest = destroyDigest
	if run.Kind == plan {
		run.Destroy = true
	} else {
		run.Kind = destroy
	}
}

func drawRun(rnd *rand.Rand, id string) holdfast.Run {
	run := ran(id, pick(rnd, plan, apply), pick(rnd,
		holdfast.RunQueued, holdfast.RunRetrying, holdfast.RunRunning, holdfast.RunPlanned, holdfast.RunApplied,
		holdfast.RunNoChanges, holdfast.RunErrored, holdfast.RunErrored, holdfast.RunCanceled, holdfast.RunInterrupted))
	run.SourceDigest = pick(rnd, newDigest, newDigest, newDigest, oldDigest)
	run.Begun = run.Kind == apply && rnd.IntN(2) == 0
	run.Resume = run.Kind == apply && rnd.IntN(3) == 0
	run.Actor = pick(rnd, "", "", "alice")
	if run.Kind == apply && run.Begun {
		run.Matched = pick(rnd, "", "run-1")
	}
	if run.Kind == apply && run.Status == holdfast.RunPlanned {
		run.Reason = pick(rnd, "", holdfast.ReasonMayExist)
	}
	run.StateSerial = pick[int64](rnd, 0, 0, 5)
	run.Attempt = pick(rnd, 1, 1, 0)
	run.AppliedRun = pick(rnd, "run-0", "run-0", "")
	if rnd.IntN(2) == 0 {
		run.Failure = &holdfast.Failure{Transient: rnd.IntN(2) == 0}
	}
	if run.Status == holdfast.RunCanceled {
		run.Reason = pick(rnd, holdfast.ReasonCanceled, holdfast.ReasonSuperseded, holdfast.ReasonSuspended)
	}
	if rnd.IntN(2) == 0 {
		run.Reviews = []holdfast.Review{seen}
	}
	return run
}

func pick[T any](rnd *rand.Rand, from ...T) T { return from[rnd.IntN(len(from))] }

func list(runs []holdfast.Run) string {
	out := ""
	for _, run := range runs {
		out += fmt.Sprintf("\n  %s %s %s %s digest=%s begun=%t resume=%t actor=%q attempt=%d applied=%q serial=%d failure=%+v",
			run.ID, run.Kind, run.Status, run.Reason, run.SourceDigest, run.Begun, run.Resume, run.Actor, run.Attempt,
			run.AppliedRun, run.StateSerial, run.Failure)
	}
	return out
}

// TestDecideTerminates lets the infrastructure develop from made-up situations as the
// decisions say, with runs that end in any way: after a while nothing is left to be
// done automatically, whatever state it was in.
func TestDecideTerminates(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 8_000 {
		in := draw(rnd)
		in.Window.Closed = false
		start := list(in.Runs)
		var story []string
		for steps := 0; ; steps++ {
			d := decision.Decide(in)
			story = append(story, fmt.Sprintf("%s %s", d.Action, d.Reason))
			if !goOn(rnd, &in, d) {
				break
			}
			if steps > 60 {
				t.Fatalf("it never comes to rest:\nrequest %+v\ncluster %+v\nmerges %+v\nruns %s\nstory %v\nthen %s",
					in.Request, in.Cluster, in.Merges, start, story, list(in.Runs))
			}
		}
	}
}

// goOn does what a decision says and lets what was queued end; false if there is
// nothing left to do.
func goOn(rnd *rand.Rand, in *decision.Input, d decision.Decision) bool {
	in.Ask = nil // said once
	for i := range in.Runs {
		if run := &in.Runs[i]; slices.Contains(d.Cancel, run.ID) {
			run.Status, run.Reason = holdfast.RunCanceled, d.Reason
			if d.Action == decision.ActionPlan || d.Action == decision.ActionApply {
				run.Reason = holdfast.ReasonSuperseded
			}
		}
	}
	switch d.Action {
	case decision.ActionPlan, decision.ActionApply:
		run := ran(fmt.Sprintf("run-9%04d", len(in.Runs)), plan, holdfast.RunQueued, neverClaimed)
		if d.Action == decision.ActionApply {
			run.Kind = apply
		}
		run.SourceDigest, run.Actor, run.Resume, run.Reviews = wanted(*in), d.Actor, d.Resume, d.Reviews
		if in.Cluster.Desired.Removed && in.PullRequest == nil {
			asDestruction(&run)
		}
		if pr := in.PullRequest; pr != nil {
			run.SourceDigest, run.Revision, run.Base = pr.Clusters[0].SourceDigest, pr.Head, pr.Base
		}
		in.Runs = append([]holdfast.Run{run}, in.Runs...)
		return true
	case decision.ActionRecord:
		if d.Reason == holdfast.ReasonNeverApplied || d.Reason == holdfast.ReasonDestroyed {
			in.Cluster.Applied, in.Last, in.Cluster.Life = holdfast.Applied{}, holdfast.Applied{}, newestID(in.Runs)
			if in.Cluster.Desired.Removed {
				in.Cluster.Deletion = &holdfast.Deletion{Reason: d.Reason}
			}
			return true
		}
		run := in.Runs[slices.IndexFunc(in.Runs, func(run holdfast.Run) bool { return run.ID == d.Run })]
		in.Cluster.Applied = holdfast.Applied{Run: run.ID, SourceDigest: run.SourceDigest}
		return true
	case decision.ActionCarry:
		in.Runs[0].Revision, in.Runs[0].Base = in.PullRequest.Head, in.PullRequest.Base
		return true
	default: // nothing was made
	}
	if d.After > 0 {
		in.Now = in.Now.Add(d.After)
		return true
	}
	return execute(rnd, in) || len(d.Cancel) > 0
}

// execute lets the runs that have not ended end somehow.
func execute(rnd *rand.Rand, in *decision.Input) bool {
	executed := false
	for i := range in.Runs {
		run := &in.Runs[i]
		if run.Status.Done() {
			continue
		}
		executed = true
		done := drawRun(rnd, run.ID)
		for !done.Status.Done() || done.Status == holdfast.RunApplied && run.Kind == plan || done.Status == holdfast.RunCanceled {
			done = drawRun(rnd, run.ID)
		}
		run.Status, run.Failure, run.FinishedAt = done.Status, done.Failure, in.Now
		run.Attempt, run.AppliedRun, run.StateSerial = 1, in.LastApply, in.Cluster.StateSerial
		run.Begun = run.Kind.Writes() && (done.Begun || run.Status == holdfast.RunApplied) && run.Status != holdfast.RunPlanned
		if run.Begun {
			in.LastApply = run.ID
		}
	}
	return executed
}
