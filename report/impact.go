package report

import "github.com/holdfast-dev/holdfast"

// Impact is what a change of a template would do to the clusters that are made
// from it, with the plans that were made to see it.
type Impact struct {
	holdfast.Impact
	// Groups are those of holdfast.Impact with their samples; nil: there are
	// samples among the pull request's clusters only.
	Groups []ImpactGroup
	// Over is how many clusters are in groups of which none is planned, because
	// there are more groups than are planned without being asked for.
	Over int
	All  bool // all clusters that would change are planned, not only samples
}

// ImpactGroup is a group of clusters whose root modules would change in the same
// way.
type ImpactGroup struct {
	holdfast.ImpactGroup
	// Samples are those of its clusters that are planned as trials. Trials of its
	// names among the pull request's clusters are samples too.
	Samples []Cluster
}
