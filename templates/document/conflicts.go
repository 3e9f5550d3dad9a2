package document

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
)

// Conflicts says what is wrong between clusters that are fine one by one:
// names claimed twice, and clusters that depend on one another in a circle. The
// first document with a name, in the order given, has it.
func Conflicts(docs []Document) holdfast.Faults {
	var faults holdfast.Faults
	first := map[string]Document{}
	for _, doc := range docs {
		other, taken := first[doc.Cluster.Name]
		if !taken {
			first[doc.Cluster.Name] = doc
			continue
		}
		faults = append(faults, doc.Fault(
			fmt.Sprintf("the name %q is taken by %s:%d", doc.Cluster.Name, other.Cluster.Path, other.Cluster.Line),
			"names are unique in the fleet", "metadata", "name"))
	}
	edges := map[string][]string{}
	for name, doc := range first {
		edges[name] = doc.Cluster.DependsOn
	}
	for _, cycle := range Cycles(slices.Sorted(maps.Keys(first)), edges) {
		faults = append(faults, first[cycle[0]].Fault(
			"clusters depend on one another in a circle: "+strings.Join(cycle, " → "), "", "spec", "dependsOn"))
	}
	decode.SortFaults(faults)
	return faults
}

// Cycles returns circles of edges, each node in at most one, from the first
// node in order back to itself.
func Cycles(nodes []string, edges map[string][]string) [][]string {
	const open, closed = 1, 2
	state := map[string]int{}
	var stack []string
	var found [][]string
	var visit func(string)
	visit = func(n string) {
		state[n] = open
		stack = append(stack, n)
		for _, next := range edges[n] {
			switch _, known := edges[next]; {
			case !known:
			case state[next] == 0:
				visit(next)
			case state[next] == open:
				from := slices.Index(stack, next)
				found = append(found, append(slices.Clone(stack[from:]), next))
			}
		}
		stack = stack[:len(stack)-1]
		state[n] = closed
	}
	for _, n := range nodes {
		if state[n] == 0 {
			visit(n)
		}
	}
	return found
}
