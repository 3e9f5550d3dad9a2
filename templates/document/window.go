package document

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
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

// lastStart returns the last time that schedule names between from, which it names, and now:
// a window may begin again before it has ended. It halves the time that is left with each
// question, as a window of a month can begin each minute.
func lastStart(schedule cron.Schedule, from, now time.Time) time.Time {
	for until := now; until.Sub(from) > time.Second; { // none begins between until and now
		middle := from.Add(until.Sub(from) / 2)
		if next := schedule.Next(middle); next.IsZero() || next.After(now) {
			until = middle
		} else {
			from = next
		}
	}
	return from
}

func (r clusterReader) window(o *decode.Object) holdfast.ApplyWindow {
	w := holdfast.ApplyWindow{Schedule: o.Required("schedule"), TimeZone: r.timeZone(o)}
	if w.Kind = o.Choice("kind", "allow", "deny"); !o.Has("kind") {
		o.Missing("kind")
	}
	if text := o.Required("duration"); text != "" {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			r.Add(o.Get("duration"), fmt.Sprintf("%s %q is not a duration", o.Label("duration"), wording.Clip(text)), `write one such as "4h" or "90m"`)
		case d <= 0 || d > maxWindow:
			r.Add(o.Get("duration"), fmt.Sprintf("%s is %s", o.Label("duration"), d), fmt.Sprintf("it must be positive and at most %s", maxWindow))
		}
		w.Duration = d
	}
	r.schedule(o, w.Schedule, w.TimeZone)
	o.Done()
	return w
}

const maxWindow = 31 * 24 * time.Hour
