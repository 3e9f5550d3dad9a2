package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// descriptionLimit is GitHub's, in characters.
const descriptionLimit = 140

// PlanStatus returns holdfast/plan for the head of a pull request. It is
// pending as long as something is planned, and final after that.
func PlanStatus(r PullRequest) holdfast.CommitStatus {
	pr := r.PullRequest
	open := planned(r)
	state, description := planState(open, r.merged())
	switch {
	case !r.merged() || state != holdfast.StatusPending:
	case plannedBefore(open):
		state, description = holdfast.StatusSuccess, "planned for an earlier head, from which nothing has changed"
	case pr.Result == "" && pr.Base != "":
		state, description = holdfast.StatusFailure, "the merge resolved a conflict; the merged result was not planned beforehand"
	default:
		state, description = holdfast.StatusFailure, "merged before it was planned"
	}
	return r.linked(status(pr.Head, holdfast.ContextPlan, state, description))
}

// planned is a pull request before its merge, without what was changed while merging.
func planned(r PullRequest) PullRequest {
	merged := r.merged()
	r.PullRequest.State = holdfast.PullRequestOpen
	added := make(map[string]bool)
	for _, c := range r.Clusters {
		added[c.Name] = c.Added
	}
	r.Clusters = slices.DeleteFunc(slices.Clone(r.Clusters), func(c Cluster) bool { return c.Added })
	for i, c := range r.Clusters {
		if merged && c.Plan != nil && c.Plan.Status == holdfast.RunCanceled && c.Plan.Reason != holdfast.ReasonCanceled {
			r.Clusters[i].Plan = nil // the merge has ended it, and no person
		}
	}
	r.PullRequest.Faults = slices.DeleteFunc(slices.Clone(r.PullRequest.Faults), func(f holdfast.Fault) bool { return added[f.Cluster] })
	return r
}

// plannedBefore reports whether each cluster that has no plan of the merged head is
// applied by what this pull request has shown of an earlier one: a head that moves
// at the last moment, and changes nothing, is not planned again.
func plannedBefore(open PullRequest) bool {
	reviewed := func(run *holdfast.Run) bool {
		return run != nil && slices.ContainsFunc(run.Reviews, func(review holdfast.Review) bool {
			return review.Run != "" && review.PullRequest == open.PullRequest.PullRequestRef
		})
	}
	return !slices.ContainsFunc(open.Clusters, func(c Cluster) bool {
		return !c.Sample && plannedOutcome(open, c).stage == stageWorking && !reviewed(c.Apply)
	})
}

// linked is a status with its link.
func (r PullRequest) linked(s holdfast.CommitStatus) holdfast.CommitStatus {
	if isLink(r.URL) {
		s.URL = r.URL
	}
	return s
}

// UnseenStatus returns holdfast/plan for the head of a pull request whose comment
// the forge refuses, and why: nobody can review what nobody can see.
func UnseenStatus(r PullRequest, why string) holdfast.CommitStatus {
	return r.linked(status(r.PullRequest.Head, holdfast.ContextPlan, holdfast.StatusError, "the plan cannot be shown, its comment was refused: "+why))
}

// FaultsCheck returns what a check run on the head of a pull request says of its
// documents, and the faults that it shows at their lines: a failure with faults, as
// holdfast/plan is, otherwise a success.
func FaultsCheck(r PullRequest) (holdfast.CommitStatus, holdfast.Faults) {
	faults := distinct(r.PullRequest.Faults)
	if len(faults) == 0 {
		return r.linked(status(r.PullRequest.Head, holdfast.ContextFaults, holdfast.StatusSuccess, "no errors")), nil
	}
	files := make(map[string]bool)
	for _, f := range faults {
		files[f.File] = true
	}
	description := markdown.Plural(len(faults), "error") + " in " + markdown.Plural(len(files), "file")
	return r.linked(status(r.PullRequest.Head, holdfast.ContextFaults, holdfast.StatusFailure, description)), faults
}

// InProgress reports whether a status says that something is being done, which
// ends without anybody's help.
func InProgress(s holdfast.CommitStatus) bool {
	return s.State == holdfast.StatusPending && (strings.HasPrefix(s.Description, planning) || strings.HasPrefix(s.Description, applying))
}

const planning, applying = "planning ", "applying "

