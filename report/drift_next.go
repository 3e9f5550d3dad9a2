package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// ruleLasts is how long a rule that we propose hides drift, from when that was found:
// long enough for an exception, too short to be forgotten.
const ruleLasts = 90 * 24 * time.Hour

// next is what happens automatically, and what people can choose.
func (d *driftWriter) next() {
	r := d.r
	d.line("**What happens next:** " + onDriftWords(r) + "\n")
	if reverted(r) {
		return
	}
	d.linef("- **Revert it:** %s", revertWords(r))
	d.line("- **Keep it:** change the code to match what exists, and merge that.")
	d.linef("- **Check again:** %s", markdown.Code("holdfast drift check "+markdown.Shorten(r.Cluster, 63)))
	if snippet := d.rules(); snippet != "" {
		d.line("- **Ignore it:** add rules to the cluster's document, such as:\n\n" + markdown.Fenced("yaml", snippet))
	}
	d.line("\nThis issue is closed when a check no longer finds drift.\n")
}

// reverted reports whether an apply has just reverted what is shown, or does so now.
func reverted(r holdfast.DriftReport) bool {
	return r.Revert != nil && !back(r) && (r.Revert.Status == holdfast.RunApplied || !r.Revert.Status.Done())
}

// back reports whether the drift was there again after it had been reverted.
func back(r holdfast.DriftReport) bool {
	run := r.Revert
	found := r.State.Status == holdfast.DriftFound
	return found && run != nil && run.Status == holdfast.RunApplied && (r.State.Hold == string(holdfast.ReasonRevertFailed) || r.State.CheckedAt.After(run.FinishedAt))
}

func revertWords(r holdfast.DriftReport) string {
	if r.NotApplied {
		return "the pending change is applied first; its apply reverts the drift as well, as its plan shows."
	}
	words := markdown.Code("holdfast apply "+markdown.Shorten(r.Cluster, 63)) + " applies exactly the plan of the last check"
	if r.State.Hides {
		words += "; **which also reverts what rules hide**"
	}
	if r.State.Destroys {
		words += "; **which destroys, see above**"
	}
	if len(r.Document.Apply.Windows) > 0 {
		words += "; only within the cluster's apply windows"
	}
	return words + "."
}

// onDriftWords says what onDrift has caused, or will.
func onDriftWords(r holdfast.DriftReport) string {
	run := r.Revert
	byItself := r.Document.Drift.OnDrift == "apply"
	switch {
	case run != nil:
		return revertOutcome(r, *run)
	case byItself && r.NotApplied:
		return "it is not reverted automatically, despite `onDrift: apply`: a pending change has to be applied first."
	case byItself && r.State.Hold != "":
		return "it is not reverted automatically, despite `onDrift: apply`: " + holdWords(r.State.Hold) + "."
	case byItself:
		return "it is reverted automatically (`onDrift: apply`) as soon as the cluster's apply windows allow it."
	default:
		return "nothing automatically (`onDrift: report`). What you can do:"
	}
}

// holdWords are a reason in words, or what was written in place of one.
func holdWords(hold string) string {
	if reason := holdfast.Reason(hold); reason.Known() {
		return reason.Info().Words + " (" + markdown.Text(hold) + ")"
	}
	return markdown.ShortWords(hold, 1000)
}

// revertWords says how the apply that was to revert the drift ended.
func revertOutcome(r holdfast.DriftReport, run holdfast.Run) string {
	who := markdown.Code(markdown.Shorten(run.ID, 60)) + byWhom(run)
	switch {
	case !run.Status.Done():
		return who + " is reverting it."
	case back(r):
		return who + " reverted it" + endedOn(run) + ", and a later check found the same drift again: something outside of Holdfast causes it." + againWords(r)
	case run.Status == holdfast.RunApplied && r.State.Status == holdfast.DriftNone:
		return who + " reverted it" + endedOn(run) + "."
	case run.Status == holdfast.RunApplied:
		return who + " reverted it" + endedOn(run) + ": the next check will confirm it."
	case run.Status == holdfast.RunNoChanges:
		return who + " found nothing to revert" + endedOn(run) + ": the next check will confirm it."
	case run.Status == holdfast.RunPlanned:
		return who + " was queued to revert it and did not start" + whyRun(run) + "."
	case run.Failure != nil:
		s := who + " tried to revert it and failed" + endedOn(run) + ": " + failurePlace(*run.Failure) + markdown.ShortText(run.Failure.Summary, 500) + "."
		if run.Failure.Hint != "" {
			s += " " + sentence("What to do: "+markdown.ShortHint(run.Failure.Hint, 500))
		}
		return s + againWords(r)
	default:
		return who + " was queued to revert it and ended " + markdown.Text(string(run.Status)) + whyRun(run) + "." + againWords(r)
	}
}

func againWords(r holdfast.DriftReport) string {
	if r.Document.Drift.OnDrift != "apply" {
		return ""
	}
	return " The same drift is reverted automatically only once: someone has to decide now."
}

// byWhom says who asked for a run.
func byWhom(run holdfast.Run) string {
	if run.Actor == "" {
		return " (`onDrift: apply`)"
	}
	return " (requested by " + markdown.ShortText(run.Actor, 60) + ")"
}

