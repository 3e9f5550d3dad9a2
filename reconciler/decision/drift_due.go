package decision

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

const (
	driftRetry     = 10 * time.Minute // after a failed check, doubling
	driftRetryMost = 24 * time.Hour
)

// Uncheckable is why there is nothing to compare a cluster with, or why it is left
// alone, as its record says; empty if it may be checked.
func Uncheckable(rec holdfast.ClusterRecord) (reason holdfast.Reason, why string) {
	switch {
	case rec.Deletion != nil:
		return rec.Deletion.Reason, "it no longer exists: there is nothing to check"
	case rec.Applied.Run == "":
		return holdfast.ReasonNeverApplied, "it was never applied: there is nothing to compare it with"
	case rec.Suspended:
		return holdfast.ReasonSuspended, "it is suspended: run `holdfast resume` first"
	case rec.Desired.Removed, rec.Phase == holdfast.PhaseDeleting:
		return holdfast.ReasonRemoved, "its document was removed: it is being deleted"
	case rec.Phase == holdfast.PhaseFailed:
		return holdfast.ReasonApplyFailed, "an apply failed partway: the infrastructure does not match the last apply"
	default:
		return "", ""
	}
}

// DriftDue is when a cluster is to be checked for drift next, as its record
// says at now; the zero time if it is not. fallback is the schedule of clusters
// that say nothing.
func DriftDue(now time.Time, rec holdfast.ClusterRecord, fallback string) time.Time {
	if _, why := Uncheckable(rec); why != "" {
		return time.Time{}
	}
	drift, settings := rec.Drift, DriftSettings(rec)
	drift.CheckedAt, rec.Applied.At = Believable(drift.CheckedAt, now), Believable(rec.Applied.At, now)
	last := drift.CheckedAt
	if rec.Applied.At.After(last) {
		last = rec.Applied.At
	}
	next := document.DriftDue(settings, fallback, rec.Name, last)
	checked := drift.Applied == rec.Applied.Run
	switch {
	case drift.Fingerprint != "" && !checked:
		return rec.Applied.At // it may be gone: at once
	case drift.Status == holdfast.DriftFailed && checked:
		if next.IsZero() && drift.Fingerprint == "" {
			return next // somebody asked once
		}
		return sooner(next, drift.CheckedAt.Add(doubled(driftRetry, drift.Failures-1, driftRetryMost)))
	case next.IsZero():
		return next
	}
	for _, rule := range settings.Ignore { // what it hides is seen as it is, from then on
		if drift.Counts.Ignored > 0 && rule.Expires.After(last) {
			next = sooner(next, rule.Expires)
		}
	}
	return next
}

// Believable is a time of the past. One in the future came from a clock that was wrong,
// and may be any: it counts as long ago.
func Believable(t, now time.Time) time.Time {
	if t.After(now.Add(DriftFresh)) {
		return time.Unix(0, 0)
	}
	return t
}

// clocksDiffer is by how much a time may be ahead that another process has recorded.
const clocksDiffer = 5 * time.Second

// Left is what is left of a wait that began at since; zero or less if it is over. A time in
// the future came from a clock that was set back meanwhile: as nobody knows when that was,
// the wait is over.
func Left(now, since time.Time, wait time.Duration) time.Duration {
	if since.After(now.Add(clocksDiffer)) {
		return 0
	}
	return since.Add(wait).Sub(now)
}

// sooner is the earlier of two times, of which the zero one is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// doubled is a delay that doubles with each failure, up to a ceiling.
func doubled(base time.Duration, failures int, ceiling time.Duration) time.Duration {
	return min(base<<min(max(failures, 0), 16), ceiling)
}
