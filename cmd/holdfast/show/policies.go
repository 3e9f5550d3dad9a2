package show

import (
	"fmt"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// policiesText is what policies say of a plan.
func (a *app) policiesText(r *v1.PolicyReport) string {
	if r == nil {
		return ""
	}
	var rows [][]table.Cell
	for _, f := range r.Faults {
		place := f.File
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		rows = append(rows, []table.Cell{{Text: "fault", Colour: table.Red}, {Text: f.Policy}, {Text: place}, {Text: f.Message}})
	}
	for _, id := range r.Undecided {
		rows = append(rows, table.Cells("undecided", id, "", "it reads what the plan does not show"))
	}
	for _, result := range r.Results {
		rows = append(rows, table.Cells(string(result.Severity), result.Policy, result.Address, result.Message))
	}
	columns := []table.Column{{Title: "SEVERITY"}, {Title: "POLICY"}, {Title: "RESOURCE", Yields: 1}, {Title: "MESSAGE", Min: 20}}
	if len(rows) == 0 {
		return table.Section("Policies", fmt.Sprintf("%d evaluated: nothing to report", r.Evaluated))
	}
	out := a.Section("Policies", columns, rows)
	if r.Omitted > 0 {
		out += fmt.Sprintf("%d more results are left out.\n", r.Omitted)
	}
	return out
}
