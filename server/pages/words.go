package pages

import (
	"net/url"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

// set is a copy of a query in which one parameter has another value.
func set(q url.Values, name, value string) url.Values {
	out := url.Values{}
	for key, values := range q {
		out[key] = values
	}
	out.Del("cursor")
	out.Del(name)
	if value != "" {
		out.Set(name, value)
	}
	return out
}

// phaseState is how a phase looks. What is well is grey.
func phaseState(phase holdfast.Phase) console.State {
	s := console.State{Word: string(phase)}
	switch phase {
	case holdfast.PhaseActive:
		s.Icon = "ok"
	case holdfast.PhaseFailed:
		s.Icon, s.Tone = "bad", "bad"
	case holdfast.PhasePending:
		s.Icon, s.Tone = "wait", "warn"
	case holdfast.PhaseProvisioning, holdfast.PhaseConfiguring, holdfast.PhaseUpdating:
		s.Icon, s.Tone, s.Spin = "run", "info", true
	case holdfast.PhaseDeleting:
		s.Icon, s.Tone = "trash", "violet"
	case holdfast.PhaseDeleted:
		s.Icon = "trash"
	default:
		s.Icon = "todo"
	}
	return s
}

// runState is how the status of a run looks.
func runState(status holdfast.RunStatus, kind holdfast.RunKind) console.State {
	switch status {
	case holdfast.RunQueued:
		return console.State{Word: "Queued", Icon: "wait"}
	case holdfast.RunRetrying:
		return console.State{Word: "Retrying", Icon: "wait", Tone: "warn"}
	case holdfast.RunRunning:
		return console.State{Word: "Running", Icon: "run", Tone: "info", Spin: true}
	case holdfast.RunPlanned:
		if kind == holdfast.RunDrift {
			return console.State{Word: "Differs", Icon: "drift", Tone: "warn"}
		}
		return console.State{Word: "Planned", Icon: "ok"}
	case holdfast.RunApplied:
		return console.State{Word: "Applied", Icon: "ok"}
	case holdfast.RunNoChanges:
		return console.State{Word: "No changes", Icon: "ok"}
	case holdfast.RunErrored:
		return console.State{Word: "Failed", Icon: "bad", Tone: "bad"}
	case holdfast.RunInterrupted:
		return console.State{Word: "Interrupted", Icon: "bad", Tone: "bad"}
	case holdfast.RunCanceled:
		return console.State{Word: "Canceled", Icon: "skip"}
	default:
		return console.State{Word: string(status), Icon: "todo"}
	}
}

// driftState is how the last drift check ended.
func driftState(status holdfast.DriftStatus) console.State {
	switch status {
	case holdfast.DriftNone:
		return console.State{Word: "none"}
	case holdfast.DriftFound:
		return console.State{Word: "drifted", Icon: "drift", Tone: "warn"}
	case holdfast.DriftFailed:
		return console.State{Word: "check failed", Icon: "alert", Tone: "warn"}
	default:
		return console.State{}
	}
}

// kindWord is a kind of run as a heading begins.
func kindWord(kind holdfast.RunKind, destroy bool) string {
	switch {
	case kind == holdfast.RunPlan && destroy:
		return "Plan to destroy"
	case kind == holdfast.RunDrift:
		return "Drift check"
	case kind == holdfast.RunState:
		return "Repair of state"
	case kind == holdfast.RunUnlock:
		return "Unlock of state"
	default:
		return words.Sentence(string(kind))
	}
}

// reasonWords says what a reason means, with its detail.
func reasonWords(reason holdfast.Reason, detail string) string {
	if reason == "" {
		return words.Unquoted(detail)
	}
	meaning := words.Unquoted(reason.Info().Words)
	if detail != "" && detail != meaning {
		return meaning + ": " + words.Unquoted(detail)
	}
	return meaning
}

// lasted is how long a run took, or has taken until now; empty if it has not begun.
func lasted(from, to, now time.Time) string {
	if from.IsZero() {
		return ""
	}
	if to.IsZero() {
		to = now
	}
	return console.Took(to.Sub(from))
}

// runRow is a run in a list.
func runRow(r v1.Run, now time.Time) console.RunRow {
	row := console.RunRow{
		ID: "run-" + r.ID, Href: words.RunHref(r.ID), Kind: kindWord(r.Kind, r.Destroy), Cluster: r.Cluster, ClusterHref: words.ClusterHref(r.Cluster),
		State: runState(r.Status, r.Kind), Counts: words.CountPills(r.Counts), Revision: string(r.Revision), Agent: r.Agent, CreatedAt: r.CreatedAt,
		Took: lasted(r.StartedAt, r.FinishedAt, now),
	}
	row.PullRequest = console.Link{Text: "tracked branch"}
	if !r.PullRequest.IsZero() {
		row.PullRequest = console.Link{Text: r.PullRequest.String(), Href: words.PullRequestHref(r.PullRequest)}
	}
	switch {
	case r.Status == holdfast.RunRunning && r.Step != "":
		row.Why = r.Step
	case r.Failure != nil:
		row.Why = r.Failure.Summary
	case r.Status == holdfast.RunCanceled:
		row.Why = reasonWords(r.Reason, "")
	}
	if len(row.Why) > 120 {
		row.Why = row.Why[:120] + "…"
	}
	return row
}

func runRows(runs []v1.Run, now time.Time) []console.RunRow {
	rows := make([]console.RunRow, len(runs))
	for i, r := range runs {
		rows[i] = runRow(r, now)
	}
	return rows
}
