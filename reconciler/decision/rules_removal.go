package decision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// The rules for a cluster whose document is gone from the tracked branch. What
// is desired then is that nothing is left of what was last applied: plans and
// reviews of that are judged as those of any other change, by the rules that
// follow these.

const (
	// maxDestroyRetries is how often a destroy that failed is retried
	// automatically: clouds refuse to delete what something else has not let go of yet.
	maxDestroyRetries = 3
	// More than massRemovals clusters at once, or, of several, more than one in
	// massRemovalShare, are not destroyed without a person's word.
	massRemovals     = 5
	massRemovalShare = 10
)

// DestroyDigest is what a run that destroys has in place of the digest of its source. It
// stands for "nothing is left" of what was last applied; empty if nothing ever was.
func DestroyDigest(cluster string, last holdfast.Applied) holdfast.Digest {
	if last.Run == "" {
		return ""
	}
	d := holdfast.NewDigester("destruction")
	d.Add(cluster, string(last.SourceDigest))
	return d.Digest()
}

// Desired is what Git asks for: the content of the document, or the destruction
// of what it stood for.
func Desired(in Input) holdfast.Digest {
	if in.Cluster.Desired.Removed {
		return DestroyDigest(in.Cluster.Name, in.Last)
	}
	return in.Cluster.Desired.SourceDigest
}

// ended leaves a cluster alone that is gone.
func ended(in Input) (Decision, bool) {
	return Decision{Action: ActionNone, Reason: holdfast.ReasonDestroyed, Cancel: Pending(in.Runs)}, in.Cluster.Deletion != nil
}

// missing leaves a cluster alone whose document nobody can find, and nobody has
// provably removed.
func missing(in Input) (Decision, bool) {
	why := in.Cluster.Desired.Missing
	d := heldBack(in, holdfast.ReasonMissing, why)
	d.Cancel = Pending(in.Runs)
	return d, why != ""
}

// unseen waits until all that belongs to one push is on record, where clusters
// are judged by one another.
func unseen(in Input) (Decision, bool) {
	together := in.Cluster.Desired.Removed || len(in.Cluster.Desired.Document.DependsOn) > 0
	return Decision{Action: ActionNone, Reason: holdfast.ReasonInProgress}, in.Unseen && together && in.Ask == nil
}

// removed ends what was never there, plans nothing for what is protected, and
// takes back a destroy that was queued and must no longer begin.
func removed(in Input) (Decision, bool) {
	if !in.Cluster.Desired.Removed {
		return Decision{}, false
	}
	if in.Last.Run == "" {
		return Decision{Action: ActionRecord, Reason: holdfast.ReasonNeverApplied, Cancel: Pending(in.Runs)}, true
	}
	reason, detail := Spared(in)
	last := Newest(in.Runs)
	queued := last.Kind == holdfast.RunDestroy && last.Status.Pending()
	d := heldBack(in, reason, detail)
	d.Cancel = Pending(in.Runs)
	return d, reason == holdfast.ReasonProtected || reason != "" && queued
}

// inSafety holds a destroy back that must not begin, whoever asks. That it is
// planned harms nobody.
func inSafety(in Input, d Decision) Decision {
	if d.Action != ActionApply || !in.Cluster.Desired.Removed {
		return d
	}
	reason, detail := Spared(in)
	switch {
	case in.Ask != nil && !in.Ask.PullRequest.IsZero() && !in.Ask.Removes:
		return Decision{Action: ActionRefuse, Reason: holdfast.ReasonPlanMoved, Detail: "it was removed since"}
	case reason == "" && d.Actor == "":
		d.Actor = in.Cluster.Desired.Confirmed
		return d
	case reason == "":
		return d
	case in.Ask != nil && reason == holdfast.ReasonHasDependents && reviewed(in.Merges) != nil && going(in.Dependents):
		// A person's word about many holds until it is this one's turn.
		return Decision{Action: ActionWait, Reason: reason, Detail: detail, Confirmed: in.Ask.Actor}
	default:
		return heldBack(in, reason, detail)
	}
}

// Spared is why a cluster whose document is gone is not destroyed; empty if it
// may be.
func Spared(in Input) (reason holdfast.Reason, detail string) {
	if guardedByDocument(in) {
		return holdfast.ReasonProtected, "its document has to be restored first"
	}
	if left := present(in.Dependents); len(left) > 0 {
		return holdfast.ReasonHasDependents, "waiting for these to be destroyed first: " + strings.Join(left, ", ")
	}
	if many, detail := massRemoval(in); many && !confirmed(in) {
		return holdfast.ReasonMassDeletion, detail
	}
	return "", ""
}

