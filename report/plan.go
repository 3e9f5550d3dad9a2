package report

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// fullPlan is a plan as text.
type fullPlan struct {
	text    string
	clipped bool // a value in it is cut
}

// group is outcomes whose plans are shown as one.
type group struct {
	outcomes    []outcome
	key         string
	differences []difference
}

// groupsOf puts together what may be shown as one, in order of the first.
func groupsOf(outcomes []outcome) []group {
	var groups []group
	at := map[string]int{}
	for _, o := range outcomes {
		if o.plan == nil {
			continue
		}
		key := o.key
		if i, ok := at[key]; ok {
			groups[i].outcomes = append(groups[i].outcomes, o)
			continue
		}
		at[key] = len(groups)
		groups = append(groups, group{outcomes: []outcome{o}, key: key})
	}
	for i := range groups {
		groups[i].differences = differencesOf(groups[i].outcomes)
	}
	return groups
}

// groupKey is planKey with what else is shown of a plan.
func groupKey(o outcome) string {
	return fmt.Sprint(o.stage, o.stale, o.applied, o.broken, o.destroy) + planKey(o.plan, ownOf(o.cluster))
}

// dangerOf ranks what a plan loses: what is destroyed by what that is, above what is
// forgotten.
func dangerOf(o outcome) int {
	if o.plan == nil || o.applied || o.broken {
		return 0
	}
	danger := 0
	for _, c := range o.plan.Changes {
		switch {
		case c.Destroys():
			danger = max(danger, 2+int(plandiff.DangerOf(c)))
		case loses(c):
			danger = max(danger, 1)
		}
	}
	return danger
}

// details is the plan of a group, folded.
func (w planWriter) details(g group) {
	o := g.outcomes[0]
	plan := o.plan
	changes := plan.HasChanges()
	if w.level.rows == 0 || !changes && (!w.level.unmoved || len(plan.Drift)+len(plan.Warnings) == 0) {
		if changes || len(plan.Drift)+len(plan.Warnings) > 0 {
			w.dropped = true
		}
		return
	}
	if w.alone(o) {
		w.evidence(plan)
		return
	}
	open := ""
	if !o.stale && !o.applied && !o.broken && (o.stage == stageHeld || len(w.groups) <= 3) {
		open = " open"
	}
	w.linef("<details%s><summary>%s</summary>\n", open, w.groupTitle(g))
	w.differences(g.outcomes, g.differences)
	w.evidence(plan)
	w.line("</details>\n")
}

// alone reports whether a plan is the only one, and still to be applied: the headline names
// its cluster and has its counts.
func (w planWriter) alone(o outcome) bool {
	return w.lone() && !o.stale && !o.applied && !o.broken
}

// evidence is all that is shown of a plan.
func (w planWriter) evidence(plan *holdfast.Plan) {
	w.resources(plan)
	w.outputs(plan)
	w.diff(plan)
	w.drift(plan.Drift)
	w.warnings(plan.Warnings)
}

func (w planWriter) groupTitle(g group) string {
	o := g.outcomes[0]
	title := "<b>" + markdown.HTML(o.cluster.Name) + "</b>"
	if n := len(g.outcomes); n > 1 {
		same, names := "the same plan", []string{title + " (shown)"}
		for _, other := range g.outcomes[1:] {
			names = append(names, "<b>"+markdown.HTML(other.cluster.Name)+"</b>")
		}
		if n-1 > aRowEach {
			names = []string{names[0], "others"} // the table names them
		}
		if values := len(g.differences); values > 0 {
			same += " except for " + markdown.Plural(values, "value")
		}
		title = fmt.Sprintf("<b>%d clusters</b> with %s, %s", n, same, markdown.List(names, n))
	}
	counts := countsInWords(o.plan.Counts, o.applied)
	switch {
	case o.stale:
		return "<i>" + title + ": earlier plan, no longer valid (" + counts + ")</i>"
	case o.broken && o.destroy:
		return title + ": what was to be destroyed (" + counts + ")"
	case o.broken:
		return title + ": plan whose apply failed (" + counts + ")"
	case o.destroy:
		return title + ": destroys everything (" + counts + ")"
	default:
		return title + ": " + counts
	}
}

// resources is the table of changes, most dangerous first.
func (w planWriter) resources(plan *holdfast.Plan) {
	if len(plan.Changes) == 0 {
		return
	}
	w.line("| | Resource | Details |\n|---|---|---|")
	rows := changeRows(plan)
	lost, hidden := 0, 0
	for _, row := range rows {
		if loses(row.first) {
			lost++
		}
	}
	most := max(w.level.rows, lost) // what is lost is never cut
	for _, row := range rows[min(len(rows), most):] {
		hidden += len(row.changes)
	}
	for _, row := range firstOf(&w.page, rows, most) {
		cell, all := rowCell(row)
		w.clipped = w.clipped || !all
		w.linef("| %s | %s | %s |", actionIcon(row.first.Action), cell, row.why)
	}
	if hidden > 0 {
		w.linef("\n… and %d more.", hidden)
	}
	w.line("")
}

