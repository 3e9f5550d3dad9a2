package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// stage is where a cluster is, as people see it. The order is that of a
// headline's interest.
type stage int

const (
	stageFailed    stage = iota // something went wrong
	stageHeld                   // a person has to act
	stageWorking                // queued, running, retrying
	stageDone                   // planned with changes, or applied
	stageUnchanged              // nothing to do
	stageLeft                   // removed, or not planned
)

// outcome is a cluster's line.
type outcome struct {
	cluster Cluster
	stage   stage
	icon    string
	result  string          // a few words, Markdown
	reason  holdfast.Reason // held, or working: why
	detail  string          // the reason in a sentence, of others' making
	run     *holdfast.Run   // whose log it is
	plan    *holdfast.Plan  // to be shown
	key     string          // of plan: equal for those that may be shown as one
	counts  holdfast.Counts
	stale   bool            // plan is an earlier one
	broken  bool            // plan was being applied when that failed
	applied bool            // plan has been applied
	destroy bool            // of all of the cluster
	notice  holdfast.Reason // what a merge would wait for
	failure *holdfast.Failure
	failing *holdfast.Run // whose failure it is
}

func (r PullRequest) merged() bool { return r.PullRequest.State == holdfast.PullRequestMerged }

// outcomesOf are those of the clusters that the merge itself moves.
func outcomesOf(r PullRequest) []outcome {
	out := make([]outcome, 0, len(r.Clusters))
	for _, c := range r.Clusters {
		switch {
		case c.Sample: // part of an impact
		case r.merged():
			out = append(out, appliedOutcome(c, r.Now))
		default:
			out = append(out, plannedOutcome(r, c))
		}
	}
	return out
}

// plannedOutcome is what an open pull request says of a cluster.
func plannedOutcome(r PullRequest, c Cluster) outcome {
	o := outcome{cluster: c, run: c.Plan, plan: c.Summary, stale: c.Previous, destroy: c.Removed || destroys(c.Plan)}
	if c.Plan != nil && c.Plan.Status.Done() && c.Plan.Revision != r.PullRequest.Head && r.PullRequest.Head != "" {
		o.stale = true
	}
	switch {
	case hasFault(r.PullRequest.Faults, c.Name):
		o.plan, o.cluster.Document.RenamedFrom = nil, ""
		return o.as(stageFailed, "❌", "has faults")
	case over[c.Waiting] != "" && c.Removed:
		o.plan = nil
		return o.as(stageLeft, "⚪", over[c.Waiting])
	case c.Removed && (c.Waiting == holdfast.ReasonProtected || c.Waiting == holdfast.ReasonMissing):
		return o.held(c.Waiting, c.WaitingDetail)
	case c.Waiting == holdfast.CauseStateUnsaved:
		o.plan = nil
		return o.held(c.Waiting, c.WaitingDetail)
	case c.Waiting == holdfast.ReasonStateWouldMove:
		o.plan, o.notice, o.detail = nil, c.Waiting, c.WaitingDetail
		return o.as(stageLeft, "✋", "not planned: its state would move")
	case c.Removed && c.Plan == nil && r.PullRequest.Reason == "":
		return o.as(stageWorking, "⏳", "removed; waiting for its destroy plan")
	case r.PullRequest.Reason != "" && c.Plan == nil:
		return o.as(stageLeft, "⚪", "not planned")
	case c.Plan == nil:
		return o.as(stageWorking, "⏳", "waits to be planned")
	case !c.Plan.Status.Done():
		return o.working(*c.Plan, "plan", r.Now)
	case c.Plan.Status == holdfast.RunErrored,
		c.Plan.Status == holdfast.RunInterrupted && c.Waiting == holdfast.ReasonPlanFailed: // for good
		return o.failed(*c.Plan, "plan failed")
	case c.Plan.Status == holdfast.RunCanceled && isPassing(c.Plan.Reason), c.Plan.Status == holdfast.RunInterrupted:
		o.stale = true
		return o.as(stageWorking, "⏳", "is planned again: "+reasonOf(orElse(c.Plan.Reason, holdfast.ReasonInterrupted)).Words)
	case c.Plan.Status == holdfast.RunCanceled:
		o.reason, o.stale = holdfast.ReasonCanceled, true
		return o.as(stageHeld, "🚫", "plan canceled")
	case o.stale:
		return o.as(stageWorking, "⏳", "is planned again for "+markdown.Code(r.PullRequest.Head.Short()))
	default:
		switch {
		case c.Plan.Reason == holdfast.ReasonMayExist:
			o.notice, o.detail = c.Plan.Reason, c.Plan.Detail
		case c.Waiting != "" && reasonOf(c.Waiting).Early:
			o.notice, o.detail = c.Waiting, c.WaitingDetail
		}
		return o.changes(c.Plan.Counts, false)
	}
}

