package decision_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Nobody gets around the conditions of the merge by asking for a plan after it and
// applying that.
func TestDecideHoldsStoredPlansToTheConditions(t *testing.T) {
	t.Parallel()
	planned := runs(ran("run-2", plan, holdfast.RunPlanned, byAlice))
	approved := func(in *decision.Input) { in.Merges[0].NewestMet = append(in.Merges[0].NewestMet, "approved") }
	approvedBefore := func(in *decision.Input) { in.Merges[0].Met = append(in.Merges[0].Met, "approved") }
	another := func(in *decision.Input) {
		in.Merges = append(in.Merges, decision.Merge{Review: holdfast.Review{PullRequest: holdfast.PullRequestRef{Repo: "infra", Number: 2}, Run: "run-0a"}, Met: []string{"approved"}})
	}
	applied := decision.Decision{Action: decision.ActionApply, Reason: holdfast.ReasonApproved, Actor: "alice", Shown: "run-2"}
	refuse := func(reason holdfast.Reason) decision.Decision {
		return decision.Decision{Action: decision.ActionRefuse, Reason: reason}
	}
	for name, test := range map[string]situation{
		"planned by a person, not approved": {
			onBranch(merged, requires("approved"), planned, asks(holdfast.VerbApply, "run-2")), refuse(holdfast.ReasonNotApproved),
		},
		"approved was what was reviewed, and that is another plan": {
			onBranch(merged, approvedBefore, requires("approved"), planned, asks(holdfast.VerbApply, "run-2")), refuse(holdfast.ReasonNotApproved),
		},
		"approved, and in it is an older merge that is not": {
			onBranch(merged, approved, another, requires("approved"), planned, asks(holdfast.VerbApply, "run-2")), refuse(holdfast.ReasonNotApproved),
		},
		"approved, and in it is a newer merge that is not": {
			onBranch(merged, another, func(in *decision.Input) { in.Merges[1].NewestMet = []string{"approved"} },
				requires("approved"), planned, asks(holdfast.VerbApply, "run-2")), refuse(holdfast.ReasonNotApproved),
		},
		"what was reviewed, and an older merge is not approved": {
			onBranch(merged, approvedBefore, another, func(in *decision.Input) { in.Merges[1].Met = nil },
				requires("approved"), asks(holdfast.VerbApply, "")), refuse(holdfast.ReasonNotApproved),
		},
		"merged before it was planned, not approved": {
			onBranch(mergedUnseen, requires("approved"), planned, asks(holdfast.VerbApply, "run-2")), refuse(holdfast.ReasonNotApproved),
		},
		"merged against the checks": {
			onBranch(mergedUnseen, requires("mergeable"), planned, asks(holdfast.VerbApply, "run-2")), refuse(holdfast.ReasonNotMergeable),
		},
		"not approved, which the change no longer asks for": {
			onBranch(mergedUnseen, required("approved"), planned, asks(holdfast.VerbApply, "run-2")), refuse(holdfast.ReasonNotApproved),
		},
		"merged against the checks, which the change no longer asks for": {
			onBranch(mergedUnseen, required("mergeable"), requires("approved"), approved, planned, asks(holdfast.VerbApply, "run-2")),
			refuse(holdfast.ReasonNotMergeable),
		},
		"not approved, which only a failed apply has begun with": {
			onBranch(fresh, begunWith("approved"), mergedUnseen, planned, asks(holdfast.VerbApply, "run-2")), refuse(holdfast.ReasonNotApproved),
		},
		"a new cluster": {onBranch(fresh, mergedUnseen, planned, asks(holdfast.VerbApply, "run-2")), applied},
		"approved":      {onBranch(merged, approved, requires("approved"), planned, asks(holdfast.VerbApply, "run-2")), applied},
		"pushed without a pull request": {
			onBranch(requires("approved"), planned, asks(holdfast.VerbApply, "run-2")), applied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decision.Decide(test.in)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(decision.Decision{}, "Reviews")); diff != "" {
				t.Errorf("Decide() (-want +got):\n%s", diff)
			}
		})
	}
}

// asksAs is a person's word, of somebody.
func asksAs(actor, run string) func(*decision.Input) {
	return func(in *decision.Input) { in.Ask = &decision.Ask{Verb: holdfast.VerbApply, Actor: actor, Run: run} }
}

// costs limits what an apply may add a month.
func costs(most holdfast.Amount, by ...string) func(*decision.Input) {
	return func(in *decision.Input) {
		settings := &in.Cluster.Desired.Document.Apply
		settings.Requires = append(settings.Requires, holdfast.GateCost)
		settings.Terms.Costs = []holdfast.CostTerms{{MaxIncrease: most, Currency: "USD", ApprovedBy: by}}
	}
}

