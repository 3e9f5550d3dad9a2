package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// TestLossesAreNeverCut: what is destroyed, replaced or forgotten stands in the
// comment, or the status says that it does not.
func TestLossesAreNeverCut(t *testing.T) {
	t.Parallel()

	plan := func(prefix string, lost, updated int) *holdfast.Plan {
		actions := []holdfast.ChangeAction{holdfast.ActionDelete, holdfast.ActionReplace, holdfast.ActionForget}
		p := &holdfast.Plan{Counts: holdfast.Counts{Delete: lost, Update: updated}}
		for i := range updated {
			p.Changes = append(p.Changes, holdfast.ResourceChange{
				Address: fmt.Sprintf("%s.updated[%d]", prefix, i), Type: "x", Action: holdfast.ActionUpdate,
				Attributes: []holdfast.AttributeChange{attr("user_data", `"`+strings.Repeat("a", 2000)+`"`, `"`+strings.Repeat("b", 2000)+`"`)},
			})
		}
		for i := range lost {
			c := holdfast.ResourceChange{Address: fmt.Sprintf("%s.lost-%d-it", prefix, i*i), Type: "x", Action: actions[i%3]}
			p.Changes = append(p.Changes, c)
		}
		return p
	}
	fleet := func(n int, plan func(i int) *holdfast.Plan) report.PullRequest {
		var clusters []report.Cluster
		for i := range n {
			clusters = append(clusters, planned(fmt.Sprintf("cluster-%03d", i), plan(i)))
		}
		return pullRequest(clusters...)
	}
	crowd := func(lose int) report.PullRequest { // so many that lose the same, and long plans of others that lose nothing
		return fleet(lose+40, func(i int) *holdfast.Plan {
			if i < lose {
				return plan("x", 1, 0)
			}
			p := &holdfast.Plan{Counts: holdfast.Counts{Update: 40}}
			for j := range 40 {
				p.Changes = append(p.Changes, update1(fmt.Sprintf("x%d.updated_%d_of_many", i, j), attr("a", `1`, `2`)).Changes...)
			}
			return p
		})
	}
	apart := crowd(300)
	for i := range apart.Clusters {
		apart.Clusters[i].Document.Environment = fmt.Sprintf("e%d", i) // each has a row
	}
	tests := map[string]struct {
		r    report.PullRequest
		fits bool
	}{
		"few":                {fleet(2, func(i int) *holdfast.Plan { return plan("x", 3, 3) }), true},
		"behind many":        {fleet(1, func(int) *holdfast.Plan { return plan("x", 40, 400) }), true},
		"of many, the same":  {fleet(200, func(int) *holdfast.Plan { return plan("x", 50, 40) }), true},
		"of very many":       {fleet(1200, func(int) *holdfast.Plan { return plan("x", 1, 0) }), true},
		"in a crowd":         {crowd(400), true},
		"in rows of a crowd": {apart, true},
		"of many, other":     {fleet(200, func(i int) *holdfast.Plan { return plan(fmt.Sprintf("x%d", i), 3, 10) }), true},
		"too many":           {fleet(100, func(i int) *holdfast.Plan { return plan(fmt.Sprintf("x%d", i), 50, 10) }), false},
		"far too many":       {fleet(1, func(int) *holdfast.Plan { return plan("x", 5000, 10) }), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			comment := report.Comment(tt.r)
			check(t, tt.r, comment)
			status := report.PlanStatus(tt.r)
			if got := report.Unshown(tt.r) == ""; got != tt.fits {
				t.Errorf("fits %v, want %v: %s", got, tt.fits, report.Unshown(tt.r))
			}
			if !tt.fits {
				if status.State != holdfast.StatusError || !strings.HasPrefix(status.Description, "not reviewed: ") || !strings.Contains(comment, "**None of these plans counts as reviewed:**") {
					t.Errorf("status %+v of\n%s", status, comment)
				}
				return
			}
			if status.State != holdfast.StatusSuccess {
				t.Errorf("status %+v", status)
			}
			for _, c := range tt.r.Clusters {
				if c.Summary.Counts.Delete == 0 {
					continue
				}
				for _, change := range c.Summary.Changes {
					if change.Action != holdfast.ActionUpdate && !strings.Contains(comment, "`"+change.Address+"`") {
						t.Fatalf("the comment lacks %s of %s:\n%s", change.Address, c.Name, comment)
					}
				}
				if !strings.Contains(comment, "`"+c.Name+"`") {
					t.Errorf("the comment lacks the name %s", c.Name)
				}
			}
		})
	}
}

