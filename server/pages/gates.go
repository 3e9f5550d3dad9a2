// What an apply of a pull request requires.

package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

// gateNames is what a page calls a condition of apply.requires.
var gateNames = map[string]string{
	holdfast.GateApproved: "Approved", holdfast.GateMergeable: "Mergeable", holdfast.GatePolicy: "Policies",
	holdfast.GateCost: "Cost", holdfast.GateDestroy: "Approval of the destroy",
}

// clustersInGate is how many clusters a condition names that do not meet it each in its own way.
const clustersInGate = 3

// gates are the conditions of an apply, each once for all clusters that have it, and the merge.
func gates(detail v1.PullRequestDetail) []console.Gate {
	var names []string
	of := map[string][]v1.Gate{}
	for _, g := range detail.Gates {
		if g.Idle {
			continue
		}
		if of[g.Name] == nil {
			names = append(names, g.Name)
		}
		of[g.Name] = append(of[g.Name], g)
	}
	var out []console.Gate
	for _, name := range names {
		out = append(out, gate(name, of[name]))
	}
	if detail.PullRequest.State == holdfast.PullRequestOpen {
		out = append(out, console.Gate{State: console.State{Word: "to come", Icon: "todo", Tone: "faint"}, What: "Merged", Why: "applies follow the merge"})
	}
	return out
}

// gate is one condition: met if all clusters meet it.
func gate(name string, of []v1.Gate) console.Gate {
	one := console.Gate{State: console.State{Word: "met", Icon: "ok", Tone: "ok"}, What: cmp.Or(gateNames[name], words.Sentence(name))}
	var given, lacks []string
	open := slices.DeleteFunc(slices.Clone(of), func(g v1.Gate) bool { return g.Met })
	alike := len(open) == len(of) && !slices.ContainsFunc(open, func(g v1.Gate) bool { return g.Missing != open[0].Missing || g.From != open[0].From })
	for _, g := range of {
		if g.Met {
			given = append(given, g.Given...)
			continue
		}
		missing := words.Unquoted(g.Missing)
		if g.From != "" {
			missing += "; needs " + words.Unquoted(g.From)
		}
		if !alike {
			missing = g.Cluster + ": " + missing
		}
		lacks = append(lacks, missing)
	}
	if len(open) == 0 {
		slices.Sort(given)
		one.Why = strings.Join(slices.Compact(given), ", ")
		return one
	}
	one.State = console.State{Word: "not met", Icon: "guard", Tone: "warn"}
	if !slices.ContainsFunc(open, func(g v1.Gate) bool { return !g.Unknown }) {
		one.State = console.State{Word: "not known", Icon: "wait", Tone: "info"}
	}
	if alike {
		lacks = lacks[:1]
	}
	if more := len(lacks) - clustersInGate; more > 0 {
		lacks = append(lacks[:clustersInGate], fmt.Sprintf("and %d more", more))
	}
	one.Why = strings.Join(lacks, "; ")
	return one
}
