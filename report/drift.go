package report

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// DriftMarker returns the hidden first line by which the issue of a cluster's
// drift is found again.
func DriftMarker(cluster string) string {
	return fmt.Sprintf("<!-- holdfast:drift %s -->", cluster)
}

// DriftSummaryMarker is DriftMarker for the issue that tells of many clusters of
// a repository.
func DriftSummaryMarker(repo string) string {
	return fmt.Sprintf("<!-- holdfast:drift-summary %s -->", repo)
}

// DriftIssue returns the issue of a cluster's drift. An empty body means that
// there is nothing new to say: an issue that is there stays as it is, and none
// is made.
func DriftIssue(r holdfast.DriftReport, _ time.Time) (title, body string, closed bool) {
	return "Drift in " + oneLine(r.Cluster), DriftMarker(r.Cluster) + "\n", r.State.Status == holdfast.DriftNone
}

// DriftSummary returns the issue that tells of all drifted clusters of a
// repository, when there are more than get an issue of their own: the first own
// of reports have one. It is closed if there are not.
func DriftSummary(repo string, reports []holdfast.DriftReport, own int, _ time.Time) (title, body string, closed bool) {
	return "Drift in " + plural(len(reports), "cluster"), DriftSummaryMarker(repo) + "\n", len(reports) <= own
}

// DriftText returns what a check has found as plain text for a terminal.
func DriftText(r holdfast.DriftReport) string { return oneLine(r.Cluster) + "\n" }
