package report_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// What policies say is in the comment, what denies first, equal words of several clusters once,
// and nobody's text is Markdown.
func TestPolicies(t *testing.T) {
	t.Parallel()
	planned := func(name string, r *holdfast.PolicyReport) report.Cluster {
		return report.Cluster{
			Name: name, Summary: &holdfast.Plan{
				Counts:  holdfast.Counts{Create: 1},
				Changes: []holdfast.ResourceChange{{Address: "a." + name, Type: "a", Action: holdfast.ActionCreate}},
			},
			Plan: &holdfast.Run{
				ID: "run-" + name, Cluster: name, Kind: holdfast.RunPlan, Status: holdfast.RunPlanned,
				RunSpec:    holdfast.RunSpec{Revision: "h1"},
				RunOutcome: holdfast.RunOutcome{Counts: holdfast.Counts{Create: 1}, Policies: r},
			},
		}
	}
	deny := holdfast.PolicyResult{Policy: "network-changed", Severity: holdfast.PolicyDeny, Address: "aws_vpc.this", Message: "it goes | @all <b>"}
	warn := holdfast.PolicyResult{Policy: "look", Severity: holdfast.PolicyWarn, Message: "look at it"}
	fault := holdfast.PolicyFault{Policy: "broken", Fault: holdfast.Fault{File: "p/a.rego", Line: 3, Message: "divide by zero"}}
	pr := report.PullRequest{
		PullRequest: holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
			PullRequestRef: holdfast.PullRequestRef{Repo: "fleet", Number: 7}, State: holdfast.PullRequestOpen, Head: "h1", Author: "dev",
		}},
		Clusters: []report.Cluster{
			planned("a", &holdfast.PolicyReport{Results: []holdfast.PolicyResult{warn}}),
			planned("b", &holdfast.PolicyReport{Results: []holdfast.PolicyResult{deny, warn}, Faults: []holdfast.PolicyFault{fault}, Undecided: []string{"unclear"}}),
			planned("c", nil),
		},
	}
	comment := report.Comment(pr)
	last := -1
	for _, want := range []string{
		"| | Policy | Resource | What it says | Clusters |",
		"| ❌ deny | `broken` |  | could not be evaluated: p/a.rego:3: divide by zero | `b` |",
		"| ❌ deny | `unclear` |  | undecided | `b` |",
		"| ❌ deny | `network-changed` | `aws_vpc.this` | it goes",
		"| ⚠️ warn | `look` |  | look at it | `a` and `b` |",
	} {
		at := strings.Index(comment, want)
		if at <= last {
			t.Errorf("%q is not at its place in\n%s", want, comment)
		}
		last = at
	}
	if strings.Contains(comment, "@all") || !strings.Contains(comment, `it goes \| @`) || !strings.Contains(comment, "&lt;b&gt;") {
		t.Errorf("a text is Markdown:\n%s", comment)
	}
}

// What was waived does not count, and the comment does not say that it denies; of clusters for which
// it was not, it does.
func TestWaivedPolicies(t *testing.T) {
	t.Parallel()
	deny := holdfast.PolicyResult{Policy: "few-nodes", Severity: holdfast.PolicyDeny, Address: "a.b", Message: "too many"}
	planned := func(name string, waived ...string) report.Cluster {
		return report.Cluster{
			Name: name, Waived: waived, Summary: &holdfast.Plan{
				Counts:  holdfast.Counts{Create: 1},
				Changes: []holdfast.ResourceChange{{Address: "a." + name, Type: "a", Action: holdfast.ActionCreate}},
			},
			Plan: &holdfast.Run{
				ID: "run-" + name, Cluster: name, Kind: holdfast.RunPlan, Status: holdfast.RunPlanned, RunSpec: holdfast.RunSpec{Revision: "h1"},
				RunOutcome: holdfast.RunOutcome{Counts: holdfast.Counts{Create: 1}, Policies: &holdfast.PolicyReport{Evaluated: 1, Results: []holdfast.PolicyResult{deny}}},
			},
		}
	}
	pr := report.PullRequest{
		PullRequest: holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
			PullRequestRef: holdfast.PullRequestRef{Repo: "fleet", Number: 7}, State: holdfast.PullRequestOpen, Head: "h1", Author: "dev",
		}},
		Clusters: []report.Cluster{planned("a", "few-nodes"), planned("b", "other"), planned("c", "few-nodes")},
	}
	comment := report.Comment(pr)
	for _, want := range []string{
		"| ❌ deny | `few-nodes` | `a.b` | too many | `b` |\n| ☑️ waived | `few-nodes` | `a.b` | too many | `a` and `c` |",
		"☑️ 1 waived", "❌ 1 denies",
	} {
		if !strings.Contains(comment, want) {
			t.Errorf("%q is not in\n%s", want, comment)
		}
	}
	pr.Clusters = pr.Clusters[:1]
	pr.Clusters[0].Gates = []holdfast.Gate{{Name: holdfast.GatePolicy, Met: true, Given: []string{"lead waived few-nodes: as in #12, by `@all`"}}}
	if comment := report.Comment(pr); !strings.Contains(comment, "lead waived few-nodes: as in #\u200b12, by \\`@\u200ball\\` |") {
		t.Errorf("the reason of a waiver is Markdown, or refers to another pull request:\n%s", comment)
	}
	if comment := report.Comment(pr); strings.Contains(comment, "❌") {
		t.Errorf("it says that it is denied:\n%s", comment)
	}
}
