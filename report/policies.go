package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// policyRow is what a policy says of the plans of some clusters.
type policyRow struct {
	policySays
	clusters []string
}

// policySays is one thing that a policy says of a plan.
type policySays struct {
	result holdfast.PolicyResult
	fault  bool
	waived bool // it denies, and does not count
}

// plannedBy is the run whose plan of a cluster is shown, as long as it is to be applied; nil if
// there is none.
func plannedBy(o outcome) *holdfast.Run {
	plan := o.cluster.Planned()
	if shown := o.stage == stageDone || o.stage == stageHeld; !shown || o.applied {
		return nil
	}
	return plan
}

// policyRows are what policies say of all that is planned, the most serious first: what
// several clusters have in common once.
func policyRows(outcomes []outcome) (rows []policyRow) {
	at := make(map[policySays]int)
	add := func(o outcome, result holdfast.PolicyResult, fault bool) {
		says := policySays{result: result, fault: fault, waived: !fault && isWaived(o, result)}
		i, known := at[says]
		if !known {
			i = len(rows)
			at[says], rows = i, append(rows, policyRow{policySays: says})
		}
		rows[i].clusters = append(rows[i].clusters, o.cluster.Name)
	}
	for _, o := range outcomes {
		plan := policyRun(o)
		if plan == nil || o.stage == stageUnchanged {
			continue
		}
		for _, f := range plan.Policies.Faults {
			message := f.Message
			if f.File != "" {
				message = f.Position() + ": " + message
			}
			add(o, holdfast.PolicyResult{Policy: f.Policy, Severity: holdfast.PolicyDeny, Message: "could not be evaluated: " + message}, true)
		}
		for _, id := range plan.Policies.Undecided {
			add(o, holdfast.PolicyResult{Policy: id, Severity: holdfast.PolicyDeny, Message: "undecided"}, true)
		}
		for _, r := range plan.Policies.Results {
			add(o, r, false)
		}
	}
	order := holdfast.PolicySeverities()
	slices.SortStableFunc(rows, func(a, b policyRow) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.result.Severity), slices.Index(order, b.result.Severity)),
			cmp.Compare(strconv.FormatBool(a.waived), strconv.FormatBool(b.waived)),
		)
	})
	return rows
}

// isWaived reports whether a result denies a plan, and does not count.
func isWaived(o outcome, result holdfast.PolicyResult) bool {
	return result.Severity == holdfast.PolicyDeny && slices.Contains(o.cluster.Waived, result.Policy)
}

// policyIcons are what people see of severities.
var policyIcons = map[holdfast.PolicySeverity]string{ //nolint:gochecknoglobals // a constant table
	holdfast.PolicyDeny: "❌ deny", holdfast.PolicyWarn: "⚠️ warn", holdfast.PolicyInfo: "ℹ️ info",
}

// icon is what people see of a row.
func (r policyRow) icon() string {
	if r.waived {
		return "☑️ waived"
	}
	return policyIcons[r.result.Severity]
}

// policyWriter writes what policies say.
type policyWriter struct{ *writer }

// policies lists what policies say of the plans: what denies or warns in a table, what is
// only for information folded away.
func (w policyWriter) policies() {
	rows := policyRows(w.outcomes)
	if len(rows) == 0 {
		return
	}
	grave := slices.IndexFunc(rows, func(r policyRow) bool { return r.result.Severity == holdfast.PolicyInfo })
	if grave < 0 {
		grave = len(rows)
	}
	if grave > 0 {
		w.table(rows[:grave])
	}
	if notes := rows[grave:]; len(notes) > 0 {
		w.linef("<details><summary>ℹ️ %s of policies</summary>\n", markdown.Plural(len(notes), "remark"))
		w.table(notes)
		w.line("</details>\n")
	}
}

func (w policyWriter) table(rows []policyRow) {
	several := w.total.all > 1
	header, rule := "| | Policy | Resource | What it says |", "|---|---|---|---|"
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
		policy := markdown.Code(markdown.Shorten(markdown.OneLine(row.result.Policy), 100))
		if isLink(row.result.Link) {
			policy = "[" + policy + "](" + row.result.Link + ")"
		}
		line := fmt.Sprintf("| %s | %s | %s | %s |", row.icon(), policy, address, markdown.ShortText(row.result.Message, 500))
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

// policyCell is what the policies say of a plan, in a word: empty if there are none, or
// what they say is of an earlier plan.
func policyCell(o outcome) string {
	plan := policyRun(o)
	if plan == nil {
		return ""
	}
	report := plan.Policies
	var parts []string
	if broken := len(report.Faults) + len(report.Undecided); broken > 0 {
		parts = append(parts, fmt.Sprintf("❌ %d could not be decided", broken))
	}
	waived := 0
	for _, result := range report.Results {
		if isWaived(o, result) {
			waived++
		}
	}
	if n := report.Count(holdfast.PolicyDeny) - waived; n > 0 {
		parts = append(parts, fmt.Sprintf("❌ %d %s", n, oneOrMany(n, "denies", "deny")))
	}
	if waived > 0 {
		parts = append(parts, fmt.Sprintf("☑️ %d waived", waived))
	}
	if n := report.Count(holdfast.PolicyWarn); n > 0 {
		parts = append(parts, fmt.Sprintf("⚠️ %d %s", n, oneOrMany(n, "warns", "warn")))
	}
	if len(parts) == 0 && report.Evaluated > 0 {
		return fmt.Sprintf("✅ %d", report.Evaluated)
	}
	return strings.Join(parts, ", ")
}

// policyRun is the run whose plan policies judged, if their results still matter; nil
// if they do not.
func policyRun(o outcome) *holdfast.Run {
	plan := o.cluster.Planned()
	shown := o.stage == stageDone || o.stage == stageHeld || o.stage == stageUnchanged
	if !shown || o.applied || plan == nil || plan.Policies == nil {
		return nil
	}
	return plan
}