func endedOn(run holdfast.Run) string {
	if run.FinishedAt.IsZero() {
		return ""
	}
	return " on " + stamp(run.FinishedAt)
}

func whyRun(run holdfast.Run) string {
	switch {
	case run.Reason != "" && run.Detail != "":
		return fmt.Sprintf(": %s: %s", reasonOf(run.Reason).Words, markdown.ShortWords(run.Detail, 500))
	case run.Reason != "":
		return ": " + reasonOf(run.Reason).Words
	default:
		return ""
	}
}

// rules proposes drift.ignore for the first of what has drifted; empty if
// nothing is to be hidden.
func (d *driftWriter) rules() string {
	const most = 3
	var rules []string
	for _, item := range d.parts.drifted() {
		attributes := item.Attributes
		if item.Kind == holdfast.DriftGone || len(attributes) == 0 {
			attributes = []holdfast.AttributeChange{{}} // the whole resource
		}
		for _, a := range attributes {
			if len(rules) == most || len(item.Address)+len(a.Path) > 400 {
				break
			}
			rules = append(rules, d.rule(item.Address, a.Path))
		}
	}
	if len(rules) == 0 || d.level.rows == 0 {
		return ""
	}
	return "spec:\n  drift:\n    ignore:\n" + strings.Join(rules, "")
}

func (d *driftWriter) rule(address, attribute string) string {
	rule := "      - address: " + yamlText(address) + "\n"
	if attribute != "" {
		rule += "        attribute: " + yamlText(attribute) + "\n"
	}
	rule += "        reason: say why this is intended\n"
	if since := d.r.State.Since; !since.IsZero() {
		rule += "        expires: " + since.UTC().Add(ruleLasts).Format(time.DateOnly) + "\n"
	}
	return rule
}

// yamlText is s as a scalar on one line, quoted so that nothing in it has a meaning.
func yamlText(s string) string { return "'" + strings.ReplaceAll(markdown.OneLine(s), "'", "''") + "'" }

// goneBody is the text that shows that the drift is gone.
func goneBody(r holdfast.DriftReport) string {
	p := &page{}
	p.line(DriftMarker(r.Cluster))
	name := markdown.Code(markdown.Shorten(r.Cluster, 63))
	switch {
	case r.Document.Drift.OnDrift == "ignore":
		p.line("### ⚪ Drift reporting is off for " + name + "\n")
		p.linef("The cluster sets `onDrift: ignore`. %s still shows its drift.", markdown.Code("holdfast describe drift "+markdown.Shorten(r.Cluster, 63)))
		return p.b.String()
	case r.State.Status == holdfast.DriftUnchecked:
		p.line("### ⚪ " + name + " is no longer checked for drift\n")
		p.line("There is nothing to compare it with: the cluster was destroyed or renamed.")
		return p.b.String()
	}
	p.line("### ✅ " + name + " matches its last apply\n")
	p.line(proof(r) + "\n")
	if run := r.Revert; run != nil && run.Status == holdfast.RunApplied {
		p.line(markdown.Code(markdown.Shorten(run.ID, 60)) + byWhom(*run) + " reverted the drift" + endedOn(*run) + ".\n")
	} else {
		p.line("No apply was needed: it was reverted outside of Holdfast, or a change of the code or a rule now covers it.\n")
	}
	if n := r.State.Counts.Ignored; n > 0 {
		d := &driftWriter{r: r, parts: partsOf(r.Items), level: driftDetails[2]}
		p.line("Still different: " + hiddenPhrase(n) + ".\n")
		d.folded(strings.ToUpper(hiddenPhrase(n)[:1])+hiddenPhrase(n)[1:], d.parts.hidden)
		if folded := d.b.String(); len(folded) < commentLimit/2 {
			p.line(strings.TrimSuffix(folded, "\n"))
		}
	}
	p.line("This issue is reopened if the cluster drifts again.")
	return p.b.String()
}

// proof names the check that found no drift.
func proof(r holdfast.DriftReport) string {
	s := "The check"
	if r.State.Run != "" {
		s += " " + markdown.Code(markdown.Shorten(r.State.Run, 60))
	}
	if at := r.State.CheckedAt; !at.IsZero() {
		s += " of " + stamp(at)
	}
	s += " found no drift"
	if applied := appliedWords(r); applied != "" {
		s += " since the last apply: " + applied
	}
	return s + "."
}

// uncheckedBody reports checks that fail again and again.
func uncheckedBody(r holdfast.DriftReport) string {
	p := &page{}
	p.line(DriftMarker(r.Cluster))
	p.linef("### ❌ Drift of %s cannot be checked\n", markdown.Code(markdown.Shorten(r.Cluster, 63)))
	p.linef("%d or more checks in a row have failed: it is not known whether the cluster has drifted.\n", failuresBeforeIssue)
	for _, line := range checkFailure(r) {
		p.line(line + "\n")
	}
	p.linef("- **Check again** once the cause is fixed: %s", markdown.Code("holdfast drift check "+markdown.Shorten(r.Cluster, 63)))
	p.linef("- **Read the engine's output:** %s lists the run, %s shows its log", markdown.Code("holdfast get runs --kind drift"), markdown.Code("holdfast logs RUN"))
	p.line("\nThis issue is closed when a check succeeds and finds no drift.")
	return p.b.String()
}
