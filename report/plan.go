package report

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// group is outcomes whose plans do the same.
type group struct {
	outcomes []outcome
	key      string
}

// groupsOf puts together what does the same, names aside, in order of the first.
func groupsOf(outcomes []outcome) []group {
	var groups []group
	at := map[string]int{}
	for _, o := range outcomes {
		if o.plan == nil {
			continue
		}
		key := shapeOf(o)
		if i, ok := at[key]; ok {
			groups[i].outcomes = append(groups[i].outcomes, o)
			continue
		}
		at[key] = len(groups)
		groups = append(groups, group{outcomes: []outcome{o}, key: key})
	}
	return groups
}

// shapeOf is what a plan does without the names that differ between clusters
// of one kind, and without the old values of what becomes known later, such as
// ids.
func shapeOf(o outcome) string {
	type attribute struct{ Path, Before, After string }
	type change struct {
		Address, Previous, Reason string
		Action                    holdfast.ChangeAction
		First                     bool
		Replace                   []string
		Attributes                []attribute
	}
	var changes []change
	for _, c := range append(append([]holdfast.ResourceChange{}, o.plan.Changes...), o.plan.Drift...) {
		shape := change{c.Address, c.PreviousAddress, c.Reason, c.Action, c.CreateFirst, c.ReplacePaths, nil}
		for _, a := range c.Attributes {
			before := string(a.Before)
			if a.Unknown {
				before = ""
			}
			shape.Attributes = append(shape.Attributes, attribute{a.Path, before, string(a.After)})
		}
		changes = append(changes, shape)
	}
	raw, err := json.Marshal([]any{o.stage, o.stale, o.applied, o.broken, o.destroy, o.plan.Counts, len(o.plan.Drift), changes, o.plan.OutputChanges, o.plan.Warnings})
	if err != nil { // cannot be: strings only
		return o.cluster.Name
	}
	key := strings.ReplaceAll(string(raw), o.cluster.Name, "{cluster}")
	if region := o.cluster.Document.Region; region != "" {
		key = strings.ReplaceAll(key, region, "{region}")
	}
	return key
}

func dangerOf(o outcome) int {
	if o.plan == nil || o.applied || o.broken {
		return 0
	}
	danger := 0
	for _, c := range o.plan.Changes {
		if c.Destroys() {
			danger = max(danger, 1+int(c.Danger()))
		}
	}
	return danger
}

// details is the plan of a group, folded.
func (w *writer) details(g group) {
	o := g.outcomes[0]
	plan := o.plan
	changes := plan.HasChanges()
	if w.level.rows == 0 || !changes && (!w.level.unmoved || len(plan.Drift)+len(plan.Warnings) == 0) {
		if changes || len(plan.Drift)+len(plan.Warnings) > 0 {
			w.dropped = true
		}
		return
	}
	open := ""
	if !o.stale && !o.applied && !o.broken && (o.stage == stageHeld || len(w.groups) <= 3) {
		open = " open"
	}
	w.linef("<details%s><summary>%s</summary>\n", open, w.groupTitle(g))
	w.resources(plan)
	w.outputs(plan)
	if changes {
		w.diff(plan)
	}
	w.drift(plan.Drift)
	w.warnings(plan.Warnings)
	w.line("</details>\n")
}

func (w *writer) groupTitle(g group) string {
	o := g.outcomes[0]
	title := "<b>" + htmlText(o.cluster.Name) + "</b>"
	if others := g.outcomes[1:]; len(others) > 0 {
		all := make([]string, len(others))
		for i, other := range others {
			all[i] = "<b>" + htmlText(other.cluster.Name) + "</b>"
		}
		n := len(o.plan.Changes)
		if n == 0 {
			n = o.plan.Counts.Outputs
		}
		title += " ≡ " + list(all, 20) + ": the same " + plural(n, "change")
	}
	counts := countsInWords(o.plan.Counts, o.applied)
	switch {
	case o.stale:
		return "<i>" + title + ": plan of an older commit, not valid any more (" + counts + ")</i>"
	case o.broken && o.destroy:
		return title + ": what was to be destroyed (" + counts + ")"
	case o.broken:
		return title + ": plan whose apply failed (" + counts + ")"
	case o.destroy:
		return title + ": all of it: " + counts
	default:
		return title + ": " + counts
	}
}

