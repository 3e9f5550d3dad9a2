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

// asApplied is a cluster that is as Git says, whose last drift check, run-1,
// has found some. It is on record.
func asApplied(with ...func(*decision.Input)) decision.Input {
	return given(onBranch(upToDate, func(in *decision.Input) {
		check := ran("run-1", holdfast.RunDrift, holdfast.RunPlanned)
		in.Drift = &check
		in.Cluster.Drift = holdfast.DriftState{
			Status: holdfast.DriftFound, Run: "run-1", Applied: "run-0", CheckedAt: noon, Fingerprint: "sha256:drift",
		}
	}), with...)
}

func onDrift(policy string) func(*decision.Input) {
	return func(in *decision.Input) { in.Cluster.Desired.Document.Drift.OnDrift = policy }
}

func onRecord(change func(*holdfast.DriftState)) func(*decision.Input) {
	return func(in *decision.Input) { change(&in.Cluster.Drift) }
}

func check(change func(*holdfast.Run)) func(*decision.Input) {
	return func(in *decision.Input) {
		run := *in.Drift
		change(&run)
		in.Drift = &run
	}
}

func unrecorded(in *decision.Input) { in.Cluster.Drift = holdfast.DriftState{} }

// revert is an apply that reverts what run-1 has found.
func revert(run *holdfast.Run) { run.Shown, run.Exact = "run-1", true }

// announced: an apply is named that is not there.
func announced(in *decision.Input) { in.Cluster.Drift.Revert, in.Cluster.UpdatedAt = "run-2", noon }

func closedWindow(in *decision.Input) { in.Window.Closed = true }

