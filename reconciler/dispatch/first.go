package dispatch

// The pace of first plans: a fresh database finds all clusters of a fleet at once, and
// each plan asks a cloud for everything that the cluster consists of.

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// paced reports whether a run waits for the time of the next first plan. A retry of one does
// not, as the time for which it may wait for a lock passes meanwhile.
func paced(run holdfast.Run) bool { return run.First() && run.Status != holdfast.RunRetrying }

// firstAt is the time from which a first plan may be handed out, given the lanes that
// were served within the last hour: they are spaced so that there are no more of them
// in an hour than the limit. It holds for all replicas, and across their restarts.
func (l Limits) firstAt(lately []holdfast.Lane) time.Time {
	var last time.Time
	for _, lane := range lately {
		if lane.Priority == holdfast.PriorityFirst && lane.Since.After(last) {
			last = lane.Since
		}
	}
	if l.First <= 0 || last.IsZero() {
		return time.Time{}
	}
	return last.Add(time.Hour / time.Duration(l.First))
}

// firstWaits is why a first plan is not handed out; empty if it may be.
func (l Limits) firstWaits(run holdfast.Run, lately []holdfast.Lane, now time.Time) (reason holdfast.Reason, detail string) {
	at := l.firstAt(lately)
	if !paced(run) || !at.After(now) {
		return "", ""
	}
	return holdfast.ReasonAdoptionCapped,
		fmt.Sprintf("%d first plans are started in an hour; the next one at %s UTC", l.First, at.UTC().Format(time.TimeOnly))
}