// resources is the table of changes, most dangerous first.
func (w *writer) resources(plan *holdfast.Plan) {
	if len(plan.Changes) == 0 {
		return
	}
	w.line("| | Resource | Why |\n|---|---|---|")
	for _, c := range firstOf(&w.page, plan.Changes, w.level.rows) {
		w.linef("| %s | %s | %s |", actionIcon(c.Action), resourceCell(c), whyCell(c))
	}
	if more := len(plan.Changes) - w.level.rows; more > 0 {
		w.linef("\n… and %d more.", more)
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

func resourceCell(c holdfast.ResourceChange) string {
	cell := code(shorten(c.Address, 300))
	if c.PreviousAddress != "" {
		cell = code(shorten(c.PreviousAddress, 300)) + " → " + cell
	}
	if c.Importing != "" {
		cell += " import of " + code(shorten(c.Importing, 100))
	}
	return cell
}

// whyCell is the cause of a replacement, or the first attributes that change.
func whyCell(c holdfast.ResourceChange) string {
	const most = 3
	var parts []string
	if reason := reasonWords(c.Reason); reason != "" {
		parts = append(parts, reason)
	}
	shown := 0
	for _, a := range c.Attributes {
		if c.Action == holdfast.ActionReplace && !a.Forces || c.Action != holdfast.ActionReplace && c.Action != holdfast.ActionUpdate {
			continue
		}
		if shown++; shown > most {
			continue
		}
		part := code(shorten(a.Path, 80))
		if len(a.Before)+len(a.After) > 0 {
			part += " " + valueCell(a.Before) + " → " + valueCell(a.After)
		}
		if a.Forces {
			part += " **forces replacement**"
		}
		parts = append(parts, part)
	}
	if shown > most {
		parts = append(parts, fmt.Sprintf("%d more", shown-most))
	}
	if shown == 0 && c.Action == holdfast.ActionReplace {
		for i, path := range c.ReplacePaths {
			if i < most {
				parts = append(parts, code(shorten(path, 80))+" **forces replacement**")
			}
		}
	}
	if c.Action == holdfast.ActionReplace && c.CreateFirst {
		parts = append(parts, "the new one is created first")
	}
	return strings.Join(parts, ", ")
}

func valueCell(raw json.RawMessage) string {
	switch s := string(raw); s {
	case "", "null":
		return "nothing"
	case `"(sensitive value)"`, `"(known after apply)"`:
		return strings.Trim(s, `"`)
	default:
		return code(shorten(s, 60))
	}
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
}

func reasonWords(reason string) string {
	if words, ok := actionReasons[reason]; ok {
		return words
	}
	return text(shorten(strings.ReplaceAll(reason, "_", " "), 80))
}

func (w *writer) outputs(plan *holdfast.Plan) {
	if len(plan.OutputChanges) == 0 {
		return
	}
	var parts []string
	for _, o := range firstOf(&w.page, plan.OutputChanges, max(w.level.notes, 5)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", code(shorten(o.Name, 100)), text(string(o.Action))))
	}
	w.line("Outputs: " + strings.Join(parts, ", ") + "\n")
}

func (w *writer) diff(plan *holdfast.Plan) {
	if w.level.diffs == 0 {
		w.dropped = true
		return
	}
	diff, ok := w.diffs[plan]
	if !ok {
		diff = diffOf(*plan)
		w.diffs[plan] = diff
	}
	if diff == "" {
		return
	}
	lines := strings.Count(diff, "\n") + 1
	w.linef("<details><summary>Full plan (%s)</summary>\n\n%s\n\n</details>\n", plural(lines, "line"), fenced("diff", w.cut(diff, w.level.diffs)))
}

func (w *writer) drift(drift []holdfast.ResourceChange) {
	if len(drift) == 0 {
		return
	}
	w.linef("<details><summary>ℹ️ %s made outside of the engine</summary>\n", plural(len(drift), "change"))
	for _, c := range firstOf(&w.page, drift, w.level.notes) {
		what := "changed"
		if c.Action == holdfast.ActionDelete {
			what = "is gone"
		}
		var paths []string
		for i, a := range c.Attributes {
			if i < 4 && c.Action == holdfast.ActionUpdate {
				paths = append(paths, code(shorten(a.Path, 80)))
			}
		}
		line := fmt.Sprintf("- %s %s", code(shorten(c.Address, 300)), what)
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

func (w *writer) warnings(warnings []holdfast.Diagnostic) {
	if len(warnings) == 0 {
		return
	}
	w.linef("<details><summary>⚠️ %s</summary>\n", plural(len(warnings), "warning"))
	for _, d := range firstOf(&w.page, warnings, w.level.notes) {
		w.line("- " + diagnosticLine(d, 400))
	}
	if more := len(warnings) - w.level.notes; more > 0 {
		w.linef("- … and %d more", more)
	}
	w.line("\n</details>\n")
}

// maxDiff is how much of a rendering is looked at: many times what fits a
// comment.
const maxDiff = 1 << 20

const planBegins = "will perform the following actions:"

// diffLine is a line of a plan whose sign is not at its beginning.
var diffLine = regexp.MustCompile(`^( +)(-/\+|\+/-|[-+~])( .*|)$`)

// diffOf is the engine's rendering with the signs moved to the first column,
// where forges colour them; our own rendering if there is none.
func diffOf(plan holdfast.Plan) string {
	s := plan.Text
	if i := strings.Index(s, planBegins); i >= 0 {
		s = s[i+len(planBegins):]
	}
	if strings.TrimSpace(s) == "" {
		if len(plan.Changes) == 0 {
			return ""
		}
		s = PlanText(plan)
	}
	if len(s) > maxDiff {
		s = s[:max(strings.LastIndexByte(s[:maxDiff], '\n'), 0)] + "\n… and more than can be shown"
	}
	lines := strings.Split(strings.Trim(printable(s), "\n"), "\n")
	for i, line := range lines {
		if m := diffLine.FindStringSubmatch(line); m != nil {
			lines[i] = m[2] + m[1] + strings.TrimPrefix(m[3], " ")
		}
	}
	return strings.Join(lines, "\n")
}
