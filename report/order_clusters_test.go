package report_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// What is lost comes first in the table of clusters: what is destroyed, then what is
// forgotten, then what stays, whatever the clusters are called.
func TestClustersStandInTheOrderOfDanger(t *testing.T) {
	t.Parallel()
	one := func(name string, action holdfast.ChangeAction, counts holdfast.Counts) report.Cluster {
		return planned(name, &holdfast.Plan{Counts: counts, Changes: []holdfast.ResourceChange{
			{Address: "aws_vpc." + name, Type: "aws_vpc", Action: action},
		}})
	}
	body := report.Comment(pullRequest(
		one("a-imports", holdfast.ActionImport, holdfast.Counts{Import: 1}),
		one("b-moves", holdfast.ActionMove, holdfast.Counts{Move: 1}),
		one("c-forgets", holdfast.ActionForget, holdfast.Counts{Forget: 1}),
		one("d-destroys", holdfast.ActionDelete, holdfast.Counts{Delete: 1}),
		one("e-changes", holdfast.ActionUpdate, holdfast.Counts{Update: 1}),
	))
	for _, place := range []string{"| `NAME` production", "<summary><b>NAME</b>"} { // the rows, and the plans
		at := -1
		for _, name := range []string{"d-destroys", "c-forgets", "a-imports", "b-moves", "e-changes"} {
			i := strings.Index(body, strings.ReplaceAll(place, "NAME", name))
			if i <= at {
				t.Fatalf("%s is not where it belongs:\n%s", name, body)
			}
			at = i
		}
	}
}
