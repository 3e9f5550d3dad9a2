package decision

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// inOrder holds an apply back until the clusters that this one depends on are
// applied, whoever asks.
func inOrder(in Input, d Decision) Decision {
	restores := Desired(in).Equal(in.Cluster.Applied.SourceDigest) && Begun(in) == nil // nothing new depends on the parents
	if d.Action != ActionApply || in.Cluster.Desired.Removed || restores {
		return d
	}
	reason, detail := Held(in.Parents)
	if reason == "" {
		return d
	}
	return heldBack(in, reason, detail)
}

// Held is why something that depends on parents has to wait; empty if it does not.
func Held(parents []holdfast.Relation) (reason holdfast.Reason, detail string) {
	for _, p := range parents {
		switch {
		case p.Phase == "" || p.Phase == holdfast.PhaseDeleted:
			return holdfast.ReasonDependencyMissing, fmt.Sprintf("cluster %q %s", p.Name, missingWord(p))
		case p.Failed:
			return holdfast.ReasonDependencyFailed, relationText(p)
		}
	}
	for _, p := range parents {
		if !p.Settled {
			return holdfast.ReasonDependencyPending, relationText(p)
		}
	}
	return "", ""
}

// missingWord says what became of a cluster that is not there.
func missingWord(p holdfast.Relation) string {
	if p.Waiting != "" {
		return p.Waiting
	}
	return "does not exist"
}

// relationText says what keeps a cluster from being settled, in the words of its reason
// where those are about a cluster.
func relationText(p holdfast.Relation) string {
	switch one := holdfast.Reason(p.Waiting).Info().One; {
	case p.Waiting == "":
		return fmt.Sprintf("%s is %s", p.Name, p.Phase)
	case one != "":
		return fmt.Sprintf("%s %s (%s)", p.Name, one, p.Waiting)
	default:
		return fmt.Sprintf("%s waits (%s)", p.Name, p.Waiting)
	}
}

// Unsettled are the names of the parents whose apply is still to come.
func Unsettled(parents []holdfast.Relation) []string {
	var names []string
	for _, p := range parents {
		if !p.Settled {
			names = append(names, p.Name)
		}
	}
	return names
}

// FormerParents are what the record says of them that follows on before, given the runs of
// the cluster's tracked branch, newest first. What the document has left out just now is
// among them: somebody who has not seen that may queue an apply of the former one.
func FormerParents(before, rec holdfast.ClusterRecord, runs []holdfast.Run) []string {
	if rec.Deletion != nil {
		return nil
	}
	names := slices.Clone(before.Desired.Document.DependsOn)
	for _, run := range runs {
		if run.ID <= max(rec.Applied.Run, rec.Life) {
			break
		}
		if run.Kind.Writes() && (run.Begun || !run.Status.Done()) {
			names = append(names, run.Document.DependsOn...)
		}
	}
	slices.Sort(names)
	known := slices.Concat(rec.Desired.Document.DependsOn, rec.Applied.Document.DependsOn)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return slices.Contains(known, name) })
}

// RelationOf is what a cluster's record means for those that it is related to.
func RelationOf(rec holdfast.ClusterRecord) holdfast.Relation {
	waiting := rec.Waiting
	if rec.Drift.Hold != "" {
		waiting = "" // what Git asks for is applied
	}
	// As Git says, and changed: by an apply of what Git has left meanwhile, or a revert.
	written := rec.Phase == holdfast.PhaseUpdating || rec.Phase == holdfast.PhaseDeleting
	return holdfast.Relation{
		Name: rec.Name, Phase: rec.Phase, Waiting: string(rec.Waiting),
		Settled: waiting == "" && !written && !rec.Desired.Removed && rec.Desired.SourceDigest.Equal(rec.Applied.SourceDigest),
		Failed: rec.Phase == holdfast.PhaseFailed ||
			slices.Contains([]holdfast.Reason{holdfast.ReasonApplyFailed, holdfast.ReasonMayExist, holdfast.ReasonPlanFailed, holdfast.ReasonDestroyFailed, holdfast.ReasonInvalid, holdfast.ReasonDependencyFailed}, rec.Waiting),
	}
}
