package document

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

func (r clusterReader) drift(o *decode.Object, c *holdfast.Cluster) {
	c.Drift = holdfast.DriftSettings{Schedule: o.Text("schedule"), TimeZone: r.timeZone(o)}
	switch text := c.Drift.Schedule; {
	case text == DriftOff:
	case text != "" && !strings.ContainsAny(text, " @="):
		r.Add(o.Get("schedule"), fmt.Sprintf("spec.drift.schedule is %q", wording.Clip(text)), scheduleExample+`, or "off"`)
	default:
		r.schedule(o, text, c.Drift.TimeZone)
	}
	if c.Drift.TimeZone != "" && (c.Drift.Schedule == "" || c.Drift.Schedule == DriftOff) {
		r.Add(o.Get("timeZone"), "spec.drift.timeZone is only valid with a schedule", "add one, or remove timeZone")
	}
	c.Drift.OnDrift = o.Choice("onDrift", "report", "apply", "ignore")
	items := o.Items("ignore")
	if len(items) > maxRules {
		r.Add(items[maxRules], fmt.Sprintf("spec.drift.ignore has %d rules, more than %d", len(items), maxRules), "write wider ones, with * and **")
		items = items[:maxRules]
	}
	for i, item := range items {
		before := len(r.Faults)
		rule := r.driftRule(r.Object(item, fmt.Sprintf("spec.drift.ignore[%d]", i)))
		if len(r.Faults) == before { // half a rule would hide more than was meant
			c.Drift.Ignore = append(c.Drift.Ignore, rule)
		}
	}
	o.Done()
}

func (r clusterReader) driftRule(o *decode.Object) holdfast.DriftRule {
	rule := holdfast.DriftRule{Address: o.Required("address"), Attribute: o.Text("attribute"), Reason: o.Required("reason")}
	complain := func(key, message, hint string) {
		at, value := o.Find(key)
		if value.Tag != "!!null" {
			at = value
		}
		r.Add(at, o.Label(key)+" "+message, hint)
	}
	if message, hint := checkAddress(rule.Address); message != "" {
		complain("address", message, hint)
	}
	if at, value := o.Find("attribute"); at != nil && rule.Attribute == "" && (value.Tag == "!!null" || value.Tag == "!!str") {
		complain("attribute", "is empty", "leave it out to hide all of the resource")
	}
	if message, hint := checkAttribute(rule.Attribute); message != "" {
		complain("attribute", message, hint)
	}
	switch {
	case rule.Reason != "" && strings.TrimSpace(rule.Reason) == "":
		complain("reason", "is empty", "")
	case len(rule.Reason) > 500:
		complain("reason", "is longer than 500 bytes", "")
	}
	if text := o.Text("expires"); text != "" {
		var err error
		if rule.Expires, err = time.Parse(time.DateOnly, text); err != nil {
			rule.Expires, err = time.Parse(time.RFC3339, text)
		}
		if err != nil {
			complain("expires", fmt.Sprintf("%q is not a date", wording.Clip(text)), "write one such as 2027-01-31 or 2027-01-31T18:00:00Z")
		}
		rule.Expires = rule.Expires.UTC()
	}
	o.Done()
	return rule
}

func (r clusterReader) apply(o *decode.Object, c *holdfast.Cluster) {
	c.Apply.Manual = !o.Bool("onMerge", true)
	r.requires(o, c)
	items := o.Items("windows")
	if len(items) > maxWindows {
		r.Add(items[maxWindows], fmt.Sprintf("spec.apply.windows has %d entries, more than %d", len(items), maxWindows), "write schedules that cover more")
		items = items[:maxWindows]
	}
	for i, item := range items {
		c.Apply.Windows = append(c.Apply.Windows, r.window(r.Object(item, fmt.Sprintf("spec.apply.windows[%d]", i))))
	}
	o.Done()
}

const (
	maxRules   = 100 // of what drift is ignored
	maxWindows = 50  // each is asked with each decision
)
