package fleet

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Overview is how many clusters there are, by what they have in common.
type Overview struct {
	Total    int // that exist for whoever asks
	Matching int // that the filter selects

	// Of the clusters that match everything else that is wanted.
	Projects, Environments, Providers, Templates, Phases, Drift []Count

	Waiting []holdfast.ClusterSummary // those that wait for a person, whatever the filter; the longest unchanged first
}

// Count is how many clusters have a value.
type Count struct {
	Value string
	N     int
}

// Overview counts lines.
func (f *Filter) Overview(lines []holdfast.ClusterSummary) Overview {
	var o Overview
	var counts [dimensions]map[string]int
	for d := range dimensions {
		counts[d] = map[string]int{}
	}
	for i := range lines {
		l := &lines[i]
		if !f.sees(l) {
			continue
		}
		o.Total++
		if needsPerson(l) {
			o.Waiting = append(o.Waiting, *l)
		}
		if !f.fitsOtherwise(l) {
			continue
		}
		switch n, which := f.misfits(l); n {
		case 0:
			o.Matching++
			for d := range dimensions {
				counts[d][d.value(l)]++
			}
		case 1:
			counts[which][which.value(l)]++
		}
	}
	o.Projects, o.Environments, o.Providers = sorted(counts[byProject]), sorted(counts[byEnvironment]), sorted(counts[byProvider])
	o.Templates, o.Phases, o.Drift = sorted(counts[byTemplate]), sorted(counts[byPhase]), sorted(counts[byDrift])
	slices.SortStableFunc(o.Waiting, func(a, b holdfast.ClusterSummary) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	return o
}

// needsPerson reports whether a cluster waits for a person, and not only for time or
// another cluster.
func needsPerson(l *holdfast.ClusterSummary) bool {
	switch {
	case l.Suspended:
		return false // somebody has decided that
	case l.Waiting != "":
		return l.Waiting.Info().Effect == holdfast.Blocks
	default:
		return l.Phase == holdfast.PhaseFailed
	}
}

// sorted are counts, the most first. What has no value is left out.
func sorted(counts map[string]int) []Count {
	var out []Count
	for value, n := range counts {
		if value != "" {
			out = append(out, Count{Value: value, N: n})
		}
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Value, b.Value)) })
	return out
}