func driftSituations() map[string]situation {
	reverting := act(decision.ActionApply, holdfast.ReasonDrifted, func(d *decision.Decision) { d.Shown = "run-1" })
	approved := act(decision.ActionApply, holdfast.ReasonApproved, func(d *decision.Decision) { d.Shown, d.Actor = "run-1", "alice" })
	record := act(decision.ActionDrift, holdfast.ReasonChecked, func(d *decision.Decision) { d.Run = "run-1" })
	held := func(text string) decision.Decision { return waits(holdfast.ReasonDriftHeld, because(text)) }
	failed := waits(holdfast.ReasonRevertFailed, because("run-2 was to revert it, and it is still there, or is back"))
	byItself := onDrift("apply")
	rule := func(expires time.Time) func(*decision.Input) {
		return func(in *decision.Input) {
			in.Cluster.Desired.Document.Drift.Ignore = []holdfast.DriftRule{{Address: "**", Reason: "r", Expires: expires}}
		}
	}
	known := onRecord(func(d *holdfast.DriftState) {
		d.Rules = decision.RulesDigest([]holdfast.DriftRule{{Address: "**", Reason: "r"}}, noon)
	})
	running := runs(ran("run-2", plan, holdfast.RunRunning))
	return map[string]situation{
		"a check has ended":                      {asApplied(unrecorded), record},
		"a check has ended beside a run":         {asApplied(unrecorded, running), record},
		"a check has failed":                     {asApplied(unrecorded, check(func(r *holdfast.Run) { r.Status, r.AppliedRun = holdfast.RunErrored, "" })), record},
		"a check has ended, and then an apply":   {asApplied(unrecorded, runs(ran("run-2", apply, holdfast.RunApplied))), act(decision.ActionRecord, holdfast.ReasonApplied, about("run-2"))},
		"a check of what was applied before":     {asApplied(unrecorded, check(ofOld)), none(holdfast.ReasonUpToDate)},
		"a check of another root":                {asApplied(unrecorded, check(func(r *holdfast.Run) { r.Bundle = "sha256:b" })), none(holdfast.ReasonUpToDate)},
		"a check during which an apply began":    {asApplied(unrecorded, check(func(r *holdfast.Run) { r.AppliedRun = "run-00" })), none(holdfast.ReasonUpToDate)},
		"a check before the last apply":          {asApplied(unrecorded, func(in *decision.Input) { in.Cluster.Applied.Run = "run-5" }), none(holdfast.ReasonUpToDate)},
		"a check of what has gone":               {asApplied(unrecorded, func(in *decision.Input) { in.Cluster.Deletion = &holdfast.Deletion{} }), none(holdfast.ReasonDestroyed)},
		"a rule was added":                       {asApplied(rule(time.Time{})), record},
		"a rule is known":                        {asApplied(rule(time.Time{}), known), none(holdfast.ReasonUpToDate)},
		"a rule was taken away":                  {asApplied(known), record},
		"a rule has expired":                     {asApplied(rule(noon), known), record},
		"a rule was added, and the check failed": {asApplied(rule(time.Time{}), check(func(r *holdfast.Run) { r.Status = holdfast.RunErrored })), none(holdfast.ReasonUpToDate)},

		"drift is reported":              {asApplied(), none(holdfast.ReasonUpToDate)},
		"drift is ignored":               {asApplied(onDrift("ignore")), none(holdfast.ReasonUpToDate)},
		"drift is reverted":              {asApplied(byItself), reverting},
		"reverted, in place of the rest": {asApplied(byItself, runs(ran("run-2", plan, holdfast.RunQueued))), act(decision.ActionApply, holdfast.ReasonDrifted, func(d *decision.Decision) { d.Shown = "run-1" }, cancels("run-2"))},
		"it is being reverted":           {asApplied(byItself, runs(ran("run-2", apply, holdfast.RunQueued, revert))), none(holdfast.ReasonInProgress)},
		"being reverted, not wanted now": {asApplied(runs(ran("run-2", apply, holdfast.RunQueued, revert))), none(holdfast.ReasonUpToDate, "run-2")},
		"being reverted, asked for":      {asApplied(runs(ran("run-2", apply, holdfast.RunQueued, revert, byAlice))), none(holdfast.ReasonInProgress)},
		"a plan that was asked for":      {asApplied(runs(ran("run-2", plan, holdfast.RunQueued, byAlice))), none(holdfast.ReasonInProgress)},
		"being reverted, and suspended":  {asApplied(byItself, suspended, runs(ran("run-2", apply, holdfast.RunQueued, revert))), none(holdfast.ReasonUpToDate, "run-2")},
		"suspended":                      {asApplied(byItself, suspended), none(holdfast.ReasonUpToDate)},
		"the project is suspended":       {asApplied(byItself, func(in *decision.Input) { in.Suspended = "project" }), none(holdfast.ReasonUpToDate)},
		"a change waits":                 {asApplied(byItself, merged, func(in *decision.Input) { in.Cluster.Desired.SourceDigest = "sha256:newer" }), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"outside of the windows":         {asApplied(byItself, closedWindow), wait(holdfast.ReasonWindowClosed)},
		"after another apply":            {asApplied(byItself, func(in *decision.Input) { in.Cluster.Applied.Run, in.LastApply = "run-2", "run-2" }), none(holdfast.ReasonUpToDate)},
		"the last check failed":          {asApplied(byItself, onRecord(func(d *holdfast.DriftState) { d.Status = holdfast.DriftFailed })), none(holdfast.ReasonUpToDate)},

		"needs an approval": {asApplied(byItself, requires("approved")), held("applies of this cluster need an approval")},
		"needed one when it was applied": {asApplied(byItself, func(in *decision.Input) {
			in.Cluster.Applied.Document.Apply.Requires = []string{"approved"}
		}), held("applies of this cluster need an approval: the document no longer requires it, but the last applied version does")},
		"applied in another environment": {asApplied(byItself, func(in *decision.Input) {
			was := ran("run-0", apply, holdfast.RunApplied)
			was.Document.Project, was.Document.Environment = "p", "staging"
			in.Drift.Document.Project, in.Drift.Document.Environment = "p", "production"
			in.Runs = append(in.Runs, was)
		}), held("it was applied in p/staging, and the check was made in p/production")},
		"applied in the same environment": {asApplied(byItself, func(in *decision.Input) {
			in.Drift.Document.Environment = "staging"
			was := ran("run-0", apply, holdfast.RunApplied)
			was.Document.Environment = "staging"
			in.Runs = append(in.Runs, was)
		}), reverting},
		"needs to be mergeable":       {asApplied(byItself, requires("mergeable")), reverting},
		"would destroy":               {asApplied(byItself, onRecord(func(d *holdfast.DriftState) { d.Destroys = true })), held("reverting it would destroy or replace something")},
		"would revert what is hidden": {asApplied(byItself, onRecord(func(d *holdfast.DriftState) { d.Hides = true })), held("reverting it would also revert what an ignore rule hides")},
		"was reverted before": {asApplied(byItself, runs(ran("run-2", apply, holdfast.RunApplied)), func(in *decision.Input) {
			in.Cluster.Applied.Run, in.Cluster.Drift.Applied, in.Cluster.Drift.Revert, in.LastApply = "run-2", "run-2", "run-2", "run-2"
			in.Cluster.Drift.Run, in.Drift.ID = "run-3", "run-3"
		}), failed},
		"somebody is about to revert it": {asApplied(byItself, announced), act(decision.ActionNone, holdfast.ReasonInProgress, func(d *decision.Decision) { d.After = 30 * time.Second })},
		"somebody died before":           {asApplied(byItself, announced, later(time.Minute)), reverting},
		"by a clock that was set back":   {asApplied(byItself, announced, later(-10*time.Minute)), reverting},
		"the reverting failed":           {asApplied(byItself, runs(ran("run-2", apply, holdfast.RunErrored, revert))), failed},
		"the reverting was canceled":     {asApplied(byItself, runs(ran("run-2", apply, holdfast.RunCanceled, revert))), failed},
		"the reverting was given up":     {asApplied(byItself, runs(ran("run-2", apply, holdfast.RunCanceled, revert, forReason(holdfast.ReasonSuspended)))), reverting},
		"the reverting is half done":     {asApplied(byItself, runs(ran("run-2", apply, holdfast.RunErrored, revert, hasBegun))), act(decision.ActionPlan, holdfast.ReasonApplyFailed)},

		"the reverting found another plan": {
			asApplied(byItself, func(in *decision.Input) { in.Drift.Kind, in.Drift.Exact = apply, true }),
			held("run-1 was to revert it, and found another plan: the next check decides"),
		},
		"the reverting found another plan, long ago": {
			asApplied(byItself, later(2*time.Hour), func(in *decision.Input) { in.Drift.Kind, in.Drift.Exact = apply, true }),
			held("run-1 was to revert it, and found another plan: the next check decides"),
		},
		"found long ago":                         {asApplied(byItself, later(2*time.Hour)), act(decision.ActionCheck, holdfast.ReasonSchedule)},
		"found long ago, outside of the windows": {asApplied(byItself, later(2*time.Hour), closedWindow), wait(holdfast.ReasonWindowClosed)},
		"the state was written since":            {asApplied(byItself, stateMoved), act(decision.ActionCheck, holdfast.ReasonSchedule)},

		"asked to revert it":            {asApplied(asks(holdfast.VerbApply, "run-1")), approved},
		"asked to, long after":          {asApplied(asks(holdfast.VerbApply, "run-1"), later(48*time.Hour)), approved},
		"asked to, though it destroys":  {asApplied(asks(holdfast.VerbApply, "run-1"), onRecord(func(d *holdfast.DriftState) { d.Destroys, d.Hides = true, true })), approved},
		"asked to, after it was tried":  {asApplied(byItself, asks(holdfast.VerbApply, "run-1"), onRecord(func(d *holdfast.DriftState) { d.Revert = "run-2" })), approved},
		"asked to, of nothing that was": {asApplied(asks(holdfast.VerbApply, "")), refuse(holdfast.ReasonPlanMoved)},
		"asked to, by a word on a merge": {asApplied(func(in *decision.Input) {
			in.Ask = &decision.Ask{Verb: holdfast.VerbApply, Actor: "alice", Run: "run-1", PullRequest: onePR}
		}), refuse(holdfast.ReasonUpToDate)},
		"asked to, of an older check":      {asApplied(asks(holdfast.VerbApply, "run-00")), refuse(holdfast.ReasonPlanMoved)},
		"asked to, while something waits":  {asApplied(asks(holdfast.VerbApply, "run-1"), runs(ran("run-2", apply, holdfast.RunQueued, revert))), refuse(holdfast.ReasonInProgress)},
		"asked to, suspended":              {asApplied(asks(holdfast.VerbApply, "run-1"), suspended), refuse(holdfast.ReasonSuspended)},
		"asked to, outside of the windows": {asApplied(asks(holdfast.VerbApply, "run-1"), closedWindow), refuse(holdfast.ReasonWindowClosed)},
		"asked to, the state was written":  {asApplied(asks(holdfast.VerbApply, "run-1"), stateMoved), refuse(holdfast.ReasonStateMoved)},
		"asked to, and nothing has drifted": {
			asApplied(asks(holdfast.VerbApply, "run-1"), onRecord(func(d *holdfast.DriftState) { d.Status = holdfast.DriftNone })),
			refuse(holdfast.ReasonUpToDate),
		},
		"asked to apply a later plan": {
			asApplied(asks(holdfast.VerbApply, "run-2"), runs(ran("run-2", plan, holdfast.RunPlanned, byAlice))),
			act(decision.ActionApply, holdfast.ReasonApproved, func(d *decision.Decision) { d.Shown, d.Actor = "run-2", "alice" }),
		},
		"asked to plan": {asApplied(asks(holdfast.VerbPlan, "")), act(decision.ActionPlan, holdfast.ReasonRequested, func(d *decision.Decision) { d.Actor = "alice" })},
	}
}

// TestDecideNeverAboutDrift draws situations in which drift was looked for, and
// holds each decision to what must never happen.
func TestDecideNeverAboutDrift(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 6))
	actions := map[decision.Action]int{}
	const draws = 60_000
	for range draws {
		in := drawDrift(rnd)
		d := decision.Decide(in)
		actions[d.Action]++
		if wrong := neverAboutDrift(in, d); wrong != "" {
			t.Fatalf("%s:\ndecision %+v\ncluster %+v\ncheck %+v\napproval %+v\nruns %s", wrong, d, in.Cluster, in.Drift, in.Ask, list(in.Runs))
		}
	}
	for _, action := range []decision.Action{decision.ActionDrift, decision.ActionCheck, decision.ActionApply, decision.ActionWait} {
		if actions[action] < draws/500 {
			t.Errorf("%s was decided %d times only: the draws prove little", action, actions[action])
		}
	}
}

