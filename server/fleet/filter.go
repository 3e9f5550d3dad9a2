package fleet

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Filter selects clusters. Zero fields select all.
type Filter struct {
	Projects []string // of these alone; empty: all. Nothing else exists for the caller
	holdfast.ClusterFilter
	Provider string
	Search   string          // in names and labels
	Found    map[string]bool // clusters that match Search otherwise, such as by their resources
}

// dimension is one property that clusters are selected and counted by.
type dimension int

const (
	byProject dimension = iota
	byEnvironment
	byProvider
	byTemplate
	byPhase
	byDrift
	dimensions // how many there are
)

// value is what a cluster has of a dimension.
func (d dimension) value(l *holdfast.ClusterSummary) string {
	switch d {
	case byProject:
		return l.Project
	case byEnvironment:
		return l.Environment
	case byProvider:
		return l.Provider
	case byTemplate:
		return l.Template
	case byPhase:
		return string(l.Phase)
	default:
		return string(l.Drift)
	}
}

// wanted is what a filter wants of it; empty: anything.
func (d dimension) wanted(f *Filter) string {
	return [dimensions]string{f.Project, f.Environment, f.Provider, f.Template, string(f.Phase), string(f.Drift)}[d]
}

// fits reports whether a cluster has what is wanted of a dimension. A template is wanted
// by its name, or with a version.
func (d dimension) fits(l *holdfast.ClusterSummary, want string) bool {
	has := d.value(l)
	return has == want || d == byTemplate && !strings.Contains(want, "@") && strings.HasPrefix(has, want+"@")
}

// sees reports whether a cluster exists for the caller.
func (f *Filter) sees(l *holdfast.ClusterSummary) bool {
	return len(f.Projects) == 0 || slices.Contains(f.Projects, l.Project)
}

// misfits returns in how many dimensions a cluster is not what is wanted, and one of them.
// A cluster with none matches; one with a single misfit counts for the other values of
// that dimension.
func (f *Filter) misfits(l *holdfast.ClusterSummary) (n int, which dimension) {
	for d := range dimensions {
		if want := d.wanted(f); want != "" && !d.fits(l, want) {
			n, which = n+1, d
		}
	}
	return n, which
}

// fitsOtherwise reports whether a cluster matches what is wanted besides the dimensions.
func (f *Filter) fitsOtherwise(l *holdfast.ClusterSummary) bool {
	switch {
	case f.Owner != "" && l.Owner != f.Owner,
		f.Waiting == "*" && l.Waiting == "",
		f.Waiting != "" && f.Waiting != "*" && l.Waiting != f.Waiting,
		len(f.Names) > 0 && !slices.Contains(f.Names, l.Name):
		return false
	}
	for key, value := range f.Labels {
		if l.Labels[key] != value {
			return false
		}
	}
	return f.fitsSearch(l)
}

// fitsSearch reports whether all words of the search are in the name, or in a label.
func (f *Filter) fitsSearch(l *holdfast.ClusterSummary) bool {
	if f.Search == "" || f.Found[l.Name] {
		return true
	}
	for word := range strings.FieldsSeq(strings.ToLower(f.Search)) {
		if strings.Contains(l.Name, word) {
			continue
		}
		labelled := false
		for key, value := range l.Labels {
			labelled = labelled || strings.Contains(strings.ToLower(key+"="+value), word)
		}
		if !labelled {
			return false
		}
	}
	return true
}

// Select returns the lines that match, from behind After on, at most Limit of them; zero:
// all. It copies what it returns.
func (f *Filter) Select(lines []holdfast.ClusterSummary) []holdfast.ClusterSummary {
	from, found := slices.BinarySearchFunc(lines, f.After, func(l holdfast.ClusterSummary, name string) int { return strings.Compare(l.Name, name) })
	if found {
		from++
	}
	var out []holdfast.ClusterSummary
	for i := from; i < len(lines) && (f.Limit == 0 || len(out) < f.Limit); i++ {
		if l := &lines[i]; f.sees(l) && f.fitsOtherwise(l) {
			if n, _ := f.misfits(l); n == 0 {
				out = append(out, *l)
			}
		}
	}
	return out
}
