package decision

import (
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// What the rules ask of an Input.

// Newest is the first of the runs; the zero run if there is none.
func Newest(runs []holdfast.Run) holdfast.Run {
	if len(runs) == 0 {
		return holdfast.Run{}
	}
	return runs[0]
}

// Affected returns what the pull request's merge result says of the cluster.
func Affected(in Input) (holdfast.PullRequestCluster, bool) {
	for _, c := range in.PullRequest.Clusters {
		if c.Name == in.Request.Cluster {
			return c, true
		}
	}
	return holdfast.PullRequestCluster{}, false
}

// proposed is the digest of what the pull request's merge result asks for: empty if it
// has faults, or if what is removed was never applied.
func proposed(in Input) holdfast.Digest {
	c, _ := Affected(in)
	if c.Removed {
		return DestroyDigest(c.Name, in.Last)
	}
	return c.SourceDigest
}

// Conditions are the settings by which the apply of a document waits for people and for
// windows, all of them: its own, and those of what was last applied, or begun. What a change takes away of
// them it cannot take away from its own apply.
func Conditions(document holdfast.Cluster, last ...holdfast.Applied) []holdfast.ApplySettings {
	out := []holdfast.ApplySettings{document.Apply}
	for _, applied := range last {
		if applied.Run != "" {
			out = append(out, applied.Document.Apply)
		}
	}
	return out
}

// Required are the names of what the apply of a document has to meet, and may be there
// several times; lifted are those that only what was last applied, or begun, asks for.
func Required(document holdfast.Cluster, last ...holdfast.Applied) (names, lifted []string) {
	for _, settings := range Conditions(document, last...) {
		names = append(names, settings.Requires...)
	}
	for _, name := range names {
		if !slices.Contains(document.Apply.Requires, name) {
			lifted = append(lifted, name)
		}
	}
	return names, lifted
}

// Terms are what the conditions in Required ask for besides their names: all that the document
// and what was last applied, or begun, ask for.
func Terms(document holdfast.Cluster, last ...holdfast.Applied) (terms holdfast.GateTerms) {
	for _, settings := range Conditions(document, last...) {
		terms = terms.With(settings.Terms)
	}
	return terms
}

// InForce is a document that came to be what is applied without an apply, with the
// conditions of what was last applied, or begun: nobody has met them, so it takes none
// away. Its windows are its own: nobody can meet windows that never open, and they could
// not be changed otherwise.
func InForce(document holdfast.Cluster, last ...holdfast.Applied) holdfast.Cluster {
	names, terms := slices.Clone(document.Apply.Requires), Terms(document, last...)
	for _, settings := range Conditions(document, last...) {
		document.Apply.Manual = document.Apply.Manual || settings.Manual
		for _, name := range settings.Requires {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	document.Apply.Requires, document.Apply.Terms = names, terms
	return document
}

// byHand reports whether a merge is applied only when a person says so.
func byHand(in Input) bool {
	settings := conditions(in)
	return slices.ContainsFunc(settings, func(p holdfast.ApplySettings) bool { return p.Manual })
}

// GivenUp reports whether the run was canceled by what has changed, and not by
// a person: once that is different again, it is made again.
func GivenUp(run holdfast.Run) bool {
	return run.Status == holdfast.RunCanceled && run.Reason != holdfast.ReasonCanceled
}

// unasked returns the newest run, except for plans that a person asked for and got: to
// look is not to decide.
func unasked(runs []holdfast.Run) holdfast.Run {
	for _, run := range runs {
		if run.Kind != holdfast.RunPlan || run.Actor == "" || !run.Status.Done() {
			return run
		}
	}
	return holdfast.Run{}
}

// beforeMerge reports whether the run is a plan of a change of which it was not
// known yet that it had been merged: no pull request shows it.
func beforeMerge(run holdfast.Run) bool {
	return run.Kind == holdfast.RunPlan && run.Actor == "" && len(run.Reviews) == 0
}

// AsGitSays reports whether what was applied last is what is desired, with nothing
// half done since: what differs from it is drift.
func AsGitSays(in Input) bool {
	return Desired(in).Equal(in.Cluster.Applied.SourceDigest) && !in.Cluster.Desired.Removed && Begun(in) == nil
}

// unfinished are the ids of the runs that have not ended.
func unfinished(runs []holdfast.Run) []string {
	return ids(runs, func(s holdfast.RunStatus) bool { return !s.Done() })
}

// Pending are the ids of the runs that nobody executes yet.
func Pending(runs []holdfast.Run) []string {
	return ids(runs, holdfast.RunStatus.Pending)
}

func ids(runs []holdfast.Run, match func(holdfast.RunStatus) bool) []string {
	var out []string
	for _, run := range runs {
		if match(run.Status) {
			out = append(out, run.ID)
		}
	}
	return out
}

// current reports whether run is about the desired content, and later than the
// last apply.
func current(in Input, run holdfast.Run) bool {
	return run.ID != "" && run.SourceDigest.Equal(Desired(in)) && NewerThanApplied(in, run)
}

// NewerThanApplied reports whether run was made after the last applied one, and in the
// cluster's current life: ids sort by their creation time.
func NewerThanApplied(in Input, run holdfast.Run) bool {
	return run.ID > max(in.Cluster.Applied.Run, in.Cluster.Life)
}

// Begun returns the newest apply since the last applied run whose engine had
// begun to apply and did not end well; nil if there is none.
func Begun(in Input) *holdfast.Run {
	for i, run := range in.Runs {
		if !NewerThanApplied(in, run) {
			return nil
		}
		if run.Kind.Writes() && run.Begun && run.Status.Done() && !run.Status.Good() {
			return &in.Runs[i]
		}
	}
	return nil
}

// resumes counts how often the failed apply at the head of the runs was resumed
// automatically, without a break.
func resumes(in Input) int {
	n := 0
	for _, run := range in.Runs {
		if !run.Kind.Writes() || !run.Resume {
			break
		}
		n++
	}
	return n
}

// Transient reports whether what ended the run may not end the next one.
func Transient(run holdfast.Run) bool {
	ended := run.Status == holdfast.RunInterrupted || run.Status == holdfast.RunErrored
	return ended && run.Failure != nil && run.Failure.Transient
}

// again plans once more after a death, with a delay that doubles, and gives up
// in the end: something about this plan may be what kills.
func again(in Input, reason holdfast.Reason) Decision {
	deaths := Deaths(in.Runs)
	if deaths > in.Resumes.Most {
		return Decision{Action: ActionWait, Reason: holdfast.ReasonPlanFailed}
	}
	wait := Left(in.Now, Newest(in.Runs).FinishedAt, in.Resumes.Backoff<<(deaths-1))
	if wait > 0 {
		return Decision{Action: ActionWait, Reason: holdfast.ReasonBackingOff, After: wait}
	}
	return Decision{Action: ActionPlan, Reason: reason, Reviews: Newest(in.Runs).Reviews}
}

// Deaths counts the runs at the head of the list that were interrupted, without
// a break.
func Deaths(runs []holdfast.Run) int {
	n := slices.IndexFunc(runs, func(run holdfast.Run) bool { return run.Status != holdfast.RunInterrupted })
	if n < 0 {
		return len(runs)
	}
	return n
}

// reviewed returns the newest merge that has a reviewed plan; nil if none has.
func reviewed(merges []Merge) *Merge {
	for i := range merges {
		if merges[i].Review.Run != "" {
			return &merges[i]
		}
	}
	return nil
}

// reviewedSince reports whether people have seen and merged a plan that was made after a
// run, or have merged one after the end of a run that changed nothing and did not stand for
// it: how that one ended holds nothing back any longer. The plan of a pull request can be
// older than the run, as it stays good while others of the same content come and go. The
// clocks of the forge and of the server alone do not tell which came first.
func reviewedSince(in Input, run holdfast.Run) bool {
	merge := reviewed(in.Merges)
	if merge == nil {
		return false
	}
	other := !run.Begun && !run.FinishedAt.IsZero() && !run.StandsFor(merge.Review.PullRequest)
	return merge.Review.Run > run.ID || other && merge.At.After(run.FinishedAt)
}

// reviews returns what each of the merges was reviewed with.
func reviews(in Input) []holdfast.Review {
	out := make([]holdfast.Review, 0, len(in.Merges))
	for _, m := range in.Merges {
		out = append(out, m.Review)
	}
	return out
}

// ReviewOf returns the review of a plan as a run has made it.
func ReviewOf(run holdfast.Run) holdfast.Review {
	review := holdfast.Review{
		Run: run.ID, InputDigest: run.InputDigest, Fingerprint: run.Fingerprint, PlanDigest: run.PlanDigest,
	}
	if run.Policies != nil {
		review.Policies = run.Policies.Verdict
	}
	return review
}

// LastBegun is the newest apply or destroy that had begun, however it ended; empty
// if there is none.
func LastBegun(runs []holdfast.Run) string {
	for _, run := range runs {
		if run.Kind.Writes() && run.Begun {
			return run.ID
		}
	}
	return ""
}

// Removes returns whether a cluster of a pull request is the named one, and goes.
func Removes(name string) func(holdfast.PullRequestCluster) bool {
	return func(c holdfast.PullRequestCluster) bool { return c.Name == name && c.Removed }
}
