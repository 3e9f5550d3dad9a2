package report

import (
	"html"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// DriftText returns what the last check of a cluster has found as plain text for
// a terminal.
func DriftText(r holdfast.DriftReport) string {
	p := &painter{}
	p.driftHead(r)
	parts := partsOf(r.Items)
	p.driftItems("Changed outside (as it was applied -> as it is):", parts.changed)
	p.driftItems("Gone:", parts.gone)
	p.driftItems("Inputs changed: data that the code reads from elsewhere (now -> after an apply):", parts.input)
	p.driftItems("Harmless: an apply does not change these:", parts.harmless)
	p.driftItems("Hidden by rules of drift.ignore:", parts.hidden)
	if f := r.Failure; f != nil {
		p.line("", "\nThe check failed:")
		p.b.WriteString(FailureText(holdfast.Run{ID: r.State.Run, Cluster: r.Cluster, Kind: holdfast.RunDrift, Status: holdfast.RunErrored, RunProgress: holdfast.RunProgress{Attempt: 1}, RunOutcome: holdfast.RunOutcome{Failure: f}}))
		return p.b.String()
	}
	if r.NotApplied {
		p.line("", "\nNot drift: %s", unmarked(notAppliedWords(r)))
	}
	p.driftChoices(r)
	return p.b.String()
}

// unmarked is a sentence for a comment without its markup.
func unmarked(s string) string {
	return html.UnescapeString(plain(strings.ReplaceAll(s, "**", "")))
}

func (p *painter) driftHead(r holdfast.DriftReport) {
	s := r.State
	field := func(name, value string) {
		if value = markdown.OneLine(value); value != "" {
			p.line("", "%-9s %s", name+":", value)
		}
	}
	field("Cluster", r.Cluster)
	status := map[holdfast.DriftStatus]string{
		holdfast.DriftUnchecked: "not checked yet", holdfast.DriftNone: "none", holdfast.DriftFound: "drifted", holdfast.DriftFailed: "unknown: the last check failed",
	}[s.Status]
	if s.Failures > 1 {
		status = "unknown: the last " + markdown.Plural(s.Failures, "check") + " failed"
	}
	if s.Status == holdfast.DriftFailed && s.Counts != (holdfast.DriftCounts{}) {
		status += "; before: " + driftPhrase(s.Counts)
	} else if s.Counts != (holdfast.DriftCounts{}) {
		status += ": " + driftPhrase(s.Counts)
	}
	field("Drift", status)
	field("Since", stamp(s.Since))
	checked := stamp(s.CheckedAt)
	if s.Run != "" {
		checked += " by " + s.Run
	}
	field("Checked", checked)
	field("Next", stamp(s.Due))
	field("Applied", unmarked(appliedWords(r)))
	policy := orElse(r.Document.Drift.OnDrift, "report")
	if r.Revert != nil {
		policy += ": " + unmarked(revertOutcome(r, *r.Revert))
	} else if s.Hold != "" {
		policy += ", held: " + unmarked(holdWords(s.Hold))
	}
	field("onDrift", policy)
}

func (p *painter) driftItems(title string, items []holdfast.DriftItem) {
	if len(items) == 0 {
		return
	}
	p.line("", "\n%s", title)
	for _, item := range items {
		line := "  " + driftSign(item) + " " + markdown.OneLine(item.Address)
		switch {
		case item.Ignored != "":
			line += "  (" + markdown.OneLine(item.Ignored) + ")"
		case item.Action != "":
			line += "  (an apply would " + plainApply(item) + ")"
		}
		p.line("", "%s", line)
		if item.Kind == holdfast.DriftGone {
			continue
		}
		for _, a := range item.Attributes {
			p.line("", "      %s: %s -> %s", markdown.OneLine(a.Path), p.value(a.Before, a.After), p.value(a.After, a.Before))
		}
	}
}

// driftSign is what has happened to a resource, as plans show it.
func driftSign(item holdfast.DriftItem) string {
	if item.Kind == holdfast.DriftGone {
		return "-"
	}
	return "~"
}

// plainApply is applyCell without its picture.
func plainApply(item holdfast.DriftItem) string {
	_, words, found := strings.Cut(applyCell(item), " ")
	if !found || item.Action == "" {
		return applyCell(item)
	}
	return strings.ReplaceAll(words, "*", "")
}

func (p *painter) driftChoices(r holdfast.DriftReport) {
	if r.State.Status != holdfast.DriftFound {
		return
	}
	name := markdown.OneLine(r.Cluster)
	row := func(command, does string) {
		p.line("", "  %-*s  %s", len("holdfast drift check "+name), command, does)
	}
	p.line("", "\nWhat you can do:")
	if !reverted(r) && !r.NotApplied {
		does := "reverts it: applies exactly the plan of the last check"
		if r.State.Destroys {
			does += "; which DESTROYS something"
		}
		if r.State.Hides {
			does += "; which also reverts what rules hide"
		}
		if r.Windows != "" {
			does += "; refused for now: its apply windows are " + r.Windows
		}
		row("holdfast apply "+name, does)
	}
	row("holdfast drift check "+name, "checks again")
	if !reverted(r) {
		p.line("", "  or change the code to match what exists, or hide it by a rule of drift.ignore")
	}
}
