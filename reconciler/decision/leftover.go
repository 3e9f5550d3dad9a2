package decision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// What applies that died may have created.

// Evidence reads what runs have left besides their records. An answer is false if it
// cannot be read.
type Evidence struct {
	// Creates returns the addresses that the plan of a run creates, in place of others
	// or not.
	Creates func(run string) ([]string, bool)
	// Holds returns the addresses that were in the state when a run had ended.
	Holds func(run string) ([]string, bool)
}

// MayExist returns what an apply of a cluster after runs, the newest first, must not
// create without a person's consent: neither one that continues a failed one, nor one
// that a merge asks for, whose plan was perhaps made before. Where an apply has died,
// what it was creating may exist without being in the state, and what it had created,
// too: the state was perhaps not saved since. If it is not known what it had begun to
// create, all that its plan was to create may exist, and anything if that cannot be
// read.
//
// A resource is settled by an apply of the same source that ended well and has it in the
// state, or by one whose plan reported it to a person, who could look. An apply of
// another source settles nothing, nor does one that no longer has the resource: what an
// apply has in its code may follow from files and data, too. The runs count that are
// later than what is on record, up to a write that has not ended.
//
// It is to be put on record before the runs that it follows from are too old to be read.
func MayExist(rec holdfast.ClusterRecord, runs []holdfast.Run, evidence Evidence) holdfast.Leftover {
	left := rec.Left
	left.Addresses = slices.Clone(left.Addresses)
	for _, run := range slices.Backward(runs) {
		if run.ID <= max(rec.Life, rec.Left.Run) {
			continue
		}
		if run.Kind.Writes() && !run.Status.Done() {
			break
		}
		if !nothing(left) {
			left = settledBy(left, run, runs, evidence)
		}
		if run.Kind.Writes() && run.Begun && died(run) {
			left = withLeft(left, run, evidence)
		}
	}
	slices.Sort(left.Addresses)
	left.Addresses = slices.Compact(left.Addresses)
	return left
}

func nothing(left holdfast.Leftover) bool { return len(left.Addresses) == 0 && !left.Any }

// settledBy is what of left is still unsettled after a run.
func settledBy(left holdfast.Leftover, run holdfast.Run, runs []holdfast.Run, evidence Evidence) holdfast.Leftover {
	drop := func(list []string) {
		left.Addresses = slices.DeleteFunc(left.Addresses, func(address string) bool { return slices.Contains(list, address) })
		left.Run = run.ID
	}
	if settles(run, left) {
		if held, ok := evidence.Holds(run.ID); ok {
			drop(held)
		}
	}
	if toldOf(run, runs) {
		if created, ok := evidence.Creates(run.Shown); ok {
			drop(created)
			left.Any = false // the person who was shown the plan has looked for whatever there is
		}
	}
	if nothing(left) {
		return holdfast.Leftover{Run: left.Run}
	}
	return left
}

// settles reports whether a run was of all of the source that was to be applied when
// something was left, and has ended well: it would have been held if it had created
// something of that. What is in the state then, it has found.
func settles(run holdfast.Run, left holdfast.Leftover) bool {
	whole := run.Kind == holdfast.RunApply && (run.Status == holdfast.RunApplied || run.Status == holdfast.RunNoChanges) ||
		run.Kind == holdfast.RunPlan && run.Status == holdfast.RunNoChanges
	return whole && !run.Destroy && left.Source.Equal(run.SourceDigest)
}

// withLeft adds what a run that died has left.
func withLeft(left holdfast.Leftover, run holdfast.Run, evidence Evidence) holdfast.Leftover {
	list, whole := creations(run)
	if !whole {
		var planned []string
		planned, whole = plannedCreations(run, evidence)
		list = append(list, planned...)
	}
	switch {
	case len(list) == 0 && whole:
		return left
	case nothing(left):
		left.Source = run.SourceDigest
	case !left.Source.Equal(run.SourceDigest):
		left.Source = ""
	}
	left.Addresses, left.Any, left.Run = append(left.Addresses, list...), left.Any || !whole, run.ID
	return left
}

