package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// policyRow is what a policy says of the plans of some clusters.
type policyRow struct {
	result   holdfast.PolicyResult
	fault    bool
	clusters []string
}

// policyRows are what policies say of all that is planned, the gravest first: what several
// clusters have in common once.
func policyRows(outcomes []outcome) (rows []policyRow) {
	add := func(cluster string, result holdfast.PolicyResult, fault bool) {
		i := slices.IndexFunc(rows, func(r policyRow) bool { return r.result == result && r.fault == fault })
		if i < 0 {
			i = len(rows)
			rows = append(rows, policyRow{result: result, fault: fault})
		}
		rows[i].clusters = append(rows[i].clusters, cluster)
	}
	for _, o := range outcomes {
		plan := o.cluster.Plan
		if waits := o.cluster.Apply; waits != nil && waits.Status == holdfast.RunPlanned {
			plan = waits
		}
		shown := o.stage == stageDone || o.stage == stageHeld
		if !shown || o.applied || plan == nil || plan.Policies == nil {
			continue
		}
		for _, f := range plan.Policies.Faults {
			message := f.Message
			if f.File != "" {
				message = f.Position() + ": " + message
			}
			add(o.cluster.Name, holdfast.PolicyResult{Policy: f.Policy, Severity: holdfast.PolicyDeny, Message: "could not be evaluated: " + message}, true)
		}
		for _, id := range plan.Policies.Undecided {
			add(o.cluster.Name, holdfast.PolicyResult{Policy: id, Severity: holdfast.PolicyDeny, Message: "undecided"}, true)
		}
		for _, r := range plan.Policies.Results {
			add(o.cluster.Name, r, false)
		}
	}
	order := holdfast.PolicySeverities()
	slices.SortStableFunc(rows, func(a, b policyRow) int {
		return cmp.Compare(slices.Index(order, a.result.Severity), slices.Index(order, b.result.Severity))
	})
	return rows
}

// policyIcons are what people see of severities.
var policyIcons = map[holdfast.PolicySeverity]string{ //nolint:gochecknoglobals // a constant table
	holdfast.PolicyDeny: "❌ deny", holdfast.PolicyWarn: "⚠️ warn", holdfast.PolicyInfo: "ℹ️ info",
}

// policyWriter writes what policies say.
type policyWriter struct{ *writer }

// policies lists what policies say of the plans.
func (w policyWriter) policies() {
	rows := policyRows(w.outcomes)
	if len(rows) == 0 {
		return
	}
	several := w.total.all > 1
	header, rule := "| Severity | Policy | Resource | What it says |", "|---|---|---|---|"
	if several {
		header, rule = header+" Clusters |", rule+"---|"
	}
	w.line(header + "\n" + rule)
	shown := firstOf(&w.page, rows, w.level.notes)
	for _, row := range shown {
		address := ""
		if row.result.Address != "" {
			address = markdown.Code(markdown.Shorten(markdown.OneLine(row.result.Address), 200))
		}
		line := fmt.Sprintf("| %s | %s | %s | %s |", policyIcons[row.result.Severity],
			markdown.Code(markdown.Shorten(markdown.OneLine(row.result.Policy), 100)), address, markdown.ShortText(row.result.Message, 500))
		if several {
			line += " " + names(row.clusters) + " |"
		}
		w.line(line)
	}
	if more := len(rows) - len(shown); more > 0 {
		w.linef("\n%s not shown.", markdown.Plural(more, "more policy result"))
	}
	w.line("")
}
