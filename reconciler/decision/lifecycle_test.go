package decision_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

const destroyKind = holdfast.RunDestroy

// living is a record and the runs of its tracked branch.
type living struct {
	rec  holdfast.ClusterRecord
	runs []holdfast.Run
}

// cluster is one that was applied as run-0 and is as Git says.
func cluster(with ...func(*living)) living {
	l := living{rec: holdfast.ClusterRecord{
		Name: "prod", Phase: holdfast.PhaseActive,
		Desired: holdfast.Desired{Revision: "b", SourceDigest: newDigest},
		Applied: holdfast.Applied{Run: "run-0", SourceDigest: newDigest},
	}}
	for _, change := range with {
		change(&l)
	}
	return l
}

func moved(l *living)     { l.rec.Applied.SourceDigest = oldDigest }
func untouched(l *living) { l.rec.Applied, l.rec.Phase = holdfast.Applied{}, holdfast.PhasePending }
func vanished(l *living)  { l.rec.Desired.Removed, l.rec.Phase = true, holdfast.PhaseDeleting }
func broken(l *living) {
	l.rec.Desired.SourceDigest = ""
	l.rec.Desired.Faults = holdfast.Faults{{File: "prod.yaml", Line: 3, Message: "unknown key"}}
}

func destroyed(l *living) {
	l.rec.Desired.Removed, l.rec.Applied = true, holdfast.Applied{}
	l.rec.Deletion = &holdfast.Deletion{At: noon, Reason: holdfast.ReasonDestroyed, Run: "run-3"}
}

func was(phase holdfast.Phase) func(*living) {
	return func(l *living) { l.rec.Phase = phase }
}

func waitsFor(reason holdfast.Reason) func(*living) {
	return func(l *living) { l.rec.Waiting = reason }
}

func had(list ...holdfast.Run) func(*living) {
	return func(l *living) { l.runs = list }
}

func drift(status holdfast.DriftStatus, applied string) func(*living) {
	return func(l *living) {
		l.rec.Drift = holdfast.DriftState{Status: status, Run: "run-1", Applied: applied, Counts: holdfast.DriftCounts{Gone: 1}}
	}
}

func unbegun(run *holdfast.Run) { run.Begun = false }
func onWorld(run *holdfast.Run) { run.AppliedRun = "run-0" }
func withFailure(run *holdfast.Run) {
	run.Failure = &holdfast.Failure{Summary: "no such type\nmore", Cause: "InvalidConfiguration"}
}
func whole(run *holdfast.Run) { run.Destroy = true }