// TestEachClusterIsNamed: of clusters whose plans do not fit the comment each has its
// row with its run, or there is the command that lists them.
func TestEachClusterIsNamed(t *testing.T) {
	t.Parallel()

	fleet := func(n int) report.PullRequest {
		var clusters []report.Cluster
		for i := range n {
			p := &holdfast.Plan{Counts: holdfast.Counts{Update: 30}}
			for j := range 30 {
				p.Changes = append(p.Changes, update1(fmt.Sprintf("module.network.aws_security_group_rule.to_%d_others", j), attr("cidr", `"0"`, fmt.Sprintf(`"10.%d.0.0"`, i))).Changes...)
			}
			clusters = append(clusters, planned(fmt.Sprintf("cluster-%04d", i), p))
		}
		return pullRequest(clusters...)
	}
	for n, all := range map[int]bool{200: true, 600: true, 2000: false} {
		comment := report.Comment(fleet(n))
		for i := range n {
			if row := fmt.Sprintf("`run-cluster-%04d` |", i); all && !strings.Contains(comment, row) {
				t.Fatalf("of %d clusters the comment lacks the row of %d:\n%s", n, i, comment)
			}
		}
		if told := strings.Contains(comment, "`holdfast get runs --pull-request fleet#7` lists the runs of all."); told == all {
			t.Errorf("of %d clusters it says where the others are: %v", n, told)
		}
	}
}

// TestInstancesInARow: resources that are lost and differ by a number alone take one
// line.
func TestInstancesInARow(t *testing.T) {
	t.Parallel()

	p := &holdfast.Plan{Counts: holdfast.Counts{Delete: 1500}}
	for i := range 1500 {
		p.Changes = append(p.Changes, holdfast.ResourceChange{Address: fmt.Sprintf("aws_subnet.a[%d]", i), Type: "aws_subnet", Action: holdfast.ActionDelete})
	}
	p.Changes[700].Reason = "delete_because_no_module"
	comment := report.Comment(pullRequest(planned("a", p)))
	for _, want := range []string{
		"| `aws_subnet.a[0–699, 701–1499]` (1499) |", "| `aws_subnet.a[700]` | its module is not in the configuration |",
	} {
		if !strings.Contains(comment, want) {
			t.Errorf("the comment lacks %q:\n%s", want, comment)
		}
	}
}

// TestCutListsSayHowMany: what is left out of a list that people act on is counted.
func TestCutListsSayHowMany(t *testing.T) {
	t.Parallel()

	clusters := []report.Cluster{appliedCluster("done", smallPlan("done"), holdfast.RunApplied)}
	for i := range 25 {
		clusters = append(clusters, waits(planned(fmt.Sprintf("c%02d", i), smallPlan("x")), holdfast.ReasonUnreviewed, ""))
	}
	if comment := report.Comment(merge(pullRequest(clusters...))); !strings.Contains(comment, " c19` ") || !strings.Contains(comment, " (20 of 25 clusters)") {
		t.Errorf("the command for 25 clusters does not say that it is for 20:\n%s", comment)
	}
	killed := appliedCluster("a", smallPlan("a"), holdfast.RunInterrupted)
	killed.Apply.Failure = &holdfast.Failure{Step: "apply", Summary: "the engine was killed", Cause: "EngineKilled"}
	for i := range 60 {
		killed.Apply.Failure.Unrecorded = append(killed.Apply.Failure.Unrecorded, fmt.Sprintf("aws_instance.a[%d]", i))
	}
	if comment := report.Comment(merge(pullRequest(killed))); !strings.Contains(comment, "> - `aws_instance.a[49]`\n> - … and 10 more\n") {
		t.Errorf("of 60 resources that may exist the comment does not say how many it leaves out:\n%s", comment)
	}
}