// planState is of an open pull request. Samples that a merge came before are no
// longer waited for.
func planState(r PullRequest, merged bool) (holdfast.StatusState, string) {
	pr := r.PullRequest
	outcomes := outcomesOf(r)
	t := totalOf(outcomes)
	impacts := impactsOf(r, outcomes)
	samples, waiting := samplesOf(impacts)
	if merged {
		samples, waiting = 0, 0
	}
	switch {
	case pr.Reason == holdfast.ReasonDraft:
		return holdfast.StatusPending, plain(reasonOf(pr.Reason).Words)
	case pr.Reason == holdfast.ReasonOtherBase:
		return holdfast.StatusSuccess, "nothing to plan: " + plain(reasonOf(pr.Reason).Words)
	case pr.Reason == holdfast.ReasonUnreadable:
		return holdfast.StatusError, plain(reasonOf(pr.Reason).Words) + ": " + pr.Detail
	case pr.Reason != "":
		return holdfast.StatusFailure, plain(reasonOf(pr.Reason).Words)
	case len(outcomes) == 0 && len(pr.Faults) == 0 && len(impacts) == 0 && len(pr.Runners) > 0:
		return holdfast.StatusSuccess, "nothing to plan: changes " + runnersPhrase(pr.Runners)
	case len(outcomes) == 0 && len(pr.Faults) == 0 && len(impacts) == 0 && len(pr.Settings) > 0:
		return holdfast.StatusSuccess, "nothing to plan: " + markdown.List(pr.Settings, 2)
	case len(outcomes) == 0 && len(pr.Faults) == 0 && len(impacts) == 0:
		return holdfast.StatusSuccess, "no cluster affected"
	case unserved(outcomes) != "":
		return holdfast.StatusPending, unserved(outcomes)
	case t.by[stageWorking]+waiting > 0:
		// The comment counts: a status is not written again for each step.
		return holdfast.StatusPending, planning + markdown.Plural(t.all+samples, "cluster")
	case len(pr.Faults) > 0:
		faults := distinct(pr.Faults)
		return holdfast.StatusFailure, fmt.Sprintf("%s: %s: %s", markdown.Plural(len(faults), "error"), faults[0].Position(), faults[0].Message)
	case t.by[stageFailed] > 0:
		return holdfast.StatusFailure, failedDescription(outcomes, "plan failed for ")
	case unfit(impacts):
		return holdfast.StatusFailure, unfitDescription(impacts)
	case t.by[stageHeld] > 0:
		return holdfast.StatusFailure, heldDescription(outcomes)
	case t.counts.Replace+t.counts.Delete+t.counts.Forget > 0 && Unshown(r) != "":
		return holdfast.StatusError, "not reviewed: " + Unshown(r) + "; split the pull request"
	case len(unseenIn(impacts)) > 0:
		return holdfast.StatusError, unseenDescription(unseenIn(impacts))
	case moves(impacts) && len(outcomes) > 0:
		return holdfast.StatusSuccess, gated(outcomes, merged, plannedDescription(t)+"; "+impactWords(impacts, markdown.OneLine))
	case len(impacts) > 0 && len(outcomes) == 0:
		return holdfast.StatusSuccess, impactWords(impacts, markdown.OneLine)
	default:
		return holdfast.StatusSuccess, gated(outcomes, merged, plannedDescription(t))
	}
}

// gated is a description with what an apply will ask for in front of it, and what will
// hold it in any case.
func gated(outcomes []outcome, merged bool, description string) string {
	if held := heldLater(outcomes); held != "" && !merged {
		description = held
	}
	if missing := missingWords(outcomes); missing != "" {
		return missing + "; " + description
	}
	return description
}

// confirmed are the reasons for which a merge whose plan looks like any other waits
// for a person's confirmation.
var confirmed = []holdfast.Reason{holdfast.ReasonMayExist}

// holding are the reasons for which a merge will wait for a person, whatever it brings.
var holding = append([]holdfast.Reason{holdfast.ReasonStateWouldMove}, confirmed...)

// heldLater says which clusters a merge will not be applied to before a person has
// acted, and why; empty if there are none.
func heldLater(outcomes []outcome) string {
	for _, reason := range holding {
		var names []string
		for _, o := range outcomes {
			if o.notice == reason {
				names = append(names, o.cluster.Name)
			}
		}
		if len(names) > 0 {
			return fmt.Sprintf("%s will hold %s: %s", reason, markdown.List(names, 3), plain(reasonOf(reason).Words))
		}
	}
	return ""
}