// lives are situations with the phase and the conditions that they have, except for
// Healthy: CommitPlanned, PlanUpToDate, ApplyUpToDate, Drifted, Blocked.
func lives() map[string]struct {
	living
	phase holdfast.Phase
	want  string
} {
	type life = struct {
		living
		phase holdfast.Phase
		want  string
	}
	wait := holdfast.ReasonApplyFailed
	failed := ran("run-3", apply, holdfast.RunErrored, hasBegun, withFailure)
	passing := ran("run-3", apply, holdfast.RunErrored, hasBegun, passingCause)
	reviewed := ran("run-2", apply, holdfast.RunQueued, withReviews(seen))
	return map[string]life{
		// A neighbour's layer: idle, plan needed, apply needed, retries used up.
		"as Git says":                     {cluster(), "Active", "True/Applied True/Applied True/Applied Unknown/Unchecked False/NothingWaits"},
		"as Git says, by an empty plan":   {cluster(was("Pending")), "Active", "True/Applied True/Applied True/Applied Unknown/Unchecked False/NothingWaits"},
		"never planned":                   {cluster(untouched), "Pending", "False/NotPlanned False/NotPlanned False/NotApplied Unknown/NotApplied False/NothingWaits"},
		"a new revision":                  {cluster(moved), "Active", "False/NotPlanned False/NotPlanned False/NewRevision Unknown/Unchecked False/NothingWaits"},
		"a new revision, an older plan":   {cluster(moved, had(ran("run-2", plan, holdfast.RunPlanned, ofOld))), "Active", "False/NewRevision False/NewRevision False/NewRevision Unknown/Unchecked False/NothingWaits"},
		"a plan is queued":                {cluster(moved, had(ran("run-2", plan, holdfast.RunQueued))), "Active", "False/InProgress False/InProgress False/NewRevision Unknown/Unchecked False/NothingWaits"},
		"a plan runs":                     {cluster(moved, had(ran("run-2", plan, holdfast.RunRunning))), "Active", "False/InProgress False/InProgress False/NewRevision Unknown/Unchecked False/NothingWaits"},
		"planned":                         {cluster(moved, waitsFor("Unreviewed"), had(ran("run-2", plan, holdfast.RunPlanned, onWorld))), "Active", "True/Planned True/Planned False/Unreviewed Unknown/Unchecked True/Unreviewed"},
		"planned, then pushed to":         {cluster(moved, had(ran("run-3", plan, holdfast.RunPlanned, ofOld), ran("run-2", plan, holdfast.RunErrored))), "Active", "False/PlanFailed False/PlanFailed False/NewRevision Unknown/Unchecked False/NothingWaits"},
		"planned, then state moved":       {cluster(moved, waitsFor("Unreviewed"), had(ran("run-2", plan, holdfast.RunPlanned)), func(l *living) { l.rec.StateSerial = 7 }), "Active", "True/Planned False/StateMoved False/Unreviewed Unknown/Unchecked True/Unreviewed"},
		"planned, then applied meanwhile": {cluster(moved, had(ran("run-2", plan, holdfast.RunPlanned), ran("run-1", apply, holdfast.RunErrored, hasBegun, ofOld))), "Failed", "True/Planned False/AppliedSince False/ApplyFailed Unknown/Unchecked False/NothingWaits"},
		"the plan failed":                 {cluster(moved, waitsFor("PlanFailed"), had(ran("run-2", plan, holdfast.RunErrored, withFailure))), "Active", "False/PlanFailed False/PlanFailed False/PlanFailed Unknown/Unchecked True/PlanFailed"},
		"the first plan failed":           {cluster(untouched, waitsFor("PlanFailed"), had(ran("run-2", plan, holdfast.RunErrored))), "Pending", "False/PlanFailed False/PlanFailed False/PlanFailed Unknown/NotApplied True/PlanFailed"},
		"the plan was canceled":           {cluster(moved, waitsFor("Canceled"), had(ran("run-2", plan, holdfast.RunCanceled))), "Active", "False/Canceled False/Canceled False/Canceled Unknown/Unchecked True/Canceled"},
		"planned again after a failure":   {cluster(moved, had(ran("run-3", plan, holdfast.RunErrored), ran("run-2", plan, holdfast.RunPlanned))), "Active", "True/Planned False/PlanFailed False/NewRevision Unknown/Unchecked False/NothingWaits"},
		"merged, by hand":                 {cluster(moved, waitsFor("Manual")), "Active", "True/Reviewed Unknown/Reviewed False/Manual Unknown/Unchecked True/Manual"},
		"merged, the apply is queued":     {cluster(moved, had(reviewed)), "Active", "True/Reviewed Unknown/Reviewed False/NewRevision Unknown/Unchecked False/NothingWaits"},
		"merged, queued over a plan":      {cluster(moved, had(reviewed, ran("run-1", plan, holdfast.RunPlanned))), "Active", "True/Planned Unknown/Reviewed False/NewRevision Unknown/Unchecked False/NothingWaits"},
		"approved, the apply is queued":   {cluster(moved, had(ran("run-3", apply, holdfast.RunQueued, withReviews(seen), func(r *holdfast.Run) { r.Shown = "run-2" }), ran("run-2", plan, holdfast.RunPlanned))), "Active", "True/Planned True/Planned False/NewRevision Unknown/Unchecked False/NothingWaits"},
		"merged, suspended":               {cluster(moved, waitsFor("Suspended"), had(ran("run-2", apply, holdfast.RunCanceled, withReviews(seen), forReason("Suspended")))), "Active", "True/Reviewed Unknown/Reviewed False/Suspended Unknown/Unchecked True/Suspended"},
		"merged, canceled":                {cluster(moved, waitsFor("Canceled"), had(ran("run-2", apply, holdfast.RunCanceled, withReviews(seen)))), "Active", "False/Canceled False/Canceled False/Canceled Unknown/Unchecked True/Canceled"},
		"the document has faults":         {cluster(broken, waitsFor("Invalid")), "Active", "False/Invalid False/Invalid False/Invalid Unknown/Unchecked True/Invalid"},
		"faulty from the first":           {cluster(untouched, broken, waitsFor("Invalid")), "Pending", "False/Invalid False/Invalid False/Invalid Unknown/NotApplied True/Invalid"},
		"the document is missing":         {cluster(waitsFor("Missing"), func(l *living) { l.rec.Desired.Missing = "a file does not parse" }), "Active", "False/Missing False/Missing Unknown/Missing Unknown/Unchecked True/Missing"},

		// A neighbour's run: initial, running, grace period, retrying, succeeded, failed.
		"the first apply is queued":        {cluster(untouched, had(reviewed)), "Pending", "True/Reviewed Unknown/Reviewed False/NotApplied Unknown/NotApplied False/NothingWaits"},
		"the first apply runs":             {cluster(untouched, had(ran("run-2", apply, holdfast.RunRunning))), "Provisioning", "False/InProgress False/InProgress False/InProgress Unknown/NotApplied False/NothingWaits"},
		"the first apply backs off":        {cluster(untouched, had(ran("run-2", apply, holdfast.RunRetrying))), "Provisioning", "False/InProgress False/InProgress False/InProgress Unknown/NotApplied False/NothingWaits"},
		"the first apply continues soon":   {cluster(untouched, was("Provisioning"), waitsFor("BackingOff"), had(passing)), "Provisioning", "True/Planned False/ApplyFailed False/InProgress Unknown/NotApplied True/BackingOff"},
		"the first apply continues":        {cluster(untouched, was("Provisioning"), had(ran("run-4", apply, holdfast.RunQueued, resumed), passing)), "Provisioning", "True/Planned False/InProgress False/InProgress Unknown/NotApplied False/NothingWaits"},
		"the first apply failed":           {cluster(untouched, was("Provisioning"), waitsFor(wait), had(failed)), "Failed", "True/Planned False/ApplyFailed False/ApplyFailed Unknown/NotApplied True/ApplyFailed"},
		"the first apply did not begin":    {cluster(untouched, waitsFor("PlanFailed"), had(ran("run-3", apply, holdfast.RunErrored, unbegun, withFailure))), "Pending", "False/PlanFailed False/PlanFailed False/PlanFailed Unknown/NotApplied True/PlanFailed"},
		"the first apply ended just now":   {cluster(untouched, was("Provisioning"), had(ran("run-2", apply, holdfast.RunApplied, hasBegun))), "Configuring", "True/Planned True/Applied False/NotApplied Unknown/NotApplied False/NothingWaits"},
		"pushed to during the first apply": {cluster(moved, was("Provisioning")), "Configuring", "False/NotPlanned False/NotPlanned False/NewRevision Unknown/Unchecked False/NothingWaits"},
		"the second apply runs":            {cluster(moved, was("Configuring"), had(ran("run-2", apply, holdfast.RunRunning))), "Configuring", "False/InProgress False/InProgress False/InProgress Unknown/Unchecked False/NothingWaits"},
		"set up":                           {cluster(was("Configuring")), "Active", "True/Applied True/Applied True/Applied Unknown/Unchecked False/NothingWaits"},
		"an apply runs":                    {cluster(moved, had(ran("run-2", apply, holdfast.RunRunning))), "Updating", "False/InProgress False/InProgress False/InProgress Unknown/Unchecked False/NothingWaits"},
		"an apply's agent is silent":       {cluster(moved, waitsFor("AgentSilent"), had(ran("run-2", apply, holdfast.RunRunning))), "Updating", "False/InProgress False/InProgress False/InProgress Unknown/Unchecked True/AgentSilent"},
		"an apply failed":                  {cluster(moved, waitsFor(wait), had(failed)), "Failed", "True/Planned False/ApplyFailed False/ApplyFailed Unknown/Unchecked True/ApplyFailed"},
		"an apply failed, planned again":   {cluster(moved, was("Failed"), waitsFor(wait), had(ran("run-4", plan, holdfast.RunPlanned, func(r *holdfast.Run) { r.AppliedRun = "run-3" }), failed)), "Failed", "True/Planned True/Planned False/ApplyFailed Unknown/Unchecked True/ApplyFailed"},
		"an apply failed, and is repeated": {cluster(moved, was("Failed"), had(ran("run-4", apply, holdfast.RunRunning), failed)), "Updating", "True/Planned False/InProgress False/InProgress Unknown/Unchecked False/NothingWaits"},
		"a failed apply was taken back":    {cluster(was("Failed"), had(failed)), "Failed", "True/Planned False/ApplyFailed False/ApplyFailed Unknown/Unchecked False/NothingWaits"},
		"an apply was canceled inside":     {cluster(moved, waitsFor(wait), had(ran("run-3", apply, holdfast.RunCanceled, hasBegun))), "Failed", "True/Planned False/ApplyFailed False/ApplyFailed Unknown/Unchecked True/ApplyFailed"},
		"an apply found something else":    {cluster(moved, waitsFor("PlanChanged"), had(ran("run-3", apply, holdfast.RunPlanned, onWorld))), "Active", "True/Planned True/Planned False/PlanChanged Unknown/Unchecked True/PlanChanged"},
		"runs of a former life":            {cluster(untouched, func(l *living) { l.rec.Life = "run-3" }, had(failed, ran("run-2", destroyKind, holdfast.RunApplied))), "Pending", "False/NotPlanned False/NotPlanned False/NotApplied Unknown/NotApplied False/NothingWaits"},

		// Drift.
		"no drift":                 {cluster(drift(holdfast.DriftNone, "run-0")), "Active", "True/Applied True/Applied True/Applied False/NoDrift False/NothingWaits"},
		"drifted":                  {cluster(drift(holdfast.DriftFound, "run-0")), "Active", "True/Applied True/Applied True/Applied True/Drifted False/NothingWaits"},
		"drifted, applied since":   {cluster(drift(holdfast.DriftFound, "run-00")), "Active", "True/Applied True/Applied True/Applied Unknown/AppliedSince False/NothingWaits"},
		"drift could not be found": {cluster(drift(holdfast.DriftFailed, "run-0")), "Active", "True/Applied True/Applied True/Applied Unknown/CheckFailed False/NothingWaits"},

		// The end.
		"removed":                      {cluster(vanished, waitsFor("Protected")), "Deleting", "False/NotPlanned False/NotPlanned False/Protected Unknown/Unchecked True/Protected"},
		"removed, the destroy planned": {cluster(vanished, waitsFor("Unreviewed"), had(ran("run-2", plan, holdfast.RunPlanned, whole))), "Deleting", "True/Planned True/Planned False/Unreviewed Unknown/Unchecked True/Unreviewed"},
		"removed, after a plan":        {cluster(vanished, had(ran("run-2", plan, holdfast.RunPlanned))), "Deleting", "False/NewRevision False/NewRevision False/Removed Unknown/Unchecked False/NothingWaits"},
		"the destroy runs":             {cluster(vanished, had(ran("run-2", destroyKind, holdfast.RunRunning))), "Deleting", "False/InProgress False/InProgress False/InProgress Unknown/Unchecked False/NothingWaits"},
		"the destroy failed":           {cluster(vanished, waitsFor("DestroyFailed"), had(ran("run-2", destroyKind, holdfast.RunErrored, hasBegun))), "Deleting", "True/Planned False/ApplyFailed False/ApplyFailed Unknown/Unchecked True/DestroyFailed"},
		"back while it is destroyed":   {cluster(had(ran("run-2", destroyKind, holdfast.RunRunning))), "Deleting", "False/NewRevision False/NewRevision False/InProgress Unknown/Unchecked False/NothingWaits"},
		"destroyed":                    {cluster(destroyed), "Deleted", "True/Destroyed True/Destroyed True/Destroyed Unknown/Destroyed False/Destroyed"},
	}
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	for name, tt := range lives() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			phase, conditions := decision.Lifecycle(noon, tt.rec, tt.runs)
			var got []string
			for _, c := range conditions[:5] {
				got = append(got, string(c.Status)+"/"+string(c.Reason))
			}
			if phase != tt.phase {
				t.Errorf("phase %s, want %s", phase, tt.phase)
			}
			if diff := cmp.Diff(strings.Fields(tt.want), got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryPhaseIsReached(t *testing.T) {
	t.Parallel()
	reached := map[holdfast.Phase]bool{}
	for _, tt := range lives() {
		reached[tt.phase] = true
	}
	for _, phase := range []holdfast.Phase{
		holdfast.PhasePending, holdfast.PhaseProvisioning, holdfast.PhaseConfiguring, holdfast.PhaseActive,
		holdfast.PhaseUpdating, holdfast.PhaseDeleting, holdfast.PhaseDeleted, holdfast.PhaseFailed,
	} {
		if !reached[phase] {
			t.Errorf("no situation leads to %s", phase)
		}
	}
}

func TestConditionsSayWhy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		living
		of   holdfast.ConditionType
		want string
	}{
		"a failed plan":  {cluster(moved, had(ran("run-2", plan, holdfast.RunErrored, withFailure))), holdfast.ConditionPlanUpToDate, "run-2: no such type"},
		"a failed apply": {cluster(moved, had(ran("run-2", apply, holdfast.RunErrored, hasBegun, withFailure))), holdfast.ConditionApplyUpToDate, "run-2: no such type"},
		"a fault":        {cluster(broken), holdfast.ConditionCommitPlanned, "prod.yaml:3: unknown key"},
		"a wait":         {cluster(waitsFor("Protected"), func(l *living) { l.rec.WaitingDetail = "bring it back" }), holdfast.ConditionBlocked, "bring it back"},
		"drift":          {cluster(drift(holdfast.DriftFound, "run-0")), holdfast.ConditionDrifted, "1 gone"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, conditions := decision.Lifecycle(noon, tt.rec, tt.runs)
			i := slices.IndexFunc(conditions, func(c holdfast.Condition) bool { return c.Type == tt.of })
			if got := conditions[i].Message; got != tt.want {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTransitions(t *testing.T) {
	t.Parallel()
	failed := ran("run-3", apply, holdfast.RunErrored, hasBegun, withFailure)
	before, after := cluster(moved), cluster(moved, waitsFor("ApplyFailed"))
	before.rec.Phase, before.rec.Conditions = decision.Lifecycle(noon, before.rec, nil)
	after.rec.Conditions = before.rec.Conditions
	later := noon.Add(time.Hour)
	after.rec.Phase, after.rec.Conditions = decision.Lifecycle(later, after.rec, []holdfast.Run{failed})
	got := decision.Transitions(later, before.rec, after.rec, []holdfast.Run{failed})
	change := func(what, from, to, reason string) holdfast.Transition {
		return holdfast.Transition{Cluster: "prod", At: later, What: what, From: from, To: to, Reason: holdfast.Reason(reason), Run: "run-3"}
	}
	want := []holdfast.Transition{
		change("phase", "Active", "Failed", "InvalidConfiguration"),
		change("CommitPlanned", "False", "True", "Planned"),
		change("Blocked", "False", "True", "ApplyFailed"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transitions (-want +got):\n%s", diff)
	}
	before.rec.UpdatedAt = later
	for _, h := range decision.Transitions(later, before.rec, after.rec, []holdfast.Run{failed})[1:] {
		if h.Run != "" {
			t.Errorf("%s is said to change by a run that had ended before", h.What)
		}
	}
	fresh := holdfast.ClusterRecord{}
	if got := decision.Transitions(noon, fresh, before.rec, nil); len(got) != 1 || got[0].What != "phase" {
		t.Errorf("a first look is not a change of conditions: %+v", got)
	}
}

// TestLifecycleAlways draws records and runs that may come together, lets time continue
// over them, and holds what is derived to what must always be true.
func TestLifecycleAlways(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 6))
	phases := map[holdfast.Phase]int{}
	for range 4_000 {
		var rec holdfast.ClusterRecord
		rec.Phase = holdfast.PhasePending
		now := noon
		for range 6 { // moments of one life
			now = now.Add(time.Duration(1+rnd.IntN(1000)) * time.Second)
			before := rec
			rec = drawRecord(rnd, before)
			in := draw(rnd)
			for in.PullRequest != nil {
				in = draw(rnd)
			}
			for i := range in.Runs {
				in.Runs[i].Kind = pick(rnd, in.Runs[i].Kind, in.Runs[i].Kind, in.Runs[i].Kind, destroyKind)
				in.Runs[i].Destroy = rnd.IntN(6) == 0
			}
			rec.Phase, rec.Conditions = decision.Lifecycle(now, rec, in.Runs)
			phases[rec.Phase]++
			if wrong := wrongLife(now, before, rec, in.Runs); wrong != "" {
				t.Fatalf("%s:\nbefore %+v\nrecord %+v\nruns %s", wrong, before, rec, list(in.Runs))
			}
			phase, conditions := decision.Lifecycle(now, rec, in.Runs)
			if diff := cmp.Diff(rec.Conditions, conditions); diff != "" || !stays(rec.Phase, phase) {
				t.Fatalf("a second look says something else, %s after %s:\n%s\nrecord %+v\nruns %s", phase, rec.Phase, diff, rec, list(in.Runs))
			}
		}
	}
	if len(phases) != 8 {
		t.Errorf("the draws reach %v only", phases)
	}
}

// stays: nothing but that it was Active once is read from a former phase.
func stays(first, second holdfast.Phase) bool { return first == second }

func drawRecord(rnd *rand.Rand, before holdfast.ClusterRecord) holdfast.ClusterRecord {
	rec := onBranch().Cluster
	rec.Phase, rec.Conditions = before.Phase, before.Conditions
	rec.Desired.SourceDigest = pick(rnd, newDigest, newDigest, oldDigest, "")
	rec.Desired.Removed = rnd.IntN(6) == 0
	if rnd.IntN(12) == 0 {
		rec.Desired.Missing = "a file does not parse"
	}
	if rnd.IntN(3) == 0 {
		rec.Applied = holdfast.Applied{}
	}
	if rnd.IntN(15) == 0 {
		rec.Deletion = &holdfast.Deletion{Reason: pick(rnd, holdfast.ReasonDestroyed, holdfast.ReasonRenamed)}
		rec.Desired.Removed, rec.Applied = true, holdfast.Applied{}
	}
	rec.Life = pick(rnd, "", "", "run-3")
	rec.StateSerial = pick[int64](rnd, 0, 5)
	rec.Waiting = pick(rnd, "", "", holdfast.ReasonBackingOff, holdfast.ReasonManual, holdfast.ReasonApplyFailed)
	rec.Drift.Status = pick(rnd, holdfast.DriftUnchecked, holdfast.DriftNone, holdfast.DriftFound, holdfast.DriftFailed)
	rec.Drift.Applied = pick(rnd, "", "run-0", "run-9")
	return rec
}

func wrongLife(now time.Time, before, rec holdfast.ClusterRecord, runs []holdfast.Run) string {
	order := []holdfast.ConditionType{
		holdfast.ConditionCommitPlanned, holdfast.ConditionPlanUpToDate, holdfast.ConditionApplyUpToDate,
		holdfast.ConditionDrifted, holdfast.ConditionBlocked, holdfast.ConditionHealthy,
	}
	if len(rec.Conditions) != len(order) {
		return fmt.Sprintf("%d conditions", len(rec.Conditions))
	}
	status := map[holdfast.ConditionType]holdfast.ConditionStatus{}
	for i, c := range rec.Conditions {
		status[c.Type] = c.Status
		switch {
		case c.Type != order[i]:
			return "conditions out of order"
		case c.Reason == "" || c.Status == "":
			return fmt.Sprintf("%s without a reason or a status", c.Type)
		case c.Since.IsZero() || c.Since.After(now):
			return fmt.Sprintf("%s since %s", c.Type, c.Since)
		}
		for _, b := range before.Conditions {
			same := b.Status == c.Status
			if b.Type == c.Type && (same && !b.Since.Equal(c.Since) || !same && !c.Since.Equal(now)) {
				return fmt.Sprintf("%s is %s since %s, and was %s since %s", c.Type, c.Status, c.Since, b.Status, b.Since)
			}
		}
	}
	running := slices.ContainsFunc(runs, func(run holdfast.Run) bool {
		return run.Status == holdfast.RunRunning && run.Kind.Writes() && run.ID > max(rec.Applied.Run, rec.Life)
	})
	equal := rec.Desired.SourceDigest.Equal(rec.Applied.SourceDigest)
	switch {
	case (rec.Phase == holdfast.PhaseDeleted) != (rec.Deletion != nil):
		return "Deleted is not what has ended"
	case rec.Deletion == nil && rec.Desired.Removed && rec.Phase != holdfast.PhaseDeleting:
		return "a removed document, and not Deleting"
	case rec.Phase == holdfast.PhaseActive && (rec.Applied.Run == "" || rec.Desired.Removed):
		return "Active, and never applied or removed"
	case (rec.Phase == holdfast.PhasePending || rec.Phase == holdfast.PhaseProvisioning) && rec.Applied.Run != "":
		return "applied, and still " + string(rec.Phase)
	case rec.Phase == holdfast.PhaseFailed && running && newestWrite(runs).Status == holdfast.RunRunning:
		return "Failed while something is applied"
	case rec.Phase == holdfast.PhaseConfiguring && before.Phase == holdfast.PhaseActive && rec.Applied.Run != "":
		return "Configuring after it was Active"
	case rec.Deletion == nil && status[holdfast.ConditionApplyUpToDate] == holdfast.ConditionTrue && (!equal || rec.Desired.Removed):
		return "applied, and something else is desired"
	case (status[holdfast.ConditionBlocked] == holdfast.ConditionTrue) != (rec.Waiting != "" && rec.Deletion == nil):
		return "Blocked is not what waits"
	case status[holdfast.ConditionDrifted] == holdfast.ConditionTrue && (rec.Drift.Status != holdfast.DriftFound || rec.Applied.Run == ""):
		return "Drifted without drift"
	case status[holdfast.ConditionHealthy] != holdfast.ConditionUnknown:
		return "nobody looks at health"
	}
	return ""
}

func newestWrite(runs []holdfast.Run) holdfast.Run {
	i := slices.IndexFunc(runs, func(run holdfast.Run) bool { return run.Kind.Writes() })
	if i < 0 {
		return holdfast.Run{}
	}
	return runs[i]
}

// What Git says is applied is settled only when nothing else is being written: neither a
// merge is done, nor may others that depend on it continue.
func TestSettled(t *testing.T) {
	t.Parallel()
	write := func(kind holdfast.RunKind, status holdfast.RunStatus, of holdfast.Digest) func(*living) {
		return func(l *living) {
			run := ran("run-1", kind, status)
			run.SourceDigest = of
			l.runs = append(l.runs, run)
		}
	}
	for name, test := range map[string]struct {
		is   living
		want bool
	}{
		"as Git says":                {cluster(), true},
		"not applied":                {cluster(moved), false},
		"something else is applied":  {cluster(write(holdfast.RunApply, holdfast.RunRunning, oldDigest)), false},
		"something else was applied": {cluster(write(holdfast.RunApply, holdfast.RunApplied, oldDigest)), false},
		"it is destroyed":            {cluster(write(holdfast.RunDestroy, holdfast.RunRunning, "")), false},
		"drift is reverted":          {cluster(write(holdfast.RunApply, holdfast.RunRunning, newDigest)), true},
		"its document is missing":    {cluster(func(l *living) { l.rec.Desired.Missing = "a file cannot be read" }), false},
		"it waits":                   {cluster(func(l *living) { l.rec.Waiting = holdfast.ReasonSuspended }), false},
	} {
		rec := test.is.rec
		if got := decision.Settled(rec, test.is.runs); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
		rec.Phase, _ = decision.Lifecycle(time.Time{}, rec, test.is.runs)
		writes := len(test.is.runs) > 0 && !test.is.runs[0].Status.Done()
		if got := decision.RelationOf(rec).Settled; writes && got {
			t.Errorf("%s (%s): others that depend on it go on", name, rec.Phase)
		}
	}
}
