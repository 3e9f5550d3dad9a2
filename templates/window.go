package templates

import (
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-dev/holdfast"
)

// WindowsOpen reports whether a cluster may be applied at now, and when that
// may change, the zero time if never. A deny window wins; where there are allow
// windows it is closed outside of them; without windows it is always open. A
// window that cannot be read (it was refused when its document was) closes.
func WindowsOpen(windows []holdfast.ApplyWindow, now time.Time) (open bool, change time.Time) {
	open = true
	for _, w := range windows {
		if w.Kind == "allow" {
			open = false
		}
	}
	sooner := func(t time.Time) {
		if !t.IsZero() && (change.IsZero() || t.Before(change)) {
			change = t
		}
	}
	denied := false
	for _, w := range windows {
		schedule, err := zonedSchedule(w.Schedule, w.TimeZone)
		if err != nil || w.Kind != "allow" && w.Kind != "deny" {
			return false, time.Time{}
		}
		// The last start that could still last now.
		start := schedule.Next(now.Add(-w.Duration))
		inside := !start.IsZero() && !start.After(now)
		if inside {
			sooner(lastStart(schedule, start, now).Add(w.Duration))
		}
		sooner(schedule.Next(now))
		switch {
		case inside && w.Kind == "deny":
			denied = true
		case inside:
			open = true
		}
	}
	return open && !denied, change
}

// lastStart returns the last time that schedule names between from and now: a
// window may begin again before it has ended.
func lastStart(schedule cron.Schedule, from, now time.Time) time.Time {
	for {
		next := schedule.Next(from)
		if next.IsZero() || next.After(now) {
			return from
		}
		from = next
	}
}
