package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// maxRelatives bounds how many clusters are drawn below one: a network may have
// a thousand dependents.
const maxRelatives = 20

// familyText draws what a cluster depends on above it and what depends on it
// below, each with its own on the far side.
func (a *app) familyText(r v1.Cluster, f v1.Family) string {
	if len(f.Parents)+len(f.Dependents) == 0 {
		return ""
	}
	// Parents are drawn as dependents are, and turned upside down: their own
	// parents are above them.
	above := a.branches(f.Parents, true)
	slices.Reverse(above)
	lines := make([]string, 0, len(above)+1)
	for _, line := range above {
		lines = append(lines, strings.Replace(line, "└─", "┌─", 1))
	}
	lines = append(lines, table.OneLine(r.Name))
	return strings.Join(append(lines, a.branches(f.Dependents, false)...), "\n")
}

func (a *app) branches(relations []v1.Relation, reversed bool) []string {
	shown := relations
	if len(shown) > maxRelatives {
		shown = shown[:maxRelatives]
	}
	shown = slices.Clone(shown)
	if rest := len(relations) - len(shown); rest > 0 {
		shown = append(shown, v1.Relation{Waiting: fmt.Sprintf("… %d more", rest)})
	}
	if reversed {
		slices.Reverse(shown)
	}
	var lines []string
	for i, relation := range shown {
		branch, bar := "├─ ", "│  "
		if i == len(shown)-1 {
			branch, bar = "└─ ", "   "
		}
		lines = append(lines, branch+a.relationText(relation))
		for _, line := range a.branches(relation.Relations, reversed) {
			lines = append(lines, bar+line)
		}
	}
	return lines
}

func (a *app) relationText(r v1.Relation) string {
	if r.Name == "" { // that there are more
		return r.Waiting
	}
	phase := phaseCell(r.Phase)
	if r.Phase == "" {
		phase = table.Cell{Text: "no such cluster", Colour: table.Red}
	}
	out := table.OneLine(r.Name) + "  " + a.Paint(phase.Text, phase.Colour)
	switch {
	case r.Failed && r.Phase != holdfast.PhaseFailed:
		out += ", " + a.Paint("its last run failed", table.Red)
	case r.Failed:
	case !r.Settled && r.Phase != "" && r.Waiting == "":
		out += ", not settled"
	}
	if r.Waiting != "" {
		out += ", waits: " + a.Paint(table.OneLine(r.Waiting), table.Yellow)
	}
	return out
}