// destroys reports whether a run destroys a cluster, or plans that.
func destroys(run *holdfast.Run) bool {
	return run != nil && run.Destroys()
}

// over is the outcome of a cluster whose document is gone, if nothing more is going to
// happen.
var over = map[holdfast.Reason]string{
	holdfast.ReasonNeverApplied: reasonOf(holdfast.ReasonNeverApplied).Words,
	holdfast.ReasonRenamed:      reasonOf(holdfast.ReasonRenamed).Words,
	holdfast.ReasonDestroyed:    "destroyed",
}

// appliedOutcome is the outcome of a cluster after a merge, or a push.
func appliedOutcome(c Cluster, now time.Time) outcome {
	if c.Superseded != "" && c.Apply == nil { // replaced before it was applied
		o := outcome{cluster: c, destroy: c.Removed}
		o.cluster.Document.RenamedFrom = ""
		return o.as(stageLeft, "⚪", markdown.Words("superseded by "+c.Superseded))
	}
	o := applyOutcome(c, now)
	if c.Left != "" && o.stage != stageWorking {
		o.result += "; " + markdown.ShortWords(c.Left, 300)
	}
	if c.Superseded != "" {
		o.reason, o.detail, o.failing = "", "", nil // nobody has to act for it
		o.result += ", " + markdown.Words("superseded by "+c.Superseded)
	}
	return o
}

// settled reports whether an apply failed because it could not save its state, and that
// state was pushed or given up: before, nothing is started on the cluster.
func settled(c Cluster) bool {
	failed, since := c.Failed, c.Apply
	return failed.Failure != nil && failed.Failure.Cause == holdfast.CauseStateUnsaved && c.Waiting != holdfast.CauseStateUnsaved &&
		since != nil && since.ID != failed.ID && !since.StartedAt.IsZero() && !since.StartedAt.Before(failed.FinishedAt)
}

// withoutUnsaved leaves out what can be done about a state that could not be saved: it
// would be refused.
func (o *outcome) withoutUnsaved() {
	failing, failure := *o.failing, *o.failure
	failure.Hint = "the state that the engine could not save was pushed or given up in the meantime: `holdfast describe cluster " + failing.Cluster + "` shows which"
	o.failure = &failure
	known := failure
	known.Cause = "" // for which there are separate commands
	failing.Failure = &known
	o.failing = &failing
}

func applyOutcome(c Cluster, now time.Time) outcome {
	o := outcome{cluster: c, run: c.Apply, plan: c.Applied, destroy: c.Removed || destroys(c.Apply)}
	if o.plan == nil && c.Apply == nil {
		o.plan = c.Summary
	}
	if c.Failed != nil {
		o.failure, o.failing = c.Failed.Failure, c.Failed
		if settled(c) {
			o.withoutUnsaved()
		}
	}
	apply := c.Apply
	switch {
	case apply != nil && apply.Status.Pending() && c.Waiting == holdfast.CauseStateUnsaved:
		return o.held(c.Waiting, c.WaitingDetail)
	case apply != nil && !apply.Status.Done() && c.Waiting == holdfast.ReasonAgentSilent:
		return o.held(c.Waiting, orElse(apply.Detail, c.WaitingDetail))
	case apply != nil && !apply.Status.Done():
		return o.working(*apply, string(kindWord(apply.Kind)), now)
	case apply != nil && apply.Status == holdfast.RunApplied:
		return o.changes(apply.Counts, true)
	case apply != nil && apply.Status == holdfast.RunNoChanges && o.destroy:
		return o.as(stageUnchanged, "✅", "nothing was left to destroy")
	case apply != nil && apply.Status == holdfast.RunNoChanges && apply.Resume:
		// The one before was killed when all was done, and could not say so.
		return o.as(stageDone, "✅", "applied: the interrupted run had completed it")
	case apply != nil && apply.Status == holdfast.RunNoChanges:
		return o.as(stageUnchanged, "✅", "nothing to do")
	case apply != nil && apply.Status == holdfast.RunErrored:
		o = o.failed(*apply, string(kindWord(apply.Kind))+" failed")
		o.reason, o.detail = c.Waiting, c.WaitingDetail
		return o
	case apply != nil && (apply.Status == holdfast.RunInterrupted || apply.Status == holdfast.RunCanceled && apply.Begun && c.Superseded != ""):
		o = o.failed(*apply, string(kindWord(apply.Kind))+" "+string(apply.Status))
		o.reason, o.detail = orElse(c.Waiting, apply.Reason), orElse(c.WaitingDetail, apply.Detail)
		return o
	case apply != nil && c.Waiting == "" && slices.Contains(begun, apply.Reason):
		return o.as(stageWorking, "⏳", "planned; the next step is being decided")
	case apply != nil:
		return o.held(orElse(c.Waiting, apply.Reason), waitingDetail(c))
	case c.Waiting == holdfast.ReasonUpToDate:
		o.plan = nil
		return o.as(stageUnchanged, "✅", "nothing to do: "+reasonOf(c.Waiting).Words)
	case c.Waiting != "":
		return o.held(c.Waiting, c.WaitingDetail)
	case c.Removed:
		return o.as(stageWorking, "⏳", "merged; its destroy is being queued")
	default:
		return o.as(stageWorking, "⏳", "merged; its apply is being queued")
	}
}

