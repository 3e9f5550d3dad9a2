package document

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/lru"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// DriftOff is the schedule of a cluster that is never checked for drift.
const DriftOff = "off"

// maxJitter is how much later than its schedule says a cluster is checked at
// most.
const maxJitter = 30 * time.Minute

// DriftDue returns when a cluster is to be checked for drift next, if it was
// checked last at last: the first time after last that its schedule names, or
// fallback where there is none, and a little later, so that
// clusters with one schedule do not all come at once. How much is made of the
// cluster's name and so stays the same: at most a tenth of the time until the
// schedule's next time, and at most 30 minutes.
//
// A check counts for the slot that it was made in, from one time of the schedule
// to the next: a late one, however late, is made once. A time of day that
// daylight saving skips is left out, one that it repeats comes twice; @every
// counts from a fixed time, the same for all.
//
// The zero time means never: the schedule is empty, "off", or cannot be read
// (it was refused when its document was). It is safe for concurrent use.
func DriftDue(settings holdfast.DriftSettings, fallback, cluster string, last time.Time) time.Time {
	text, zone := settings.Schedule, settings.TimeZone
	if text == "" {
		text, zone = fallback, ""
	}
	if text == "" || text == DriftOff {
		return time.Time{}
	}
	schedule, err := zonedSchedule(text, zone)
	if err != nil {
		return time.Time{}
	}
	if epoch := time.Unix(0, 0); last.Before(epoch) {
		last = epoch
	}
	slot := schedule.Next(last)
	if slot.IsZero() {
		return time.Time{}
	}
	spread := maxJitter
	if after := schedule.Next(slot); !after.IsZero() {
		spread = min(spread, after.Sub(slot)/10)
	}
	return slot.Add(time.Duration(share(cluster) * float64(spread))).UTC()
}

// share is a number from 0 to 1 that is made of a cluster's name, evenly spread
// over many names.
func share(cluster string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(cluster)) // never fails
	// The upper bits of FNV hardly differ between names that end differently.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x) / math.MaxUint64
}

// anchored is an @every schedule whose times do not depend on when one asks.
type anchored struct{ every time.Duration }

func (a anchored) Next(t time.Time) time.Time { return t.Truncate(a.every).Add(a.every) }

// schedules keeps what zonedSchedule made: to read a time zone takes much longer
// than to ask a schedule for its next time. All clusters of a fleet have few
// schedules among them.
var schedules = lru.New[cron.Schedule](1_000)

// zonedSchedule reads a schedule in a time zone: its own, otherwise zone, otherwise
// UTC.
func zonedSchedule(text, zone string) (cron.Schedule, error) {
	if zone != "" {
		text = "CRON_TZ=" + zone + " " + text
	} else if !strings.HasPrefix(text, "TZ=") && !strings.HasPrefix(text, "CRON_TZ=") {
		text = "CRON_TZ=UTC " + text
	}
	if schedule, ok := schedules.Get(text); ok {
		return schedule, nil
	}
	schedule, err := parseSchedule(text)
	if err != nil {
		return nil, err
	}
	if every, ok := schedule.(cron.ConstantDelaySchedule); ok {
		schedule = anchored{every.Delay}
	}
	if len(text) <= 2*maxSchedule {
		schedules.Put(text, schedule)
	}
	return schedule, nil
}

const maxSchedule = 500 // bytes: room for every minute by its number, and a time zone

func (r clusterReader) schedule(o *decode.Object, text, timeZone string) {
	if text == "" {
		return
	}
	if len(text) > maxSchedule {
		r.Add(o.Get("schedule"), fmt.Sprintf("%s is longer than %d bytes", o.Label("schedule"), maxSchedule), "")
		return
	}
	if message, hint := checkSchedule(text, timeZone); message != "" {
		r.Add(o.Get("schedule"), fmt.Sprintf("%s %q %s", o.Label("schedule"), wording.Clip(text), message), hint)
	}
}

// timeZone returns the name of a time zone that is known, "" if it is absent.
func (r clusterReader) timeZone(o *decode.Object) string {
	name := o.Text("timeZone")
	if name == "" {
		return ""
	}
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		r.Add(o.Get("timeZone"), fmt.Sprintf("%s %q is not known", o.Label("timeZone"), wording.Clip(name)), `write one such as "Europe/Berlin"`)
	}
	return name
}

const scheduleExample = `write five fields such as "0 */4 * * *": minute, hour, day of month, month, day of week`

// checkSchedule says what is wrong with a cron schedule, "" if nothing is.
func checkSchedule(text, timeZone string) (message, hint string) {
	expression := text
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		zone, rest, found := strings.Cut(text[strings.Index(text, "=")+1:], " ")
		if !found || strings.TrimSpace(rest) == "" {
			return "has a time zone and no times", scheduleExample
		}
		if _, err := time.LoadLocation(zone); err != nil || zone == "" || zone == "Local" {
			return fmt.Sprintf("names the time zone %q, which is not known", wording.Clip(zone)), `write one such as "CRON_TZ=Europe/Berlin 0 4 * * *"`
		}
		if timeZone != "" {
			return "sets the time zone twice (CRON_TZ and timeZone)", "remove one of them"
		}
		expression = strings.TrimSpace(rest)
	}
	if every, ok := strings.CutPrefix(expression, "@every "); ok {
		if d, err := time.ParseDuration(strings.TrimSpace(every)); err != nil || d < time.Minute {
			return "does not leave a minute between two times", `write "@every 1h", or ` + scheduleExample[len("write "):]
		}
	}
	schedule, err := parseSchedule(expression)
	if err != nil {
		return "is not a schedule: " + err.Error(), scheduleExample
	}
	// The parser accepts the 30th of February; its Next gives up after five years.
	if schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return "never comes", "check the day of the month"
	}
	return "", ""
}

// parseSchedule guards against a parser that panics on some malformed input.
func parseSchedule(text string) (schedule cron.Schedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			schedule, err = nil, fmt.Errorf("%v", r)
		}
	}()
	return cron.ParseStandard(text)
}