// plannedCreations are the addresses that an apply which had begun can have created at
// most: its plan was one of those that it was compared with, or what remained of one.
func plannedCreations(run holdfast.Run, evidence Evidence) (addresses []string, known bool) {
	for _, review := range ComparedWith(run) {
		creates, ok := evidence.Creates(review.Run)
		if !ok {
			return nil, false
		}
		addresses, known = append(addresses, creates...), true
	}
	return addresses, known
}

// ComparedWith are the plans of which one must be what an apply finds: the one
// that was shown to whoever asked for it, or any that was reviewed.
func ComparedWith(run holdfast.Run) []holdfast.Review {
	var out []holdfast.Review
	for _, review := range run.Reviews {
		if review.Run != "" && (run.Shown == "" || review.Run == run.Shown) {
			out = append(out, review)
		}
	}
	return out
}

// toldOf reports whether the plan that a person has seen, and had applied by a run, has
// said what may exist.
func toldOf(run holdfast.Run, runs []holdfast.Run) bool {
	return run.Kind.Writes() && run.Begun && MayCreate(run) && slices.ContainsFunc(runs, func(shown holdfast.Run) bool {
		return shown.ID == run.Shown && shown.Reason == holdfast.ReasonMayExist
	})
}

// MayCreate reports whether an apply may create what may exist: a person has seen the
// plan that it has to match, which says so, and asked for it.
func MayCreate(run holdfast.Run) bool { return run.Actor != "" && run.Shown != "" && !run.Resume }

// died reports whether the state may not have what a run has made: its engine may not have
// finished, or could not save the state. If that is saved later, the next plan creates
// nothing of it; it may be given up as well.
func died(run holdfast.Run) bool {
	if run.Status == holdfast.RunInterrupted {
		return true
	}
	f := run.Failure
	return f != nil && (len(f.Unrecorded) > 0 || slices.Contains(unrecorded, f.Cause))
}

// unrecorded are the causes of failures of which no state was saved, or it is not known
// whether one was.
var unrecorded = []holdfast.Reason{ //nolint:gochecknoglobals // a constant list
	holdfast.CauseStateUnsaved, holdfast.CauseStateBackend, holdfast.CauseUntrustedPlan, holdfast.CauseInvalidOutcome,
}

// creations are the addresses that a run which died was at, or had created. They are not
// whole if a list is full, if what the engine had said was lost, or if nobody is left who
// could have said it: only an agent that lives knows that its engine had begun nothing.
func creations(run holdfast.Run) (addresses []string, whole bool) {
	f := run.Failure
	if f == nil {
		return nil, false
	}
	addresses = slices.Clone(f.Unrecorded)
	for _, done := range f.Completed {
		if address, ok := strings.CutSuffix(done, holdfast.CreatedSuffix); ok {
			addresses = append(addresses, address)
		}
	}
	told := len(f.Unrecorded)+len(f.Completed) > 0 || run.Reason == holdfast.ReasonEngineKilled ||
		run.Status == holdfast.RunErrored && f.Cause != holdfast.CauseInvalidOutcome
	return addresses, told && !f.ProgressLost && len(f.Unrecorded) < holdfast.MaxCompleted && len(f.Completed) < holdfast.MaxCompleted
}

// LeftText names what may exist, for people; empty if nothing may.
func LeftText(left holdfast.Leftover) string {
	const shown = 10
	switch {
	case nothing(left):
		return ""
	case left.Any:
		return "an apply died, and it is not known what it had created: look for resources that are not in any state"
	}
	names := strings.Join(left.Addresses[:min(len(left.Addresses), shown)], ", ")
	if more := len(left.Addresses) - shown; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return "may exist without being in the state, because an apply died: " + names
}