// guardedByDocument reports whether deletion.protected was applied last; or, if
// an apply has failed since, before that: a half-done change takes no guard away.
func guardedByDocument(in Input) bool {
	return in.Last.Document.Deletion.Protected || in.Cluster.Applied.Document.Deletion.Protected
}

// present are the names of the relations that are still there.
func present(relations []holdfast.Relation) []string {
	var names []string
	for _, r := range relations {
		if r.Phase != "" && r.Phase != holdfast.PhaseDeleted {
			names = append(names, r.Name)
		}
	}
	return names
}

// going reports whether all relations that are still there are being removed.
func going(relations []holdfast.Relation) bool {
	return !slices.ContainsFunc(relations, func(r holdfast.Relation) bool {
		return r.Phase != "" && r.Phase != holdfast.PhaseDeleted && r.Phase != holdfast.PhaseDeleting
	})
}

func massRemoval(in Input) (bool, string) {
	n := max(in.Removals, in.Cluster.Desired.RemovedWith)
	fleet := in.Fleet
	if from := in.Cluster.Desired.RemovedFrom; from > 0 {
		fleet = min(fleet, from) // what was applied since makes it no smaller a part
	}
	fleet = max(fleet, n) // some of them may be destroyed already
	many := n > massRemovals || n > 1 && n*massRemovalShare > fleet
	return many, fmt.Sprintf("%d of %d clusters would be destroyed at once: holdfast apply destroys those that are named", n, fleet)
}

// confirmed reports whether a person has asked for this very destroy, or it has
// begun.
func confirmed(in Input) bool {
	asked := in.Ask != nil && in.Ask.Verb == holdfast.VerbApply
	last := Newest(in.Runs)
	given := last.Kind == holdfast.RunDestroy && last.Actor != "" && last.SourceDigest.Equal(Desired(in)) && !GivenUp(last)
	failed := Begun(in)
	return asked || given || in.Cluster.Desired.Confirmed != "" || failed != nil && failed.Kind == holdfast.RunDestroy
}

// failedDestroy tries again, a few times and later each time, whatever the cause
// was; then it plans what is left, for a person.
func failedDestroy(in Input) (Decision, bool) {
	i := slices.IndexFunc(in.Runs, func(run holdfast.Run) bool { return run.Kind != holdfast.RunPlan })
	if !in.Cluster.Desired.Removed || i < 0 {
		return Decision{}, false
	}
	failed := in.Runs[i]
	unfinished := failed.Status == holdfast.RunErrored || failed.Status == holdfast.RunInterrupted
	if failed.Kind != holdfast.RunDestroy || !unfinished || !current(in, failed) || reviewedSince(in, failed) {
		return Decision{}, false
	}
	last := Newest(in.Runs)
	tries := resumes(in)
	held := Decision{Action: ActionWait, Reason: holdfast.ReasonDestroyFailed, Detail: remaining(failed)}
	switch {
	case in.Ask != nil:
		return Decision{}, false
	case i == 0 && tries < maxDestroyRetries && mayGoOn(failed):
		wait := Left(in.Now, failed.FinishedAt, in.Resumes.Backoff<<tries)
		if wait > 0 {
			return Decision{Action: ActionWait, Reason: holdfast.ReasonBackingOff, After: wait, Detail: remaining(failed)}, true
		}
		return Decision{Action: ActionApply, Reason: holdfast.ReasonResumed, Reviews: failed.Reviews, Resume: true, Actor: failed.Actor}, true
	case i == 0, GivenUp(last):
		return Decision{Action: ActionPlan, Reason: holdfast.ReasonDestroyFailed, Reviews: reviews(in)}, true
	case last.Status.Pending():
		return Decision{Action: ActionNone, Reason: holdfast.ReasonInProgress}, true
	case last.Status == holdfast.RunInterrupted:
		return again(in, holdfast.ReasonDestroyFailed), true
	default:
		return held, true
	}
}

// mayGoOn is false after a person has taken the lock away: whether the engine
// still works is unknown.
func mayGoOn(run holdfast.Run) bool {
	return run.Status == holdfast.RunErrored || Transient(run)
}

// remaining says what a failed destroy has left.
func remaining(run holdfast.Run) string {
	if run.Failure == nil || len(run.Failure.Remaining) == 0 {
		return ""
	}
	const shown = 5
	left := run.Failure.Remaining
	text := strings.Join(left[:min(len(left), shown)], ", ")
	if len(left) > shown {
		text += fmt.Sprintf(" and %d more", len(left)-shown)
	}
	return "left in the state: " + text
}
