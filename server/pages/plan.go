package pages

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

const (
	// changesOnPage is how many resources of a plan are on a page unless all are asked for.
	changesOnPage = 200
	// linesOfChange is how many lines of one resource are.
	linesOfChange = 400
	// openChanges is how many dangerous changes are unfolded.
	openChanges = 5
)

// look is how an action looks.
type look struct{ glyph, tone, word string }

var looks = map[holdfast.ChangeAction]look{
	holdfast.ActionReplace: {"±", "violet", "replace"},
	holdfast.ActionDelete:  {"−", "del", "delete"},
	holdfast.ActionForget:  {"−", "", "forget"},
	holdfast.ActionUpdate:  {"~", "", "change"},
	holdfast.ActionCreate:  {"+", "add", "add"},
	holdfast.ActionImport:  {"→", "", "import"},
	holdfast.ActionMove:    {"→", "", "move"},
}

// planView shows a plan: the most dangerous first, as the API has it. At most most
// resources; zero: all.
func planView(p v1.Plan, prefix string, most int, moreHref string) console.PlanView {
	view := console.PlanView{There: true, Counts: words.CountPills(p.Counts)}
	changes := p.Changes
	if most > 0 && len(changes) > most {
		view.More, view.MoreHref = len(changes)-most, moreHref
		changes = changes[:most]
	}
	for i, c := range changes {
		change := changeView(c, prefix+strconv.Itoa(i))
		change.Open = i < openChanges && (c.Action == holdfast.ActionReplace || c.Action == holdfast.ActionDelete || len(p.Changes) <= openChanges)
		view.Changes = append(view.Changes, change)
	}
	for i, c := range p.Drift {
		if i == changesOnPage {
			break
		}
		view.Outside = append(view.Outside, changeView(c, prefix+"out-"+strconv.Itoa(i)))
	}
	for i, o := range p.OutputChanges {
		view.Outputs = append(view.Outputs, outputView(o, prefix+"output-"+strconv.Itoa(i)))
	}
	for _, d := range p.Warnings {
		view.Warnings = append(view.Warnings, console.Alert{Tone: "warn", Title: d.Summary, Why: d.Detail, Hint: place(d)})
	}
	return view
}

func changeView(c v1.ResourceChange, id string) console.Change {
	l := looks[c.Action]
	change := console.Change{ID: id, Glyph: l.glyph, Tone: l.tone, Word: l.word, Address: c.Address, Why: changeWhy(c)}
	if change.Glyph == "" {
		change.Glyph, change.Word = "·", string(c.Action)
	}
	if c.PreviousAddress != "" {
		change.Notes = append(change.Notes, "Moved from "+c.PreviousAddress)
	}
	if c.Importing != "" {
		change.Notes = append(change.Notes, "Imported: "+c.Importing)
	}
	if c.Forgets {
		change.Notes = append(change.Notes, "The old object is removed from the state, and not destroyed")
	}
	change.Lines = attributeLines(c.Attributes)
	return change
}

// changeWhy says in a few words why there is a change: what forces it, or what changes.
func changeWhy(c v1.ResourceChange) string {
	if len(c.ReplacePaths) > 0 {
		return "forced by " + few(c.ReplacePaths, 2)
	}
	if c.Reason != "" {
		return report.ReasonText(c.Reason)
	}
	if c.Action == holdfast.ActionUpdate {
		var paths []string
		for _, a := range c.Attributes {
			paths = append(paths, a.Path)
		}
		return few(paths, 2)
	}
	return ""
}

// few are the first of some words, and how many more there are.
func few(words []string, most int) string {
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}

func outputView(o v1.OutputChange, id string) console.Change {
	l := looks[o.Action]
	a := v1.AttributeChange{Before: o.Before, After: o.After, Sensitive: o.Sensitive, Unknown: o.Unknown}
	return console.Change{ID: id, Glyph: l.glyph, Tone: l.tone, Word: l.word, Address: o.Name, Lines: attributeLines([]v1.AttributeChange{a})}
}

// attributeLines show what differs, each attribute as it is read best: JSON by its parts,
// texts by their lines, long values whole and below one another.
func attributeLines(attributes []v1.AttributeChange) []console.DiffLine {
	var lines []console.DiffLine
	nulls := 0
	for i, a := range attributes {
		if len(lines) > linesOfChange {
			lines = append(lines, console.DiffLine{Rest: true, Value: fmt.Sprintf("%d more attributes", len(attributes)-i)})
			break
		}
		if len(a.Before) == 0 && string(a.After) == "null" && !a.Forces {
			nulls++ // a part of a new block that nobody has set
			continue
		}
		lines = append(lines, attributeDiff(a)...)
	}
	if nulls > 0 {
		lines = append(lines, console.DiffLine{Rest: true, Value: console.Plural(nulls, "attribute") + " without a value hidden"})
	}
	return lines
}

func attributeDiff(a v1.AttributeChange) []console.DiffLine {
	change := holdfast.AttributeChange{Path: a.Path, Before: a.Before, After: a.After, Sensitive: a.Sensitive, Unknown: a.Unknown, Forces: a.Forces}
	head := a.Path
	if hunks := report.Hunks(change); len(hunks) > 0 {
		lines := []console.DiffLine{{Path: head, Value: forced(a)}}
		for _, h := range hunks {
			lines = append(lines, console.DiffLine{Rest: true, Value: fmt.Sprintf("line %d", h.Line)})
			for _, text := range h.Before {
				lines = append(lines, console.DiffLine{Sign: "-", Value: text})
			}
			for _, text := range h.After {
				lines = append(lines, console.DiffLine{Sign: "+", Value: text})
			}
		}
		return lines
	}
	if parts := report.Parts(change); len(parts) > 0 && len(a.Before)+len(a.After) > 80 {
		lines := []console.DiffLine{{Path: head, Value: "in its JSON" + forced(a)}}
		for _, part := range parts {
			lines = append(lines, pair(strings.TrimPrefix(part.Path, "."), part.Before, part.After, "")...)
		}
		return lines
	}
	return pair(head, a.Before, a.After, forced(a))
}

func forced(a v1.AttributeChange) string {
	if a.Forces {
		return "  # forces replacement"
	}
	return ""
}

// pair is a removed value above the one that replaces it.
func pair(path string, before, after json.RawMessage, note string) []console.DiffLine {
	var lines []console.DiffLine
	if len(before) > 0 {
		lines = append(lines, console.DiffLine{Sign: "-", Path: path, Value: value(before)})
	}
	if len(after) > 0 {
		lines = append(lines, console.DiffLine{Sign: "+", Path: path, Value: value(after) + note})
	}
	return lines
}

// value is JSON as people read it: our words for what is not shown without quotes.
func value(raw json.RawMessage) string {
	switch s := string(raw); s {
	case strconv.Quote(holdfast.SensitiveValue), strconv.Quote(holdfast.UnknownValue):
		return strings.Trim(s, `"`)
	default:
		return s
	}
}

// place is where an engine's message is about.
func place(d v1.Diagnostic) string {
	switch {
	case d.File != "" && d.Line > 0:
		return fmt.Sprintf("%s:%d", d.File, d.Line)
	case d.File != "":
		return d.File
	default:
		return d.Address
	}
}
