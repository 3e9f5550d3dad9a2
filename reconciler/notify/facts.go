package notify

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/report"
)

// observed is what notifications of a cluster are made of.
type observed struct {
	now     time.Time
	cluster holdfast.ClusterRecord
	applied holdfast.Run // the last apply, if it ended lately
	newest  holdfast.Run // of the tracked branch, if the cluster waits
}

// lately reports whether something has happened so shortly ago that it is of interest: a
// server that begins to notify says nothing of the years before.
func (o observed) lately(at time.Time) bool { return !at.IsZero() && o.now.Sub(at) < patience }

// facts are what is so now. The identity of each is of what has made it so.
func facts(o observed) (found []outgoing.Notification) {
	add := func(event outgoing.NotificationEvent, id string, n outgoing.Notification) {
		doc := o.document()
		n.ID = fmt.Sprintf("%s/%s/%s", o.cluster.Name, event, id)
		n.Event, n.Cluster, n.Project, n.Environment = event, o.cluster.Name, doc.Project, doc.Environment
		found = append(found, n)
	}
	rec := o.cluster
	if run := o.applied; run.Kind == holdfast.RunApply && run.Status == holdfast.RunApplied {
		add(outgoing.NotifyApplied, run.ID, outgoing.Notification{
			Title: "applied: " + report.CountsText(run.Counts), Run: run.ID, PullRequest: reviewed(run), At: rec.Applied.At,
		})
	}
	if gone := rec.Deletion; gone != nil && gone.Reason == holdfast.ReasonDestroyed && o.lately(gone.At) {
		add(outgoing.NotifyDestroyed, cmp.Or(gone.Run, string(gone.Revision)), outgoing.Notification{
			Title: "destroyed", Run: gone.Run, At: gone.At,
		})
	}
	if event, n, waits := o.waiting(); waits {
		add(event, fmt.Sprintf("%s/%s/%s", rec.Waiting, rec.WaitingFor, n.Run), n)
	}
	switch drift := rec.Drift; {
	case rec.Deletion != nil:
	case drift.Status == holdfast.DriftFound:
		n := outgoing.Notification{
			Title: "has drifted: " + driftWords(drift.Counts), Run: drift.Run, At: drift.Since, Command: "holdfast describe drift " + rec.Name,
		}
		if drift.Destroys {
			n.Detail = "Reverting it would destroy or replace resources."
		}
		add(outgoing.NotifyDrift, fmt.Sprintf("%d/%s", drift.Since.Unix(), drift.Fingerprint), n)
	case drift.Status == holdfast.DriftFailed && o.lately(drift.Since):
		add(outgoing.NotifyFailed, fmt.Sprintf("drift/%d", drift.Since.Unix()), outgoing.Notification{
			Title: "its drift check has failed", Detail: drift.Detail, Run: drift.Run, At: drift.Since, Command: "holdfast drift check " + rec.Name,
		})
	}
	return found
}

// document is what the cluster is, or was.
func (o observed) document() holdfast.Cluster {
	if o.cluster.Desired.Document.Name != "" {
		return o.cluster.Desired.Document
	}
	return o.cluster.Applied.Document
}

// waiting is what a cluster waits for, if that needs a person.
func (o observed) waiting() (event outgoing.NotificationEvent, n outgoing.Notification, waits bool) {
	rec, info := o.cluster, o.cluster.Waiting.Info()
	if rec.Waiting == "" || rec.Deletion != nil || info.Effect != holdfast.Blocks {
		return "", n, false
	}
	event, title := outgoing.NotifyWaiting, "waits: "
	if info.Failed {
		event, title = outgoing.NotifyFailed, ""
	}
	n = outgoing.Notification{
		Title: title + plain(info.Words), Detail: rec.WaitingDetail, Reason: rec.Waiting, Run: o.newest.ID, PullRequest: reviewed(o.newest),
		Command: rec.Waiting.Command(rec.Name), At: cmp.Or(o.newest.FinishedAt, rec.UpdatedAt),
	}
	if f := o.newest.Failure; f != nil && info.Failed && f.Summary != "" {
		n.Detail = f.Summary
	}
	return event, n, true
}

// reviewed is the pull request that a run was reviewed in; empty if there is none.
func reviewed(run holdfast.Run) string {
	for _, review := range run.Reviews {
		if !review.PullRequest.IsZero() {
			return review.PullRequest.String()
		}
	}
	return ""
}

func driftWords(c holdfast.DriftCounts) string {
	var parts []string
	for _, part := range []struct {
		n     int
		words string
	}{{c.Changed, "changed outside"}, {c.Gone, "gone"}, {c.Input, "by another input"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.words))
		}
	}
	return strings.Join(parts, ", ")
}

// plain takes the markup out of our own words.
func plain(s string) string { return strings.ReplaceAll(s, "`", "") }