func plannedDescription(t total) string {
	if t.by[stageDone] == 0 {
		return "no changes in " + markdown.Plural(t.all, "cluster")
	}
	planned := markdown.Plural(t.by[stageDone]+t.by[stageUnchanged], "cluster")
	if t.destroy > 0 {
		planned += fmt.Sprintf(", %d to be destroyed", t.destroy)
	}
	return planned + ": " + countsInWords(t.counts, false)
}

// ApplyStatus returns holdfast/apply for the merge commit; false before the
// merge. It is pending as long as something is queued, applied or waits for a
// person to begin; failure if an apply did not do what was reviewed.
func ApplyStatus(r PullRequest) (holdfast.CommitStatus, bool) {
	pr := r.PullRequest
	if !r.merged() || pr.MergeCommit == "" {
		return holdfast.CommitStatus{}, false
	}
	outcomes := outcomesOf(r)
	state, description := applyState(outcomes)
	if len(outcomes) == 0 && len(r.Impacts) > 0 {
		description = "nothing to apply: clusters move when they name the new version of their template"
	}
	return r.linked(status(pr.MergeCommit, holdfast.ContextApply, state, description)), true
}

// PushStatus returns holdfast/apply for a commit that came to the tracked
// branch without a pull request, and affects clusters.
func PushStatus(rev holdfast.Revision, clusters []Cluster) holdfast.CommitStatus {
	r := PullRequest{Clusters: clusters}
	r.PullRequest.State = holdfast.PullRequestMerged
	state, description := applyState(outcomesOf(r))
	return status(rev, holdfast.ContextApply, state, description)
}

// DocumentsStatus returns holdfast/plan for the head of a tracked branch: the first fault of its
// documents, with its place, and how many there are.
func DocumentsStatus(rev holdfast.Revision, faults holdfast.Faults) holdfast.CommitStatus {
	if len(faults) == 0 {
		return status(rev, holdfast.ContextPlan, holdfast.StatusSuccess, "no errors in documents")
	}
	description := faults[0].Position() + ": " + faults[0].Message
	if len(faults) > 1 {
		description = markdown.Plural(len(faults), "error") + ", first " + description
	}
	return status(rev, holdfast.ContextPlan, holdfast.StatusFailure, description)
}

// DistinctFaults returns faults in their order, each once.
func DistinctFaults(faults holdfast.Faults) holdfast.Faults { return distinct(faults) }

// noAgent is the reason of runs that no living agent executes.
const noAgent = holdfast.ReasonNoAgent

