package report_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// holdfast/policy is a success only if each plan of a cluster with policies was made, and they let
// it pass.
func TestPolicyStatus(t *testing.T) {
	t.Parallel()
	planned := func(name string, status holdfast.RunStatus, gates ...holdfast.Gate) report.Cluster {
		return report.Cluster{
			Name: name, Gates: gates, Summary: &holdfast.Plan{Counts: holdfast.Counts{Create: 1}},
			Plan: &holdfast.Run{
				ID: "run-" + name, Cluster: name, Kind: holdfast.RunPlan, Status: status,
				RunSpec: holdfast.RunSpec{Revision: "h1"}, RunOutcome: holdfast.RunOutcome{Counts: holdfast.Counts{Create: 1}},
			},
		}
	}
	met := holdfast.Gate{Name: holdfast.GatePolicy, Met: true}
	unmet := holdfast.Gate{Name: holdfast.GatePolicy, Missing: "denied by few-nodes"}
	approved := holdfast.Gate{Name: holdfast.GateApproved, Missing: "nobody has approved it"}
	for name, test := range map[string]struct {
		clusters []report.Cluster
		state    holdfast.StatusState
		says     string
	}{
		"nothing":         {nil, holdfast.StatusSuccess, "no cluster with policies"},
		"no policies":     {[]report.Cluster{planned("a", holdfast.RunPlanned, approved)}, holdfast.StatusSuccess, "no cluster with policies"},
		"passes":          {[]report.Cluster{planned("a", holdfast.RunPlanned, approved, met)}, holdfast.StatusSuccess, "1 cluster pass"},
		"one is denied":   {[]report.Cluster{planned("a", holdfast.RunPlanned, met), planned("b", holdfast.RunPlanned, unmet)}, holdfast.StatusFailure, "b: denied by few-nodes"},
		"one failed":      {[]report.Cluster{planned("a", holdfast.RunPlanned, met), planned("b", holdfast.RunErrored, unmet)}, holdfast.StatusFailure, "the plan failed: b"},
		"no longer bound": {[]report.Cluster{planned("a", holdfast.RunPlanned, holdfast.Gate{Name: holdfast.GatePolicy, Met: true, Idle: true})}, holdfast.StatusSuccess, "no cluster with policies"},
		"removed, and never applied": {[]report.Cluster{{
			Name: "a", Removed: true, Waiting: holdfast.ReasonNeverApplied, Gates: []holdfast.Gate{{Name: holdfast.GatePolicy, Missing: "there is no plan yet"}},
		}}, holdfast.StatusSuccess, "no cluster with policies"},
		"one is not yet made": {[]report.Cluster{planned("a", holdfast.RunPlanned, unmet), planned("b", holdfast.RunRunning, unmet)}, holdfast.StatusPending, "planning"},
	} {
		got := report.PolicyStatus(report.PullRequest{
			PullRequest: holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
				PullRequestRef: holdfast.PullRequestRef{Repo: "fleet", Number: 7}, State: holdfast.PullRequestOpen, Head: "h1",
			}},
			Clusters: test.clusters,
		})
		if got.State != test.state || got.Context != holdfast.ContextPolicy || got.Revision != "h1" || !strings.Contains(got.Description, test.says) {
			t.Errorf("%s: got %+v, want a %s that says %q", name, got, test.state, test.says)
		}
	}
}

// What was not planned has not passed: holdfast/policy succeeds only if holdfast/plan does.
func TestPolicyStatusOfWhatIsNotPlanned(t *testing.T) {
	t.Parallel()
	fault := holdfast.Faults{{File: "clusters/a.yaml", Line: 3, Message: "unknown key", Cluster: "a"}}
	for reason, test := range map[holdfast.Reason]struct {
		faults holdfast.Faults
		state  holdfast.StatusState
	}{
		"":                          {fault, holdfast.StatusFailure},
		holdfast.ReasonNotMergeable: {nil, holdfast.StatusFailure},
		holdfast.ReasonFork:         {nil, holdfast.StatusFailure},
		holdfast.ReasonDraft:        {nil, holdfast.StatusPending},
		holdfast.ReasonUnreadable:   {nil, holdfast.StatusError},
		holdfast.ReasonOtherBase:    {nil, holdfast.StatusSuccess},
	} {
		r := report.PullRequest{PullRequest: holdfast.PullRequestRecord{
			PullRequest: holdfast.PullRequest{
				PullRequestRef: holdfast.PullRequestRef{Repo: "fleet", Number: 7}, State: holdfast.PullRequestOpen, Head: "h1",
			},
			Reason: reason, Faults: test.faults,
		}}
		plan, policy := report.PlanStatus(r), report.PolicyStatus(r)
		if plan.State != test.state || policy.State != test.state {
			t.Errorf("%q: got %+v next to %+v, want both to be a %s", reason, policy, plan, test.state)
		}
	}
}