func drawDrift(rnd *rand.Rand) decision.Input {
	chance := func(percent int) bool { return rnd.IntN(100) < percent }
	in := asApplied(onDrift(pick(rnd, "", "report", "apply", "apply", "ignore")))
	if chance(10) {
		in.Cluster.Desired.SourceDigest = oldDigest
	}
	in.Cluster.Suspended, in.Window.Closed, in.Cluster.Desired.Removed = chance(10), chance(10), chance(5)
	if chance(20) {
		in.Cluster.Desired.Document.Apply.Requires = []string{"approved"}
	}
	in.Now = noon.Add(pick(rnd, 0, time.Minute, 3*time.Hour))
	run := *in.Drift
	run.ID = pick(rnd, "run-1", "run-1", "run-3")
	run.Status = pick(rnd, holdfast.RunPlanned, holdfast.RunPlanned, holdfast.RunNoChanges, holdfast.RunErrored)
	run.SourceDigest = pick(rnd, newDigest, newDigest, newDigest, oldDigest)
	run.AppliedRun = pick(rnd, "run-0", "run-0", "run-0", "")
	run.StateSerial = pick[int64](rnd, 0, 0, 0, 5)
	if chance(15) { // an apply that was to revert it, and found another plan
		run.Kind, run.Exact, run.Status = apply, true, holdfast.RunPlanned
	}
	in.Drift = &run
	d := &in.Cluster.Drift
	d.Run = pick(rnd, "", "run-1", "run-1", "run-3")
	d.Applied = pick(rnd, "run-0", "run-0", "run-0", "run-00")
	d.Status = pick(rnd, holdfast.DriftFound, holdfast.DriftFound, holdfast.DriftNone, holdfast.DriftFailed)
	d.Destroys, d.Hides = chance(10), chance(10)
	d.Revert = pick(rnd, "", "", "", "run-2")
	for i := range rnd.IntN(3) {
		past := drawRun(rnd, fmt.Sprintf("run-%d", 2+2*i))
		if chance(60) && past.Kind == apply {
			past.Shown, past.Exact = "run-1", true
		}
		if len(in.Runs) > 0 && !in.Runs[0].Status.Done() {
			in.Runs[0].Status, in.Runs[0].Reason = holdfast.RunCanceled, holdfast.ReasonSuperseded
		}
		in.Runs = append([]holdfast.Run{past}, in.Runs...)
	}
	if chance(25) {
		in.Ask = &decision.Ask{
			Verb: pick(rnd, holdfast.VerbApply, holdfast.VerbApply, holdfast.VerbPlan), Actor: "alice", Run: pick(rnd, "", "run-1", "run-2", "run-3"),
		}
	}
	return in
}

