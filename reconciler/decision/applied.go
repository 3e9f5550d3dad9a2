package decision

import (
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// LastApplied is what was last applied, or what a later apply has begun with and
// not ended well: its resources are in the state as well.
func LastApplied(rec holdfast.ClusterRecord, branch []holdfast.Run) holdfast.Applied {
	for _, run := range branch {
		if run.ID <= max(rec.Applied.Run, rec.Life) {
			break
		}
		if run.Kind == holdfast.RunApply && run.Begun {
			last := AppliedBy(run)
			if last.EngineVersion == "" { // its agent died before it could say
				last.EngineName, last.EngineVersion = rec.Applied.EngineName, rec.Applied.EngineVersion
			}
			return Relocated(last, rec.Desired)
		}
	}
	return Relocated(rec.Applied, rec.Desired)
}

// Repeats reports whether an apply that ended well was of what is on record as applied, and
// no apply of anything else has begun since: it has reverted drift, or found none. No merge
// was in it, so that nobody was asked to meet the conditions of one.
func Repeats(rec holdfast.ClusterRecord, branch []holdfast.Run, run holdfast.Run) bool {
	if rec.Applied.Run == "" || !run.SourceDigest.Equal(rec.Applied.SourceDigest) {
		return false
	}
	return !slices.ContainsFunc(branch, func(other holdfast.Run) bool {
		since := other.ID > max(rec.Applied.Run, rec.Life)
		return since && other.Kind.Writes() && other.Begun && !other.SourceDigest.Equal(rec.Applied.SourceDigest)
	})
}

// Projects are the projects of a cluster: as its document says, as it was applied, and as
// each apply since then that did not end well.
func Projects(rec holdfast.ClusterRecord, branch []holdfast.Run) []string {
	projects := []string{rec.Desired.Document.Project, rec.Applied.Document.Project}
	for _, run := range branch {
		if run.Kind.Writes() && run.Begun && run.ID > max(rec.Applied.Run, rec.Life) {
			projects = append(projects, run.Document.Project)
		}
	}
	return projects
}

// Relocated is what was applied with its state called as it is today: an earlier version
// may have recorded another name. What says which state it is is part of the source, and
// so the state is the same one where that is the same.
func Relocated(last holdfast.Applied, desired holdfast.Desired) holdfast.Applied {
	if last.Migrated || last.Stored != nil || desired.Stored != nil { // the source does not say it
		return last
	}
	named := OtherState(last, desired.StateLocation, desired.Document) || location.Same(last.StateLocation, desired.StateLocation)
	if last.SourceDigest.Equal(desired.SourceDigest) && named {
		last.StateLocation = desired.StateLocation
	}
	return last
}

// AppliedBy is what a cluster's record says after a run has applied.
func AppliedBy(run holdfast.Run) holdfast.Applied {
	return holdfast.Applied{
		Run: run.ID, Revision: run.Revision, SourceDigest: run.SourceDigest, InputDigest: run.InputDigest,
		Bundle: run.Bundle, Dir: run.Dir, StateLocation: run.StateLocation, Stored: run.Stored, Template: run.Template,
		EngineName: run.EngineName, EngineVersion: run.EngineVersion, Document: run.Document, At: run.FinishedAt,
		OutputRoles: run.OutputRoles,
	}
}

// DriftOutline is what a cluster's record alone says of its drift.
func DriftOutline(rec holdfast.ClusterRecord) holdfast.DriftReport {
	report := holdfast.DriftReport{
		Cluster: rec.Name, Document: rec.Applied.Document, State: rec.Drift,
		Template: rec.Applied.Template, Revision: rec.Applied.Revision,
		NotApplied: rec.Desired.SourceDigest != "" && !rec.Desired.SourceDigest.Equal(rec.Applied.SourceDigest),
	}
	if rec.Applied.Run == "" {
		report.Document = rec.Desired.Document
	}
	report.Document.Drift = DriftSettings(rec)
	if report.NotApplied {
		report.Waiting = rec.Waiting
	}
	return report
}

// ReviewedPlan returns the plan that was reviewed among the runs of a cluster in a
// merged pull request, newest first: the last one that people saw of the head, unless
// they saw that it failed. A head that moved at the last moment, before anybody looked,
// brought nothing new if the newest plan is of what is desired now.
func ReviewedPlan(runs []holdfast.Run, pr holdfast.PullRequestRecord, desired holdfast.Digest, removed bool) (holdfast.Run, bool) {
	for _, run := range runs {
		switch {
		case run.Revision != pr.Head || run.Destroy != removed || !shownBeforeMerge(run, pr):
		case run.Status.Good():
			return run, true
		case run.Status != holdfast.RunCanceled: // of which the comment shows the plan before
			return run, false
		}
	}
	last := Newest(runs)
	return last, last.SourceDigest != "" && last.SourceDigest.Equal(desired) && last.Destroy == removed &&
		last.Status.Good() && shownBeforeMerge(last, pr)
}

// shownBeforeMerge reports whether people could see on the forge, when they merged, the
// result of a plan. What an earlier comment has shown is not if the comment at that
// time showed none of the plans.
func shownBeforeMerge(run holdfast.Run, pr holdfast.PullRequestRecord) bool {
	plan := run.Kind == holdfast.RunPlan && !run.Sample
	return plan && !run.PostedAt.IsZero() && !run.PostedAt.After(pr.MergedAt) && !pr.UnshownAt(pr.MergedAt)
}

// AppliedInsteadOf is the number of the pull request whose plan a person had applied by
// run, where that represents an older merge as well, and none of its own plans; zero
// otherwise.
func AppliedInsteadOf(run holdfast.Run, pr holdfast.PullRequestRef) int {
	if run.Actor == "" || run.Shown != "" || !run.Kind.Writes() {
		return 0
	}
	newest := 0
	for _, v := range run.Reviews {
		switch {
		case v.PullRequest == pr && v.Run == "":
			return newest
		case v.PullRequest == pr:
			return 0
		case newest == 0 && v.Run != "":
			newest = v.PullRequest.Number
		}
	}
	return 0
}
