package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// curve is what was measured for several sizes of fleets, the smallest first.
type curve struct {
	name   string
	points []figure
}

// curvesOf takes the figures apart: the curves, each where its first point is,
// and the rest.
func curvesOf(figures []figure) (curves []curve, rest []figure) {
	for _, f := range figures {
		if !isPoint(f.Name) {
			rest = append(rest, f)
			continue
		}
		i := slices.IndexFunc(curves, func(c curve) bool { return c.name == f.Name })
		if i < 0 {
			i = len(curves)
			curves = append(curves, curve{name: f.Name})
		}
		curves[i].points = append(curves[i].points, f)
	}
	return curves, rest
}

// What the names of figures begin with that are points of curves.
const (
	fleetPrefix    = "fleet: "
	driftPrefix    = "drift: "
	templatePrefix = "template: "
)

func isPoint(name string) bool {
	return strings.HasPrefix(name, fleetPrefix) || strings.HasPrefix(name, driftPrefix) || strings.HasPrefix(name, templatePrefix)
}

// growth is by how much a curve grew from its last point but one to the last;
// empty if that is not known.
func (c curve) growth() string {
	n := len(c.points)
	if n < 2 || c.points[n-2].Value <= 0 {
		return ""
	}
	return "× " + number(c.points[n-1].Value/c.points[n-2].Value)
}

// days are when its points were measured, each day once.
func (c curve) days() []string {
	var days []string
	for _, f := range c.points {
		days = append(days, f.Measured)
	}
	slices.Sort(days)
	return slices.Compact(days)
}

func printCurves(out io.Writer, curves []curve) {
	for _, c := range curves {
		line := make([]string, len(c.points))
		for i, f := range c.points {
			line[i] = strconv.Itoa(f.N) + ": " + number(f.Value)
		}
		fmt.Fprintf(out, "%-46s %s %s %s\n", c.name, strings.Join(line, ", "), c.points[0].Unit, c.growth())
	}
}

// markdown returns the curves as the lines of a table with a column for each
// size.
func markdown(curves []curve) []string {
	sizes := make(map[int]bool)
	for _, c := range curves {
		for _, f := range c.points {
			sizes[f.N] = true
		}
	}
	columns := slices.Sorted(maps.Keys(sizes))
	head, rule := "| Of a fleet of |", "|---|"
	for _, n := range columns {
		head, rule = head+" "+strconv.Itoa(n)+" |", rule+"--:|"
	}
	lines := []string{head + " Growth | Floor | Ratio | Aim | On |", rule + "--:|--:|--:|---|---|"}
	for _, c := range curves {
		cells := []string{strings.TrimPrefix(c.name, fleetPrefix)}
		for _, n := range columns {
			i := slices.IndexFunc(c.points, func(f figure) bool { return f.N == n })
			if i < 0 {
				cells = append(cells, "")
				continue
			}
			cells = append(cells, c.points[i].cells()[2])
		}
		last := c.points[len(c.points)-1]
		cells = append(cells, c.growth(), last.cells()[3], last.cells()[4], last.aims(), strings.Join(c.days(), ", "))
		lines = append(lines, "| "+strings.Join(cells, " | ")+" |")
	}
	return lines
}