func neverAboutDrift(in decision.Input, d decision.Decision) string {
	rec, check := in.Cluster, in.Drift
	unended := slices.ContainsFunc(in.Runs, func(run holdfast.Run) bool {
		return !run.Status.Done() && !slices.Contains(d.Cancel, run.ID)
	})
	switch d.Action {
	case decision.ActionDrift:
		switch {
		case d.Run != check.ID || check.ID < rec.Drift.Run:
			return "records another check than the newest"
		case check.SourceDigest != rec.Applied.SourceDigest:
			return "records a check of what is not applied"
		case check.Status.Good() && check.AppliedRun != in.LastApply:
			return "records a check from before an apply"
		case check.ID == rec.Drift.Run:
			return "records a check twice"
		}
	case decision.ActionCheck:
		if unended || in.Window.Closed || rec.Suspended || in.Ask != nil {
			return "checks where it cannot do anything with it"
		}
	case decision.ActionApply:
		if d.Shown != check.ID || d.Resume {
			return ""
		}
		if check.Kind == apply && in.Ask == nil {
			return "reverts what an apply has found before the next check"
		}
		return neverReverted(in, d, unended)
	default:
	}
	return ""
}

// triedBefore: an apply was to revert the same drift, and was not given up by what
// has changed.
func triedBefore(in decision.Input) bool {
	given, tried := false, false
	for _, run := range in.Runs {
		up := run.Status == holdfast.RunCanceled && run.Reason != holdfast.ReasonCanceled
		given = given || run.ID == in.Cluster.Drift.Revert && up
		tried = tried || run.Shown == in.Drift.ID && !up
	}
	return tried || slices.ContainsFunc(in.Runs, func(run holdfast.Run) bool { return run.ID == in.Cluster.Drift.Revert && !given })
}