// waitingDetail is what there is to say of why the apply of a cluster waits: what the run
// has found, and what the decision after it says.
func waitingDetail(c Cluster) string {
	found, decided := c.Apply.Detail, c.WaitingDetail
	if found == "" || decided == "" || strings.Contains(decided, found) {
		return orElse(decided, found)
	}
	return found + "; " + decided
}

// begun are reasons why a run exists, and not why it waits.
var begun = []holdfast.Reason{"", holdfast.ReasonMerged, holdfast.ReasonApproved, holdfast.ReasonRequested, holdfast.ReasonResumed}

func kindWord(kind holdfast.RunKind) holdfast.RunKind {
	if kind == "" {
		return holdfast.RunApply
	}
	return kind
}

func (o outcome) as(s stage, icon, result string) outcome {
	o.stage, o.icon, o.result = s, icon, result
	return o
}

// working is a run that has not ended.
func (o outcome) working(run holdfast.Run, what string, now time.Time) outcome {
	o.stale = o.plan != nil
	o.reason, o.detail = orElse(o.cluster.Waiting, run.Reason), o.cluster.WaitingDetail
	switch {
	case run.Status == holdfast.RunRetrying:
		o.failure, o.failing = run.Failure, &run
		result := fmt.Sprintf("%s failed and will be retried", what)
		if wait := run.NotBefore.Sub(now); wait > 0 {
			result += " at " + run.NotBefore.UTC().Format("15:04:05 UTC")
		}
		return o.as(stageWorking, "🔁", fmt.Sprintf("%s (attempt %d)", result, run.Attempt+1))
	case run.Status == holdfast.RunRunning && what == "destroy":
		o.stale = false
		return o.as(stageWorking, "⏳", "destroying…")
	case run.Status == holdfast.RunRunning && what == "apply":
		o.stale = false
		return o.as(stageWorking, "⏳", "applying…")
	case run.Status == holdfast.RunRunning:
		return o.as(stageWorking, "⏳", "planning…")
	case o.cluster.Waiting == holdfast.ReasonLocked:
		return o.as(stageWorking, "🔒", fmt.Sprintf("%s waits for %s%s", what, locker(o.cluster), position(o.cluster.Queue)))
	case slices.Contains([]holdfast.Reason{holdfast.ReasonProviderCapped, holdfast.ReasonProviderThrottled, holdfast.ReasonProjectCapped, noAgent}, o.cluster.Waiting):
		return o.as(stageWorking, "⏳", fmt.Sprintf("%s waits: %s", what, reasonOf(o.cluster.Waiting).Words)+because(o.cluster.WaitingDetail))
	default:
		return o.as(stageWorking, "⏳", what+" is queued"+position(o.cluster.Queue))
	}
}

// because is a detail in brackets, in a table.
func because(detail string) string {
	if detail == "" {
		return ""
	}
	return " (" + markdown.ShortWords(detail, 200) + ")"
}

func locker(c Cluster) string {
	if c.WaitingDetail == "" {
		return "another run"
	}
	return markdown.Words(c.WaitingDetail)
}

func position(queue int) string {
	if queue == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s before it)", markdown.Plural(queue, "run"))
}

func (o outcome) failed(run holdfast.Run, result string) outcome {
	before := o.failure
	o.failure, o.failing, o.broken = run.Failure, &run, run.Kind.Writes()
	if before != nil && run.Failure != nil && len(run.Failure.Unrecorded) == 0 { // a plan does not know
		failure := *run.Failure
		failure.Unrecorded, o.failure = before.Unrecorded, &failure
	}
	return o.as(stageFailed, "❌", result)
}