// unserved says that runs wait for an agent; empty if none does.
func unserved(outcomes []outcome) string {
	var names []string
	for _, o := range outcomes {
		if o.stage == stageWorking && o.cluster.Waiting == noAgent {
			names = append(names, o.cluster.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "no living agent for " + markdown.List(names, 3)
}

// queuedBehind says, after a separator, which other clusters are waited for; empty if
// anything is being done here.
func queuedBehind(outcomes []outcome) string {
	var names []string
	words := ""
	for _, o := range outcomes {
		c := o.cluster
		switch {
		case o.stage != stageWorking:
		case c.Waiting == holdfast.ReasonDependencyPending, c.Waiting == holdfast.ReasonHasDependents:
			names = append(names, c.Name)
			words = orElse(words, string(c.Waiting)+": "+orElse(c.WaitingDetail, plain(reasonOf(c.Waiting).Words)))
		default:
			return ""
		}
	}
	return "; " + agree(names, "waits", "wait") + ", " + words
}

// heldForGood are the reasons after which a commit has not been applied and
// will not be automatically: its status is a failure. What only waits to be begun
// is pending.
var heldForGood = map[holdfast.Reason]bool{
	holdfast.ReasonPlanChanged: true, holdfast.ReasonPolicyChanged: true, holdfast.ReasonMayExist: true, holdfast.ReasonApplyFailed: true, holdfast.ReasonPlanFailed: true, holdfast.ReasonCanceled: true, holdfast.ReasonDependencyFailed: true,
	holdfast.ReasonInvalid: true, holdfast.ReasonTimeout: true, holdfast.ReasonLeaseLost: true, holdfast.ReasonEngineKilled: true, holdfast.ReasonAgentKilled: true,
	holdfast.ReasonProtected: true, holdfast.ReasonDestroyFailed: true, holdfast.ReasonMissing: true, holdfast.ReasonDependencyMissing: true, holdfast.ReasonRevertFailed: true,
}

func applyState(outcomes []outcome) (holdfast.StatusState, string) {
	t := totalOf(outcomes)
	forGood := false
	for _, o := range outcomes {
		forGood = forGood || o.stage == stageHeld && heldForGood[o.reason]
	}
	switch {
	case len(outcomes) == 0:
		return holdfast.StatusSuccess, "no cluster affected"
	case unserved(outcomes) != "":
		return holdfast.StatusPending, unserved(outcomes)
	case t.by[stageWorking] > 0:
		return holdfast.StatusPending, applying + markdown.Plural(t.all, "cluster") + queuedBehind(outcomes)
	case t.by[stageFailed] > 0:
		return holdfast.StatusFailure, failedDescription(outcomes, "failed for ")
	case forGood:
		return holdfast.StatusFailure, heldDescription(outcomes)
	case t.by[stageHeld] > 0:
		return holdfast.StatusPending, heldDescription(outcomes)
	case t.by[stageDone] == 0:
		return holdfast.StatusSuccess, "nothing to apply in " + markdown.Plural(t.all, "cluster") + replacedDescription(outcomes, ": ")
	default:
		return holdfast.StatusSuccess, doneWord(t) + ": " + countsInWords(t.counts, true) + replacedDescription(outcomes, "; ")
	}
}

// replacedDescription says what is applied of other merges instead, after a separator;
// empty if nothing is.
func replacedDescription(outcomes []outcome, separator string) string {
	var by []string
	for _, o := range outcomes {
		if o.stage == stageLeft && o.cluster.Superseded != "" && !slices.Contains(by, o.cluster.Superseded) {
			by = append(by, o.cluster.Superseded)
		}
	}
	if len(by) == 0 {
		return ""
	}
	return separator + "superseded by " + markdown.List(by, 3)
}

// doneWord is "applied 2 clusters, destroyed 1".
func doneWord(t total) string {
	applied := t.by[stageDone] - t.destroy
	switch {
	case t.destroy == 0:
		return "applied " + markdown.Plural(applied, "cluster")
	case applied == 0:
		return "destroyed " + markdown.Plural(t.destroy, "cluster")
	default:
		return fmt.Sprintf("applied %s, destroyed %d", markdown.Plural(applied, "cluster"), t.destroy)
	}
}

func failedDescription(outcomes []outcome, verb string) string {
	var failed []string
	cause := ""
	for _, o := range outcomes {
		if o.stage != stageFailed {
			continue
		}
		name := o.cluster.Name
		if o.cluster.Superseded != "" {
			name += " (superseded by " + o.cluster.Superseded + ")"
		}
		failed = append(failed, name)
		if cause == "" && o.failure != nil {
			cause = o.failure.Summary
		}
	}
	description := verb + markdown.List(failed, 3)
	if cause != "" {
		description += ": " + cause
	}
	return description
}

func heldDescription(outcomes []outcome) string {
	reason, all := holdfast.Reason(""), 0
	for _, o := range outcomes {
		if o.stage != stageHeld {
			continue
		}
		if all++; reason == "" || heldForGood[o.reason] && !heldForGood[reason] {
			reason = o.reason
		}
	}
	var held []string
	for _, o := range outcomes {
		if o.stage == stageHeld && o.reason == reason {
			held = append(held, o.cluster.Name)
		}
	}
	description := fmt.Sprintf("%s: %s held, %s", reason, markdown.List(held, 3), plain(reasonOf(reason).Words))
	if reason == holdfast.ReasonCanceled && len(held) > 1 {
		description = fmt.Sprintf("%s: %s held, their runs were canceled", reason, markdown.List(held, 3))
	}
	if reason == "" {
		description = agree(held, "needs someone to look at it", "need someone to look at them")
	}
	if words := heldMissingWords(outcomes, reason); words != "" {
		description = fmt.Sprintf("%s: %s held, %s; %s", reason, markdown.List(held, 3), words, plain(reasonOf(reason).Words))
	}
	if more := all - len(held); more > 0 {
		description += fmt.Sprintf("; %d more for other reasons", more)
	}
	return description
}

// agree puts a verb to clusters, in the singular for one.
func agree(clusters []string, one, many string) string {
	return markdown.List(clusters, 3) + " " + oneOrMany(len(clusters), one, many)
}

// plain takes the markup out of our own words.
func plain(s string) string {
	return strings.NewReplacer("`", "", `\`, "", markdown.ZeroWidth, "").Replace(s)
}

func status(rev holdfast.Revision, context string, state holdfast.StatusState, description string) holdfast.CommitStatus {
	return holdfast.CommitStatus{
		Revision: rev, Context: context, State: state,
		Description: orElse(markdown.Shorten(markdown.OneLine(description), descriptionLimit), string(state)),
	}
}