// adds is what a plan adds a month.
func adds(amount holdfast.Amount) func(*holdfast.Run) {
	return func(run *holdfast.Run) {
		run.Cost = &holdfast.Cost{Totals: []holdfast.CostTotal{{Currency: "USD", Change: holdfast.AmountRange{Low: amount, High: amount}}}}
	}
}

// deniedBy is what a policy has against a plan, and whether a document waives it.
func deniedBy(policy, until string) func(*holdfast.Run) {
	return func(run *holdfast.Run) {
		run.Policies = &holdfast.PolicyReport{Results: []holdfast.PolicyResult{{Policy: policy, Severity: holdfast.PolicyDeny, Message: "no"}}}
		if until != "" {
			run.PolicyWaivers = []holdfast.PolicyWaiver{{Waiver: holdfast.Waiver{Waives: policy}, By: "ann", Until: until}}
		}
	}
}

// One person's word is the approval of what was pushed past all pull requests, or of what reverts
// drift. It opens no limit of the cost, no policy, and no condition that asks for several people.
func TestOneWordOpensNotEveryCondition(t *testing.T) {
	t.Parallel()
	pushed := func(of func(*holdfast.Run), with ...func(*decision.Input)) decision.Input {
		return onBranch(append([]func(*decision.Input){runs(ran("run-2", plan, holdfast.RunPlanned, of)), asksAs("alice", "run-2")}, with...)...)
	}
	drifted := func(of func(*holdfast.Run), with ...func(*decision.Input)) decision.Input {
		return asApplied(append([]func(*decision.Input){check(of), asksAs("alice", "run-1")}, with...)...)
	}
	people := func(terms holdfast.GateTerms, name string) func(*decision.Input) {
		return func(in *decision.Input) {
			in.Cluster.Desired.Document.Apply.Requires, in.Cluster.Desired.Document.Apply.Terms = []string{name}, terms
		}
	}
	removes := func(in *decision.Input) {
		in.Cluster.Desired.Removed, in.Removals, in.Fleet = true, 1, 10
		in.Runs[0].SourceDigest, in.Runs[0].Destroy = destroyDigest, true
	}
	for name, c := range map[string]struct {
		in   decision.Input
		want holdfast.Reason // empty: it is applied
	}{
		"a push that costs too much":            {pushed(adds("7"), costs("5")), holdfast.ReasonCostExceeded},
		"by whom the limit names":               {pushed(adds("7"), costs("5", "bob", "Alice")), ""},
		"by who calls himself so":               {pushed(adds("7"), costs("5", "alice"), func(in *decision.Input) { in.Ask.Person = true }), holdfast.ReasonCostExceeded},
		"a push that costs less":                {pushed(adds("3"), costs("5")), ""},
		"a push whose cost is not known":        {pushed(func(*holdfast.Run) {}, costs("5")), holdfast.ReasonCostUnknown},
		"a push that several have to approve":   {pushed(adds("3"), people(holdfast.GateTerms{Approvals: 2}, holdfast.GateApproved)), holdfast.ReasonNotApproved},
		"a push that one has to approve":        {pushed(adds("3"), people(holdfast.GateTerms{Approvals: 1}, holdfast.GateApproved)), ""},
		"a push that several would destroy":     {pushed(adds("3"), people(holdfast.GateTerms{Destroys: 2}, holdfast.GateDestroy), removes), holdfast.ReasonNotApproved},
		"a push that destroys nothing":          {pushed(adds("3"), people(holdfast.GateTerms{Destroys: 2}, holdfast.GateDestroy)), ""},
		"a push that a policy denies":           {pushed(deniedBy("few", ""), requires(holdfast.GatePolicy)), holdfast.ReasonPolicyDenied},
		"a push, and the policy is waived":      {pushed(deniedBy("few", "2099-01-01"), requires(holdfast.GatePolicy)), ""},
		"a push, and the waiver is over":        {pushed(deniedBy("few", "2026-02-28"), requires(holdfast.GatePolicy)), holdfast.ReasonPolicyDenied},
		"drift that costs too much":             {drifted(adds("7"), costs("5")), holdfast.ReasonCostExceeded},
		"drift, by whom the limit names":        {drifted(adds("7"), costs("5", "alice")), ""},
		"drift that costs less":                 {drifted(adds("3"), costs("5")), ""},
		"drift that a policy has revert denied": {drifted(deniedBy("few", ""), requires(holdfast.GatePolicy)), holdfast.ReasonPolicyDenied},
		"drift, of what several have approved":  {drifted(adds("3"), people(holdfast.GateTerms{Approvals: 2}, holdfast.GateApproved)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decision.Decide(c.in)
			if c.want == "" && got.Action != decision.ActionApply || c.want != "" && (got.Action != decision.ActionRefuse || got.Reason != c.want) {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}

// Who is asked for a word on a push reads what it does not open.
func TestAPushSaysWhatBarsIt(t *testing.T) {
	t.Parallel()
	got := decision.Decide(onBranch(runs(ran("run-2", plan, holdfast.RunPlanned, adds("7"))), costs("5")))
	if got.Action != decision.ActionWait || !strings.Contains(got.Detail, "it adds +7.00 USD a month, and at most 5.00 USD more a month") {
		t.Errorf("got %+v", got)
	}
}

// What waits for a person's word says which conditions its plan does not meet, and of
// which merge.
func TestDecideReportsConditions(t *testing.T) {
	t.Parallel()
	changed := runs(ran("run-2", apply, holdfast.RunPlanned, withReviews(seen)))
	lacks := func(at int, text string) func(*decision.Input) {
		return func(in *decision.Input) {
			in.Merges[at].Met, in.Merges[at].NewestMissing = []string{"approved"}, map[string]string{"approved": text}
		}
	}
	const nobody = "an apply of this plan waits for more: the pull request has no approving review, which this cluster requires"
	for name, c := range map[string]struct {
		in   decision.Input
		want string
	}{
		"required by nobody": {onBranch(merged, lacks(0, "ann approved before"), changed), ""},
		"met":                {onBranch(merged, requires("approved"), func(in *decision.Input) { in.Merges[0].NewestMet = []string{"approved"} }, changed), ""},
		"not met": {
			onBranch(merged, requires("approved"), lacks(0, "ann approved before"), changed),
			nobody + ": ann approved before. `/holdfast approve` approves it",
		},
		"of two": {
			onBranch(merged, merged, requires("approved"), lacks(0, "ann approved before"), lacks(1, "nobody has"), changed),
			nobody + ": #1: ann approved before; #1: nobody has. `/holdfast approve` approves it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := decision.Decision{Action: decision.ActionWait, Reason: holdfast.ReasonPlanChanged, Detail: c.want}
			if diff := cmp.Diff(want, decision.Decide(c.in), sameEmpty); diff != "" {
				t.Errorf("Decide() (-want +got):\n%s", diff)
			}
		})
	}
}

// An apply that the windows of what was last applied hold back says so: its document may
// have none.
func TestDecideReportsWhoseWindowsAreClosed(t *testing.T) {
	t.Parallel()
	const lifted = "those of the document are open, but those of the last applied version are closed until 2026-03-01 13:00 UTC"
	const own = "they are closed until 2026-03-01 13:00 UTC"
	change := noon.Add(time.Hour)
	closed := func(isLifted bool) func(*decision.Input) {
		return func(in *decision.Input) {
			in.Window = decision.Window{Closed: true, Lifted: isLifted, Change: change}
		}
	}
	planned := runs(ran("run-2", plan, holdfast.RunPlanned, byAlice))
	for name, test := range map[string]situation{
		"its own":                {onBranch(merged, closed(false)), decision.Decision{Action: decision.ActionWait, Reason: holdfast.ReasonWindowClosed, After: time.Hour, Detail: own}},
		"lifted":                 {onBranch(merged, closed(true)), decision.Decision{Action: decision.ActionWait, Reason: holdfast.ReasonWindowClosed, After: time.Hour, Detail: lifted}},
		"lifted, a person asks":  {onBranch(closed(true), planned, asks(holdfast.VerbApply, "run-2")), decision.Decision{Action: decision.ActionRefuse, Reason: holdfast.ReasonWindowClosed, Detail: lifted}},
		"its own, a person asks": {onBranch(closed(false), planned, asks(holdfast.VerbApply, "run-2")), decision.Decision{Action: decision.ActionRefuse, Reason: holdfast.ReasonWindowClosed, Detail: own}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, decision.Decide(test.in), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Decide() (-want +got):\n%s", diff)
			}
		})
	}
}

// Windows are closed until an apply may begin by all that holds for it, and not only until
// one of them starts or ends.
func TestWindowIsClosedUntil(t *testing.T) {
	t.Parallel()
	windows := func(all ...holdfast.ApplyWindow) holdfast.ApplySettings { return holdfast.ApplySettings{Windows: all} }
	office := holdfast.ApplyWindow{Kind: "allow", Schedule: "0 9 * * *", Duration: 2 * time.Hour}
	late := holdfast.ApplyWindow{Kind: "allow", Schedule: "0 10 * * *", Duration: 2 * time.Hour}
	freeze := holdfast.ApplyWindow{Kind: "deny", Schedule: "0 0 1 * *", Duration: 72 * time.Hour}
	never := holdfast.ApplyWindow{Kind: "deny", Schedule: "0 0 * * *", Duration: 25 * time.Hour}
	for name, test := range map[string]struct {
		conditions []holdfast.ApplySettings
		want       string
	}{
		"without windows":       {[]holdfast.ApplySettings{windows()}, ""},
		"the next day":          {[]holdfast.ApplySettings{windows(office)}, "closed until 2026-03-02 09:00 UTC"},
		"after days of denial":  {[]holdfast.ApplySettings{windows(office, freeze)}, "closed until 2026-03-04 09:00 UTC"},
		"until all of two open": {[]holdfast.ApplySettings{windows(office), windows(late)}, "closed until 2026-03-02 10:00 UTC"},
		"never":                 {[]holdfast.ApplySettings{windows(never)}, "closed"},
		"unreadable":            {[]holdfast.ApplySettings{windows(holdfast.ApplyWindow{Kind: "allow", Schedule: "often"})}, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := decision.WindowAt(test.conditions, noon).ClosedUntil(test.conditions); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// required says that what was last applied requires a condition.
func required(gate string) func(*decision.Input) {
	return func(in *decision.Input) { in.Cluster.Applied.Document.Apply.Requires = []string{gate} }
}

// begunWith says that an apply has begun with a document that requires a condition.
func begunWith(gate string) func(*decision.Input) {
	return func(in *decision.Input) {
		in.Last = holdfast.Applied{Run: "run-1", Document: holdfast.Cluster{Apply: holdfast.ApplySettings{Requires: []string{gate}}}}
	}
}

// A document that nobody has applied takes no condition away, and may add some.
func TestInForce(t *testing.T) {
	t.Parallel()
	settings := func(manual bool, requires ...string) holdfast.ApplySettings {
		return holdfast.ApplySettings{Manual: manual, Requires: requires}
	}
	windows := []holdfast.ApplyWindow{{Kind: "allow", Schedule: "0 9 * * *"}}
	for name, c := range map[string]struct {
		run                 string
		last, document, now holdfast.ApplySettings
	}{
		"none":            {"run-1", settings(false), settings(false), settings(false)},
		"taken away":      {"run-1", settings(true, "approved"), settings(false), settings(true, "approved")},
		"another":         {"run-1", settings(false, "approved"), settings(false, "mergeable"), settings(false, "mergeable", "approved")},
		"more":            {"run-1", settings(false, "approved"), settings(true, "approved", "mergeable"), settings(true, "approved", "mergeable")},
		"never applied":   {"", settings(true, "approved"), settings(false), settings(false)},
		"its own windows": {"run-1", holdfast.ApplySettings{Windows: windows}, settings(false), settings(false)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := holdfast.Applied{Run: c.run, Document: holdfast.Cluster{Apply: c.last}}
			document := holdfast.Cluster{Name: "prod", Apply: c.document}
			last.Document = decision.InForce(document, last)
			if diff := cmp.Diff(holdfast.Cluster{Name: "prod", Apply: c.now}, last.Document, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("in force (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(last.Document, decision.InForce(document, last)); diff != "" {
				t.Errorf("and once more (-before +after):\n%s", diff)
			}
		})
	}
}

// An apply of what is applied already meets no conditions of a merge; one that takes back
// what another has begun does.
func TestRepeats(t *testing.T) {
	t.Parallel()
	at := func(id, source string, begun bool) holdfast.Run {
		run := holdfast.Run{ID: id, Kind: holdfast.RunApply, RunSpec: holdfast.RunSpec{SourceDigest: holdfast.Digest(source)}}
		run.Begun = begun
		return run
	}
	applied := holdfast.Applied{Run: "run-3", SourceDigest: "sha256:a"}
	for name, c := range map[string]struct {
		applied holdfast.Applied
		runs    []holdfast.Run // the newest first
		want    bool
	}{
		"drift is reverted":             {applied, []holdfast.Run{at("run-5", "sha256:a", true)}, true},
		"at the second attempt":         {applied, []holdfast.Run{at("run-5", "sha256:a", true), at("run-4", "sha256:a", true)}, true},
		"after something that is older": {applied, []holdfast.Run{at("run-5", "sha256:a", true), at("run-2", "sha256:b", true)}, true},
		"after one that never began":    {applied, []holdfast.Run{at("run-5", "sha256:a", true), at("run-4", "sha256:b", false)}, true},
		"a change":                      {applied, []holdfast.Run{at("run-5", "sha256:b", true)}, false},
		"what another has begun goes":   {applied, []holdfast.Run{at("run-5", "sha256:a", true), at("run-4", "sha256:b", true)}, false},
		"the first apply":               {holdfast.Applied{}, []holdfast.Run{at("run-5", "", true)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := holdfast.ClusterRecord{Name: "prod", Applied: c.applied}
			if got := decision.Repeats(rec, c.runs, c.runs[0]); got != c.want {
				t.Errorf("Repeats() = %t, want %t", got, c.want)
			}
		})
	}
}