// needs says in a headline how a cluster failed or is held, or what it needs, for one
// and for several clusters.
func (o outcome) needs() (one, many string) {
	r := reasonOf(o.reason)
	switch {
	case o.stage == stageFailed && isPassing(o.reason):
		return "failed and will be retried", "failed and will be retried"
	case o.stage == stageFailed && o.broken && o.run != nil: // failing is nil of what was superseded
		doing, infinitive := "applying", "failed to apply"
		if o.run.Kind == holdfast.RunDestroy {
			doing, infinitive = "being destroyed", "failed to be destroyed"
		}
		if o.run.Status == holdfast.RunInterrupted {
			return "was interrupted while " + doing, "were interrupted while " + doing
		}
		return infinitive, infinitive
	case o.stage == stageFailed:
		return "failed", "failed"
	case r.One == "":
		return "is held", "are held"
	default:
		return r.One, orElse(r.Many, r.One)
	}
}

// held waits for a person, or for something that will pass.
func (o outcome) held(reason holdfast.Reason, detail string) outcome {
	o.reason, o.detail = reason, detail
	if o.plan != nil {
		o.counts = o.plan.Counts
	}
	switch {
	case reason == "":
		return o.as(stageHeld, "✋", "waits")
	case over[reason] != "":
		return o.as(stageLeft, "⚪", over[reason])
	case reasonOf(reason).Effect == holdfast.Passes:
		return o.as(stageWorking, "⏳", "waits: "+reasonOf(reason).Words+because(detail))
	default:
		return o.as(stageHeld, "✋", "held: "+markdown.Text(string(reason)))
	}
}

// changes is a finished plan or apply.
func (o outcome) changes(counts holdfast.Counts, applied bool) outcome {
	if o.plan != nil {
		counts = o.plan.Counts
	}
	o.counts, o.applied = counts, applied
	switch {
	case applied && o.destroy:
		return o.as(stageDone, "✅", "**destroyed**")
	case applied:
		return o.as(stageDone, "✅", "applied")
	case o.destroy && counts.Zero():
		return o.as(stageUnchanged, "⚪", "removed; nothing is left to destroy")
	case o.destroy:
		return o.as(stageDone, "🛑", "**destroys the cluster**")
	case counts.Zero():
		return o.as(stageUnchanged, "⚪", "no changes")
	case counts.Delete > 0 && counts.Replace > 0:
		return o.as(stageDone, "🛑", "destroys and replaces")
	case counts.Delete > 0:
		return o.as(stageDone, "🛑", "destroys")
	case counts.Replace > 0:
		return o.as(stageDone, "🛑", "replaces")
	case counts.Forget > 0:
		return o.as(stageDone, "🛑", "forgets")
	case counts == holdfast.Counts{Outputs: counts.Outputs}:
		return o.as(stageDone, "🔵", "only outputs change")
	default:
		return o.as(stageDone, "🔵", "changes")
	}
}

func isPassing(reason holdfast.Reason) bool { return reasonOf(reason).Effect == holdfast.Passes }

func hasFault(faults holdfast.Faults, cluster string) bool {
	for _, fault := range faults {
		if fault.Cluster == cluster {
			return true
		}
	}
	return false
}

func orElse[S ~string](s, otherwise S) S { return cmp.Or(s, otherwise) }

// shownReason is the reason that people are shown; empty if there is none.
func (o outcome) shownReason() holdfast.Reason {
	if o.stage == stageHeld {
		return o.reason
	}
	return o.notice
}

// total counts outcomes by stage.
type total struct {
	by      map[stage]int
	all     int
	counts  holdfast.Counts
	reasons []holdfast.Reason // of those held, or mentioned, once each
	destroy int               // of stageDone: clusters that are destroyed
}

func totalOf(outcomes []outcome) total {
	t := total{by: map[stage]int{}, all: len(outcomes)}
	seen := map[holdfast.Reason]bool{}
	for _, o := range outcomes {
		t.by[o.stage]++
		if !o.stale {
			t.counts = t.counts.Add(o.counts)
		}
		if o.stage == stageDone && o.destroy {
			t.destroy++
		}
		if reason := o.shownReason(); reason != "" && !seen[reason] {
			seen[reason] = true
			t.reasons = append(t.reasons, reason)
		}
	}
	return t
}
