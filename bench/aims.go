package main

import (
	"fmt"
	"strconv"
	"strings"
)

// aim bounds a figure from above.
type aim struct {
	name  string
	from  int // the smallest N that it is about
	most  float64
	ratio bool // bounds the ratio, otherwise the value in the figure's unit
}

// aims are what Holdfast is to be as good as. Sandboxes are a part of each run, and the
// floors have none.
var aims = []aim{
	{name: "pull request, " + plainModule.name, from: 10, most: 0.85, ratio: true},
	{name: "pull request, " + providerModule.name, most: 0.62, ratio: true},
	{name: "apply, " + plainModule.name, from: 10, most: 1, ratio: true},
	{name: "apply, " + providerModule.name, from: 10, most: 1, ratio: true},
	{name: planTime + bothOf, most: 10},
	{name: planTime + bothOf, most: 1.2, ratio: true},
	{name: applyTime + bothOf, most: 15},
	{name: applyTime + bothOf, most: 1.2, ratio: true},
	{name: planShown, most: 2},
	{name: applyShown, most: 2},
	{name: besideBigOnes, most: 3, ratio: true}, // twice what it takes alone, and one run more
	{name: pushWithOpen, most: 1.2, ratio: true},
	{name: "pull request" + startsPerCluster, most: 2},
	{name: "merge" + startsPerCluster, most: 3},
	{name: "idle memory of server and agents, proportional", most: 90},
	{name: fleetPrefix + "first start to ready", most: 60},
	{name: fleetPrefix + "start to ready", most: 10},
	{name: fleetPrefix + "memory at rest, resident", most: 1024},
	{name: fleetPrefix + "the same beyond the fetch", most: 50},
	{name: fleetPrefix + "get clusters of a project", most: 10},
	{name: driftPrefix + "pass of the schedule, everything due", most: 100},
	{name: templatePrefix + "pull request on it, to what it would do", most: 10},
}

// aims says which bounds the figure has, and whether it is within them.
func (f figure) aims() string {
	var said []string
	for _, a := range aims {
		if a.name != f.Name || f.N < a.from || a.ratio && f.Floor == 0 {
			continue
		}
		value, bound := f.Value, strings.TrimSpace("≤ "+strconv.FormatFloat(a.most, 'g', -1, 64)+" "+f.Unit)
		if a.ratio {
			value, bound = f.Ratio, fmt.Sprintf("≤ %.2f", a.most)
		}
		verdict := "met"
		if rounded(value) > a.most {
			verdict = "missed"
		}
		said = append(said, bound+" "+verdict)
	}
	return strings.Join(said, ", ")
}
