package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// PlanText returns all of a plan as plain text for a terminal, most dangerous
// first. It is never empty, and nothing in it is shortened.
func PlanText(p holdfast.Plan) string { return planText(p, &painter{}) }

// ColourPlanText is PlanText with ANSI colours.
func ColourPlanText(p holdfast.Plan) string { return planText(p, &painter{colours: true}) }

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	bold   = "\x1b[1m"
	reset  = "\x1b[0m"
)

// painter writes texts for a terminal, and for blocks of code.
type painter struct {
	b       strings.Builder
	colours bool
	limit   int  // characters of a value; 0: all of them
	clipped bool // a value was cut
}

func (p *painter) line(colour, format string, args ...any) {
	s := markdown.Printable(fmt.Sprintf(format, args...))
	if p.colours && colour != "" {
		s = colour + s + reset
	}
	p.b.WriteString(s + "\n")
}

func planText(plan holdfast.Plan, p *painter) string {
	for _, c := range byDanger(plan.Changes) {
		p.change(c)
	}
	for _, o := range plan.OutputChanges {
		p.output(o)
	}
	p.reads(plan.Reads)
	p.outside(plan)
	switch {
	case plan.HasChanges():
		p.line(bold, "Plan: %s.", countsInWords(plan.Counts, false))
	case len(plan.Changes) == 0:
		p.line("", "No changes.")
	}
	return p.b.String()
}

// reads are the values that no change shows.
func (p *painter) reads(reads []holdfast.PlanInput) {
	if len(reads) == 0 {
		return
	}
	p.line("", "Given to provisioners, providers or write-only arguments:")
	for _, r := range reads {
		p.line("", "  %s", visible(r.Address))
		for _, a := range r.Attributes {
			if a.Path == "" {
				a.Path = "value"
			}
			p.attribute(a)
		}
	}
}

// outside is what an apply does not do.
func (p *painter) outside(plan holdfast.Plan) {
	if len(plan.Drift) > 0 {
		p.line(yellow, "Changed outside of the engine:")
		for _, c := range plan.Drift {
			p.line("", "  %s (%s)", visible(c.Address), c.Action)
		}
	}
	for _, d := range plan.Warnings {
		p.line(yellow, "Warning: %s", markdown.OneLine(d.Summary+" "+d.Detail))
	}
}

func (p *painter) output(o holdfast.OutputChange) {
	sign, colour := sign(o.Action, false)
	if len(o.Before)+len(o.After) == 0 {
		p.line(colour, "%s output %s", sign, visible(o.Name))
		return
	}
	a := asAttribute(o)
	a.Path = sign + " output " + o.Name
	p.attributeAt("", colour, a, "")
}

func (p *painter) change(c holdfast.ResourceChange) {
	mark, colour := sign(c.Action, c.CreateFirst)
	suffix := ""
	if c.Importing != "" {
		suffix += " (import of " + visible(c.Importing) + ")"
	}
	if c.PreviousAddress != "" {
		suffix += " (was " + visible(c.PreviousAddress) + ")"
	}
	if why := plain(reasonWords(c.Reason)); why != "" {
		suffix += " (" + why + ")"
	}
	if c.Forgets {
		suffix += " (" + oldOneStays + ")"
	}
	if by := otherProvider(c); by != "" {
		suffix += " (by " + visible(by) + ")"
	}
	p.line(colour, "%s %s%s", mark, visible(c.Address), suffix)
	var nulls []string
	emptied := holdfast.Emptied(c.Attributes)
	for i, a := range c.Attributes {
		forces := forcing(a, c.ReplacePaths)
		switch {
		case isNewNull(a) && !a.Forces:
			nulls = append(nulls, visible(a.Path))
		case emptied[i] && len(a.Before) > 0:
			p.line("", "    %s: %s -> not empty%s", visible(a.Path), a.Before, forces)
		case emptied[i]:
			p.line("", "    %s: not empty -> %s%s", visible(a.Path), a.After, forces)
		default:
			p.attributeAt("    ", "", a, forces)
		}
	}
	if len(nulls) > 0 {
		p.line("", "    set to null: %s", p.clip(strings.Join(nulls, ", "), ""))
	}
	for _, path := range unnamed(c) {
		p.line("", "    %s  # forces replacement", visible(path))
	}
}

// isNewNull reports whether a change says only that a new value has null somewhere: the
// parts of new blocks that nobody has set are such.
func isNewNull(a holdfast.AttributeChange) bool {
	return len(a.Before) == 0 && string(a.After) == "null"
}

// forcing says that an attribute forces a replacement, and for which paths if that is
// not its own alone.
func forcing(a holdfast.AttributeChange, paths []string) string {
	if !a.Forces {
		return ""
	}
	var its []string
	for _, path := range paths {
		if hasPrefixPath(a.Path, path) || hasPrefixPath(path, a.Path) {
			its = append(its, visible(path))
		}
	}
	if len(its) == 0 || len(its) == 1 && its[0] == visible(a.Path) {
		return "  # forces replacement"
	}
	return "  # forces replacement: " + strings.Join(its, ", ")
}

