package show

import (
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// SuspendedWhat says whose runs are suspended.
func SuspendedWhat(cluster, project string) string {
	switch {
	case cluster != "":
		return "cluster " + cluster
	case project != "":
		return "project " + project
	default:
		return "all clusters"
	}
}

// SuspendedBy returns the one of suspensions of many clusters that stops the runs
// of a cluster; nil if none does.
func SuspendedBy(r v1.Cluster, suspensions []v1.Suspension) *v1.Suspension {
	for _, s := range suspensions {
		if s.Cluster == "" && (s.Project == "" || s.Project == documentOf(r).Project) {
			return &s
		}
	}
	return nil
}

// SuspensionText says in a line what is suspended, by whom, and why.
func SuspensionText(p *table.Printer, s v1.Suspension) string {
	out := SuspendedWhat(s.Cluster, s.Project) + " " + IsOrAre(s) + " suspended"
	if s.By != "" {
		out += " by " + s.By
	}
	if !s.At.IsZero() {
		out += " since " + p.When(s.At)
	}
	return table.OneLine(table.Joined(out, s.Reason))
}

// IsOrAre is the verb that fits SuspendedWhat.
func IsOrAre(s v1.Suspension) string {
	if s.Cluster == "" && s.Project == "" {
		return "are"
	}
	return "is"
}