func actionIcon(action holdfast.ChangeAction) string {
	switch action {
	case holdfast.ActionReplace:
		return "♻️ replace"
	case holdfast.ActionDelete:
		return "🔴 destroy"
	case holdfast.ActionForget:
		return "👋 forget"
	case holdfast.ActionUpdate:
		return "🔵 change"
	case holdfast.ActionCreate:
		return "➕ create"
	case holdfast.ActionImport:
		return "📥 import"
	default:
		return "🚚 move"
	}
}

func resourceCell(c holdfast.ResourceChange) string { return addressCell(c, codeText(c.Address)) }

// addressCell is a resource of which the address is written already.
func addressCell(c holdfast.ResourceChange, cell string) string {
	if c.PreviousAddress != "" {
		cell = codeText(c.PreviousAddress) + " → " + cell
	}
	if c.Importing != "" {
		cell += " import of " + codeText(c.Importing)
	}
	if by := otherProvider(c); by != "" {
		cell += " by " + codeText(by)
	}
	return cell
}

// otherProvider is the provider of a change if it is not the official one of that name:
// its address then says who made it.
func otherProvider(c holdfast.ResourceChange) string {
	name, _, _ := strings.Cut(c.Type, "_")
	for _, usual := range []string{
		"", "terraform.io/builtin/terraform", "registry.terraform.io/hashicorp/" + name, "registry.opentofu.org/hashicorp/" + name,
	} {
		if c.Provider == usual || c.Provider == name {
			return ""
		}
	}
	return c.Provider
}

// oldOneStays is the text for a replacement that forgets the old object.
const oldOneStays = "the old object is removed from the state but not destroyed"

// whyCell is the cause of a replacement, or the first attributes that change.
// What is known only after the apply says the least, and comes last.
func whyCell(c holdfast.ResourceChange) string {
	const most = 3
	var parts []string
	if reason := reasonWords(c.Reason); reason != "" {
		parts = append(parts, reason)
	}
	explaining, later := explainingAttributes(c)
	var elements []string
	explaining, elements = withoutElements(explaining)
	parts = append(parts, elements[:min(len(elements), most)]...)
	hiding := len(elements) - min(len(elements), most)
	for _, a := range explaining[:min(len(explaining), most)] {
		parts = append(parts, attributeCell(a))
	}
	if more := max(len(explaining)-most, 0) + hiding; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if later > 0 {
		parts = append(parts, fmt.Sprintf("%d known after apply", later))
	}
	if len(explaining)+len(elements) == 0 && c.Action == holdfast.ActionReplace {
		for _, path := range c.ReplacePaths[:min(len(c.ReplacePaths), most)] {
			parts = append(parts, codeText(markdown.Shorten(path, 80))+" **forces replacement**")
		}
		if more := len(c.ReplacePaths) - most; more > 0 {
			parts = append(parts, fmt.Sprintf("%d more", more))
		}
	}
	if c.Action == holdfast.ActionReplace && c.CreateFirst {
		parts = append(parts, "the new one is created first")
	}
	if c.Forgets {
		parts = append(parts, oldOneStays)
	}
	return strings.Join(parts, "<br>")
}

// attributeCell is one attribute that changes.
func attributeCell(a holdfast.AttributeChange) string {
	part := codeText(markdown.Shorten(a.Path, 80))
	if cell := changeCell(a).cell; cell != "" {
		part += " " + cell
	}
	if a.Forces {
		part += " **forces replacement**"
	}
	return part
}

// explainingAttributes are those that say why or how a resource changes, and how many
// more become known later.
func explainingAttributes(c holdfast.ResourceChange) (explaining []holdfast.AttributeChange, later int) {
	if c.Action != holdfast.ActionReplace && c.Action != holdfast.ActionUpdate {
		return nil, 0
	}
	var unknown, nulls []holdfast.AttributeChange
	emptied := holdfast.Emptied(c.Attributes)
	for i, a := range c.Attributes {
		switch {
		case c.Action == holdfast.ActionReplace && !a.Forces, emptied[i]:
		case a.Unknown && !a.Forces:
			unknown = append(unknown, a)
		case isNewNull(a) && !a.Forces:
			nulls = append(nulls, a)
		default:
			explaining = append(explaining, a)
		}
	}
	explaining = append(explaining, nulls...)
	if len(explaining) == 0 {
		return unknown, 0
	}
	return explaining, len(unknown)
}