// unnamed are replace paths that belong to no attribute of the change.
func unnamed(c holdfast.ResourceChange) []string {
	var paths []string
	for _, path := range c.ReplacePaths {
		listed := false
		for _, a := range c.Attributes {
			listed = listed || a.Forces && (hasPrefixPath(a.Path, path) || hasPrefixPath(path, a.Path))
		}
		if !listed {
			paths = append(paths, path)
		}
	}
	return paths
}

// hasPrefixPath reports whether path is base or below it.
func hasPrefixPath(path, base string) bool {
	rest, ok := strings.CutPrefix(path, base)
	return ok && (rest == "" || base == "" || rest[0] == '.' || rest[0] == '[')
}

// attribute is one value, or what differs between two: line by line for texts of
// several lines, part by part for texts that are JSON.
func (p *painter) attribute(a holdfast.AttributeChange) { p.attributeAt("    ", "", a, "") }

func (p *painter) attributeAt(indent, colour string, a holdfast.AttributeChange, forces string) {
	const brief = 100
	path, forces := visible(a.Path), secretWords(a)+forces
	long := len(a.Before) > brief || len(a.After) > brief
	if shown(a.Before) && shown(a.After) {
		if parts := structural(a.Before, a.After); long && len(parts) > 0 {
			p.line(colour, "%s%s: in its JSON%s", indent, path, forces)
			for _, part := range parts {
				p.pair("  ", visible(part.Path), part)
			}
			return
		}
		if hunks := lineHunks(a.Before, a.After); len(hunks) > 0 {
			p.line(colour, "%s%s:%s", indent, path, forces)
			p.hunks(hunks)
			return
		}
	}
	switch {
	case len(a.Before) == 0:
		p.line(colour, "%s%s: %s%s", indent, path, p.value(a.After, nil), forces)
	case len(a.After) == 0 && isPart(a.Path):
		p.line(colour, "%s%s: %s -> nothing%s", indent, path, p.value(a.Before, nil), forces)
	case long && shown(a.After) && indent != "":
		p.pair("", path+forces, a)
	default:
		p.line(colour, "%s%s: %s -> %s%s", indent, path, p.value(a.Before, a.After), p.value(a.After, a.Before), forces)
	}
}

// isPart reports whether a path is inside of a value, where nothing is another thing
// than null.
func isPart(path string) bool { return strings.ContainsAny(path, ".[") }

// pair is two values below one another.
func (p *painter) pair(indent, path string, a holdfast.AttributeChange) {
	if len(a.Before) > 0 {
		p.line(red, "-   %s%s: %s", indent, path, p.value(a.Before, a.After))
	}
	if len(a.After) > 0 {
		p.line(green, "+   %s%s: %s", indent, path, p.value(a.After, a.Before))
	}
}

func (p *painter) hunks(hunks []hunk) {
	for _, h := range hunks {
		p.line("", "      @@ line %d @@", h.line)
		seen := map[string]string{}
		side := func(colour, mark string, lines, others []string) {
			for i, line := range lines {
				text := p.clip(line, inPlace(lines, others, i))
				if was, ok := seen[text]; ok && was != line {
					text = hashed(text, line)
				}
				seen[text] = line
				p.line(colour, "%s     %s", mark, text)
			}
		}
		side(red, "-", h.before, h.after)
		side(green, "+", h.after, h.before)
	}
}

// inPlace is the line of the other side of a hunk that is where line i is, counted from
// the first or from the last: the one that is more like it.
func inPlace(lines, others []string, i int) string {
	like, most := "", -1
	for _, k := range []int{i, i + len(others) - len(lines)} {
		if k < 0 || k >= len(others) {
			continue
		}
		if n := firstDifference(lines[i], others[k]); n > most {
			like, most = others[k], n
		}
	}
	return like
}

// value is a value in a text, cut around where it differs from another.
func (p *painter) value(raw, other json.RawMessage) string {
	switch s := string(raw); s {
	case "", "null":
		return "null"
	case sensitiveMark, unknownMark:
		return strings.Trim(s, `"`)
	default:
		if !shown(other) {
			other = nil
		}
		return p.clip(s, string(other))
	}
}

// clip is a text on one line, cut around where it differs from another.
func (p *painter) clip(s, other string) string {
	if p.limit == 0 || len(s) <= p.limit {
		return visible(s)
	}
	p.clipped = true
	return cutApart(s, other, p.limit, visible)
}

func sign(action holdfast.ChangeAction, createFirst bool) (mark, colour string) {
	switch action {
	case holdfast.ActionReplace:
		if createFirst {
			return "+/-", red
		}
		return "-/+", red
	case holdfast.ActionDelete:
		return "-", red
	case holdfast.ActionForget:
		return ".", yellow
	case holdfast.ActionUpdate:
		return "~", yellow
	case holdfast.ActionCreate:
		return "+", green
	default:
		return ">", ""
	}
}
