package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
)

// A cost that is beyond its limit is let pass by those whom the limit names, if they have seen
// this plan; a cost that nobody knows is within no limit.
func TestCost(t *testing.T) {
	t.Parallel()
	costing := func(high string) holdfast.Run {
		run := plan
		run.Cost = &holdfast.Cost{Totals: []holdfast.CostTotal{{
			Currency: "USD", Change: holdfast.AmountRange{Low: "0", High: holdfast.Amount(high)},
		}}}
		return run
	}
	limits := func(all ...holdfast.CostTerms) holdfast.GateTerms { return holdfast.GateTerms{Costs: all} }
	hundred := holdfast.CostTerms{MaxIncrease: "100", Currency: "USD"}
	byLead := holdfast.CostTerms{MaxIncrease: "100", Currency: "USD", ApprovedBy: []string{"CFO", "Lead"}}
	review := func(by string, at time.Time) holdfast.PullRequestRecord {
		return verdicts(holdfast.Verdict{By: by, Approves: true, Head: "head", At: at})
	}
	after := noon.Add(time.Minute)
	objected := review("lead", after)
	objected.Verdicts = append(objected.Verdicts, holdfast.Verdict{By: "boss", Head: "head", At: after})
	for name, tt := range map[string]struct {
		pr      holdfast.PullRequestRecord
		plan    holdfast.Run
		terms   holdfast.GateTerms
		missing string // empty: it is met
		unknown bool
	}{
		"within":                        {proposal(nil), costing("99"), limits(hundred), "", false},
		"beyond":                        {proposal(nil), costing("101"), limits(hundred), "+101.00 USD", false},
		"beyond one of two":             {proposal(nil), costing("60"), limits(hundred, holdfast.CostTerms{MaxIncrease: "50", Currency: "USD"}), "at most 50.00", false},
		"approved by one who may":       {review("lead", after), costing("101"), limits(byLead), "", false},
		"approved by somebody else":     {review("dev2", after), costing("101"), limits(byLead), "+101.00", false},
		"approved before it was shown":  {review("lead", noon.Add(-time.Minute)), costing("101"), limits(byLead), "+101.00", false},
		"approved, and another objects": {objected, costing("101"), limits(byLead), "+101.00", false},
		"approved for one limit only":   {review("lead", after), costing("101"), limits(byLead, hundred), "+101.00", false},
		"approved by command":           {approvals(holdfast.Approval{By: "cfo", Head: "head", At: after, Runs: []string{"run-1"}}), costing("101"), limits(byLead), "", false},
		"approved by one who is called so": {
			approvals(holdfast.Approval{By: "cfo", Head: "head", At: after, Runs: []string{"run-1"}, Person: true}), costing("101"), limits(byLead), "+101.00", false,
		},
		"not estimated":               {proposal(nil), plan, limits(hundred), "not estimated", true},
		"not estimated, and approved": {review("lead", after), plan, limits(byLead), "", false},
		"no plan":                     {proposal(nil), holdfast.Run{}, limits(hundred), "no plan yet", true},
		"no limit":                    {proposal(nil), costing("1"), limits(), "no limit", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gates := gate.Of(tt.pr, gate.Terms{Cluster: "prod", Requires: []string{"cost"}, Details: tt.terms}, tt.plan, nil)
			if len(gates) != 1 {
				t.Fatalf("got %+v, want one", gates)
			}
			g := gates[0]
			if g.Met != (tt.missing == "") || !strings.Contains(g.Missing, tt.missing) || (g.From != "") == g.Met || g.Unknown != tt.unknown {
				t.Errorf("got %+v, want it to miss %q", g, tt.missing)
			}
		})
	}
}

// What destroys a cluster needs more approvals than what changes it.
func TestDestroyApprovals(t *testing.T) {
	t.Parallel()
	pr := verdicts(holdfast.Verdict{By: "lead", Approves: true, Head: "head", At: noon.Add(time.Minute)})
	destroys := plan
	destroys.Destroy = true
	terms := gate.Terms{Cluster: "prod", Requires: []string{"approved", "destroy"}, Details: holdfast.GateTerms{Destroys: 2}}
	for _, tt := range []struct {
		plan      holdfast.Run
		met, idle bool
	}{{plan, true, true}, {holdfast.Run{}, true, true}, {destroys, false, false}} {
		g := gate.Of(pr, terms, tt.plan, nil)[1]
		if g.Met != tt.met || g.Idle != tt.idle || !tt.met && g.Missing != "1 of 2 approvals" {
			t.Errorf("got %+v, want met %v", g, tt.met)
		}
	}
}

// Several approvals are those of several people.
func TestApprovals(t *testing.T) {
	t.Parallel()
	after := noon.Add(time.Minute)
	by := func(who string) holdfast.Verdict {
		return holdfast.Verdict{By: who, Approves: true, Head: "head", At: after}
	}
	twice := verdicts(by("lead"))
	word := func(who, comment string) holdfast.Approval {
		return holdfast.Approval{By: who, Head: "head", At: after, Runs: []string{"run-1"}, CommentID: comment}
	}
	twice.Approvals = []holdfast.Approval{word("Lead", "c1")}
	perhaps := verdicts(by("lead"))
	perhaps.Approvals = []holdfast.Approval{word("lead-token", "")}
	both := verdicts(by("lead"))
	both.Approvals = []holdfast.Approval{word("boss", "c1"), word("lead-token", "")}
	for name, tt := range map[string]struct {
		pr      holdfast.PullRequestRecord
		missing string
	}{
		"none":                         {proposal(nil), "nobody has approved it"},
		"one":                          {verdicts(by("lead")), "1 of 2 approvals"},
		"one, twice":                   {twice, "1 of 2 approvals"},
		"two":                          {verdicts(by("lead"), by("boss")), ""},
		"two, and one through the API": {both, ""},
		"two through the API":          {approvals(word("lead", ""), word("boss", "")), ""},
		"one, and perhaps the same through the API": {
			perhaps, "1 of 2 approvals: one through the API and one on the code host may be the same person's",
		},
		"one, and an old": {verdicts(by("lead"), holdfast.Verdict{By: "boss", Approves: true, Head: "old", At: after}), "1 of 2 approvals; boss approved an older commit"},
	} {
		g := gate.Of(tt.pr, gate.Terms{Cluster: "prod", Requires: []string{"approved"}, Details: holdfast.GateTerms{Approvals: 2}}, plan, nil)[0]
		if g.Met != (tt.missing == "") || g.Missing != tt.missing {
			t.Errorf("%s: got %+v, want it to miss %q", name, g, tt.missing)
		}
	}
}