var actionReasons = map[string]string{
	"replace_because_tainted":               "it is tainted",
	"replace_by_request":                    "asked for",
	"replace_by_triggers":                   "triggered by a change of another resource",
	"delete_because_no_resource_config":     "not in the configuration",
	"delete_because_no_module":              "its module is not in the configuration",
	"delete_because_wrong_repetition":       "`count` or `for_each` has changed its kind",
	"delete_because_count_index":            "`count` is smaller",
	"delete_because_each_key":               "its key is not in `for_each`",
	"delete_because_no_move_target":         "moved to where nothing is configured",
	"replace_because_cannot_update":         "",
	"read_because_config_unknown":           "",
	"read_because_dependency_pending":       "",
	"read_because_check_nested":             "",
	"delete_because_removed":                "removed by a `removed` block",
	"forget_because_removed_block_in_state": "removed by a `removed` block",
	holdfast.GoneOutside:                    "gone outside of the engine; it leaves the state",
	holdfast.OtherObject:                    "the address now names another object than in the state",
}

func reasonWords(reason string) string {
	if words, ok := actionReasons[reason]; ok {
		return words
	}
	return markdown.Text(markdown.Shorten(strings.ReplaceAll(reason, "_", " "), 80))
}

// outputs is what becomes of the outputs.
func (w planWriter) outputs(plan *holdfast.Plan) {
	if len(plan.OutputChanges) == 0 {
		return
	}
	all := firstOf(&w.page, plan.OutputChanges, max(w.level.notes, 5))
	parts := make([]string, len(all))
	for i, o := range all {
		parts[i] = codeText(markdown.Shorten(o.Name, 100)) + " " + w.outputWords(o)
	}
	if more := len(plan.OutputChanges) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if len(parts) <= 2 {
		w.line("Outputs: " + strings.Join(parts, ", ") + "\n")
		return
	}
	w.line("Outputs:\n\n- " + strings.Join(parts, "\n- ") + "\n")
}

func (w planWriter) outputWords(o holdfast.OutputChange) string {
	prefix, c := "", changeCell(asAttribute(o))
	switch {
	case o.Action == holdfast.ActionDelete:
		return "is removed"
	case o.Action == holdfast.ActionCreate && len(o.After) > 0:
		prefix, c = "is new: ", sideCell(o.After, nil)
	case o.Action == holdfast.ActionCreate:
		return "is new"
	case len(o.Before)+len(o.After) == 0:
		return "changes"
	}
	w.clipped = w.clipped || c.partial
	return prefix + c.cell
}

func (w planWriter) diff(plan *holdfast.Plan) {
	if len(plan.Changes)+len(plan.Reads) == 0 {
		return // what there is was written above
	}
	if w.level.diffs == 0 {
		w.dropped = true
		return
	}
	diff, ok := w.diffs[plan]
	if !ok {
		p := &painter{limit: diffValue}
		diff.text = strings.TrimSuffix(planText(holdfast.Plan{Counts: plan.Counts, Changes: plan.Changes, OutputChanges: plan.OutputChanges, Reads: plan.Reads}, p), "\n")
		diff.clipped = p.clipped
		w.diffs[plan] = diff
	}
	w.clipped = w.clipped || diff.clipped
	lines := strings.Count(diff.text, "\n") + 1
	text := strings.ReplaceAll("\n"+w.cut(diff.text, w.level.diffs), "\n~ ", "\n! ")[1:] // ~ has no colour in a diff
	w.linef("<details><summary>Full plan (%s)</summary>\n\n%s\n\n</details>\n", markdown.Plural(lines, "line"), markdown.Fenced("diff", text))
}

func (w planWriter) drift(drift []holdfast.ResourceChange) {
	if len(drift) == 0 {
		return
	}
	w.linef("<details><summary>ℹ️ %s made outside of the engine</summary>\n", markdown.Plural(len(drift), "change"))
	for _, c := range firstOf(&w.page, drift, w.level.notes) {
		what := "changed"
		if c.Action == holdfast.ActionDelete {
			what = "is gone"
		}
		var paths []string
		for i, a := range c.Attributes {
			if i < 4 && c.Action == holdfast.ActionUpdate {
				paths = append(paths, codeText(markdown.Shorten(a.Path, 80)))
			}
		}
		line := fmt.Sprintf("- %s %s", codeText(markdown.Shorten(c.Address, 300)), what)
		if len(paths) > 0 {
			line += ": " + strings.Join(paths, ", ")
		}
		w.line(line)
	}
	if more := len(drift) - w.level.notes; more > 0 {
		w.linef("- … and %d more", more)
	}
	w.line("\n</details>\n")
}

func (w planWriter) warnings(warnings []holdfast.Diagnostic) {
	if len(warnings) == 0 {
		return
	}
	w.linef("<details><summary>⚠️ %s</summary>\n", markdown.Plural(len(warnings), "warning"))
	for _, d := range firstOf(&w.page, warnings, w.level.notes) {
		w.line("- " + diagnosticLine(d, 400))
	}
	if more := len(warnings) - w.level.notes; more > 0 {
		w.linef("- … and %d more", more)
	}
	w.line("\n</details>\n")
}

// diffValue is how much of one value is in the full plan of a comment.
const diffValue = 2000