func neverReverted(in decision.Input, d decision.Decision, unended bool) string {
	rec, check := in.Cluster, in.Drift
	asked := in.Ask != nil && in.Ask.Verb == holdfast.VerbApply && in.Ask.Run == check.ID
	switch {
	case rec.Drift.Status != holdfast.DriftFound, rec.Drift.Run != check.ID, check.Status != holdfast.RunPlanned, rec.Drift.Applied != rec.Applied.Run:
		return "reverts what is not on record"
	case rec.Desired.SourceDigest != rec.Applied.SourceDigest, rec.Desired.Removed:
		return "reverts drift while Git says something else"
	case rec.Suspended, in.Window.Closed, unended:
		return "reverts drift where nothing may begin"
	case check.StateSerial != rec.StateSerial:
		return "reverts what was found in another state"
	case asked:
		return ""
	case in.Ask != nil, d.Actor != "":
		return "reverts drift where something else was asked for"
	case rec.Desired.Document.Drift.OnDrift != "apply":
		return "reverts drift that is to be reported"
	case rec.Drift.Destroys, rec.Drift.Hides, len(rec.Desired.Document.Apply.Requires) > 0:
		return "reverts by itself what needs a person's word"
	case in.Now.Sub(rec.Drift.CheckedAt) > time.Hour:
		return "reverts by itself what was found long ago"
	case triedBefore(in):
		return "reverts the same drift twice"
	}
	return ""
}
