package report

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Hunk are lines that differ between two texts.
type Hunk struct {
	Line          int // the first of them, from 1: as it will be
	Before, After []string
}

// Parts returns in which parts two values differ that are objects, lists, or texts of JSON;
// nil if they are not, or have nothing in common.
func Parts(a holdfast.AttributeChange) []holdfast.AttributeChange {
	if !shown(a.Before) || !shown(a.After) {
		return nil
	}
	return structural(a.Before, a.After)
}

// Hunks returns in which lines two texts of several lines differ; nil if they are not.
func Hunks(a holdfast.AttributeChange) []Hunk {
	if !shown(a.Before) || !shown(a.After) {
		return nil
	}
	var out []Hunk
	for _, h := range lineHunks(a.Before, a.After) {
		out = append(out, Hunk{Line: h.line, Before: h.before, After: h.after})
	}
	return out
}

// ReasonText says in words why an engine replaces or deletes a resource, given its
// action_reason.
func ReasonText(reason string) string { return strings.ReplaceAll(plain(reasonWords(reason)), `\`, "") }

// CountsText says in words what an apply has done: "1 replaced, 2 created".
func CountsText(c holdfast.Counts) string { return countsInWords(c, true) }
