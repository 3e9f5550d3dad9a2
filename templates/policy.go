package templates

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-version"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-dev/holdfast"
)

var semver = regexp.MustCompile(`^(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

func (r *reader) constraint(o *object, key, text string) {
	if text == "" {
		return
	}
	if len(text) > 200 {
		r.add(o.get(key), o.label(key)+" is longer than 200 characters", "")
		return
	}
	if _, err := version.NewConstraint(text); err != nil {
		r.add(o.get(key), fmt.Sprintf("%s %q is not a version constraint", o.label(key), clip(text)),
			`write one such as "~> 1.10" or ">= 1.9, < 2.0"`)
	}
}

func (r *reader) drift(o *object, c *holdfast.Cluster) {
	c.Drift = holdfast.DriftPolicy{Schedule: o.str("schedule"), TimeZone: o.timeZone()}
	switch text := c.Drift.Schedule; {
	case text == DriftOff:
	case text != "" && !strings.ContainsAny(text, " @="):
		r.add(o.get("schedule"), fmt.Sprintf("spec.drift.schedule is %q", clip(text)), scheduleExample+`, or "off"`)
	default:
		r.schedule(o, text, c.Drift.TimeZone)
	}
	if c.Drift.TimeZone != "" && (c.Drift.Schedule == "" || c.Drift.Schedule == DriftOff) {
		r.add(o.get("timeZone"), "spec.drift.timeZone goes with a schedule", "add one, or remove timeZone")
	}
	c.Drift.OnDrift = o.choice("onDrift", "report", "apply", "ignore")
	items := o.items("ignore")
	if len(items) > maxRules {
		r.add(items[maxRules], fmt.Sprintf("spec.drift.ignore has %d rules, more than %d", len(items), maxRules), "write wider ones, with * and **")
		items = items[:maxRules]
	}
	for i, item := range items {
		before := len(r.faults)
		rule := r.driftRule(r.object(item, fmt.Sprintf("spec.drift.ignore[%d]", i)))
		if len(r.faults) == before { // half a rule would hide more than was meant
			c.Drift.Ignore = append(c.Drift.Ignore, rule)
		}
	}
	o.done()
}

func (r *reader) driftRule(o *object) holdfast.DriftRule {
	rule := holdfast.DriftRule{Address: o.required("address"), Attribute: o.str("attribute"), Reason: o.required("reason")}
	complain := func(key, message, hint string) {
		at, value := o.find(key)
		if value.Tag != "!!null" {
			at = value
		}
		r.add(at, o.label(key)+" "+message, hint)
	}
	if message, hint := checkAddress(rule.Address); message != "" {
		complain("address", message, hint)
	}
	if at, value := o.find("attribute"); at != nil && rule.Attribute == "" && (value.Tag == "!!null" || value.Tag == "!!str") {
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
	if text := o.str("expires"); text != "" {
		var err error
		if rule.Expires, err = time.Parse(time.DateOnly, text); err != nil {
			rule.Expires, err = time.Parse(time.RFC3339, text)
		}
		if err != nil {
			complain("expires", fmt.Sprintf("%q is not a date", clip(text)), "write one such as 2027-01-31 or 2027-01-31T18:00:00Z")
		}
		rule.Expires = rule.Expires.UTC()
	}
	o.done()
	return rule
}

// timeZone returns the name of a time zone that is known, "" if it is absent.
func (o *object) timeZone() string {
	name := o.str("timeZone")
	if name == "" {
		return ""
	}
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		o.r.add(o.get("timeZone"), fmt.Sprintf("%s %q is not known", o.label("timeZone"), clip(name)), `write one such as "Europe/Berlin"`)
	}
	return name
}

func (r *reader) apply(o *object, c *holdfast.Cluster) {
	c.Apply.Manual = !o.boolean("onMerge", true)
	values, nodes := o.strings("requires")
	for i, v := range values {
		allowed := []string{"approved", "mergeable"}
		switch {
		case !slices.Contains(allowed, v):
			r.add(nodes[i], fmt.Sprintf("spec.apply.requires has %q", clip(v)), didYouMean(v, allowed))
		case !slices.Contains(c.Apply.Requires, v):
			c.Apply.Requires = append(c.Apply.Requires, v)
		}
	}
	for i, item := range o.items("windows") {
		c.Apply.Windows = append(c.Apply.Windows, r.window(r.object(item, fmt.Sprintf("spec.apply.windows[%d]", i))))
	}
	o.done()
}

const (
	maxRules    = 100 // of a drift policy
	maxSchedule = 500 // bytes: room for every minute by its number, and a time zone
)

const maxWindow = 31 * 24 * time.Hour

func (r *reader) window(o *object) holdfast.ApplyWindow {
	w := holdfast.ApplyWindow{Schedule: o.required("schedule"), TimeZone: o.timeZone()}
	if w.Kind = o.choice("kind", "allow", "deny"); !o.has("kind") {
		o.missing("kind")
	}
	if text := o.required("duration"); text != "" {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			r.add(o.get("duration"), fmt.Sprintf("%s %q is not a duration", o.label("duration"), clip(text)), `write one such as "4h" or "90m"`)
		case d <= 0 || d > maxWindow:
			r.add(o.get("duration"), fmt.Sprintf("%s is %s", o.label("duration"), d), fmt.Sprintf("it must be positive and at most %s", maxWindow))
		}
		w.Duration = d
	}
	r.schedule(o, w.Schedule, w.TimeZone)
	o.done()
	return w
}

func (r *reader) schedule(o *object, text, timeZone string) {
	if text == "" {
		return
	}
	if len(text) > maxSchedule {
		r.add(o.get("schedule"), fmt.Sprintf("%s is longer than %d bytes", o.label("schedule"), maxSchedule), "")
		return
	}
	if message, hint := checkSchedule(text, timeZone); message != "" {
		r.add(o.get("schedule"), fmt.Sprintf("%s %q %s", o.label("schedule"), clip(text), message), hint)
	}
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
			return fmt.Sprintf("names the time zone %q, which is not known", clip(zone)), `write one such as "CRON_TZ=Europe/Berlin 0 4 * * *"`
		}
		if timeZone != "" {
			return "has a time zone beside timeZone", "remove one of them"
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

// A backend that a cluster may name: what it must have, and the argument that
// tells clusters apart, with its default.
type backendKind struct {
	required []string
	own      string // empty: none
}

func backendKinds() map[string]backendKind {
	return map[string]backendKind{
		"s3":         {required: []string{"bucket"}, own: "key"},
		"gcs":        {required: []string{"bucket"}, own: "prefix"},
		"azurerm":    {required: []string{"storage_account_name", "container_name"}, own: "key"},
		"kubernetes": {own: "secret_suffix"},
		"http":       {required: []string{"address"}},
	}
}

// ownDefault is the default of the argument that tells clusters apart.
func ownDefault(kind, cluster string) string {
	switch kind {
	case "s3":
		return cluster + "/terraform.tfstate"
	case "azurerm":
		return cluster + ".tfstate"
	default: // gcs adds the file's name, kubernetes the workspace's
		return cluster
	}
}

// secretArguments are backend arguments that hold credentials.
func secretArgument(name string) bool {
	switch name {
	case "access_key", "secret_key", "token", "password", "client_secret", "sas_token", "access_token",
		"credentials", "client_key", "client_private_key_pem", "client_certificate_password", "encryption_key",
		"sse_customer_key", "kms_encryption_key_value", "oidc_token", "oidc_request_token":
		return true
	}
	return false
}

func (r *reader) state(o *object, c *holdfast.Cluster) *holdfast.StateBackend {
	kinds := backendKinds()
	kind := o.choice("type", "azurerm", "gcs", "http", "kubernetes", "s3")
	if !o.has("type") {
		o.missing("type")
	}
	state := &holdfast.StateBackend{Type: kind, Config: map[string]any{}}
	var unknown []string
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		key := o.node.Content[i]
		switch {
		case key.Value == "type":
			continue
		case secretArgument(key.Value):
			r.add(key, fmt.Sprintf("spec.state has %s, which is a secret", key.Value),
				"give the credential to the project and environment in holdfast.yaml")
		case !identifier.MatchString(key.Value):
			r.add(key, fmt.Sprintf("spec.state has %q, which is no argument of a backend", clip(key.Value)), "")
		}
		unknown = append(unknown, key.Value)
		state.Config[key.Value] = r.value(o.node.Content[i+1])
	}
	for _, key := range kinds[kind].required {
		if state.Config[key] != nil {
			continue
		}
		hint := ""
		if near := holdfast.Nearest(key, unknown); near != "" {
			hint = fmt.Sprintf("did you mean it by %q?", near)
		}
		r.add(o.node, fmt.Sprintf("spec.state.%s is missing for a state in %s", key, kind), hint)
	}
	// A default made from the new name would leave the state behind.
	if own := kinds[kind].own; own != "" && c.RenamedFrom != "" && state.Config[own] == nil {
		r.add(o.node, fmt.Sprintf("spec.state.%s must be written for a renamed cluster: its state is where it was", own),
			fmt.Sprintf("add %s: %s", own, ownDefault(kind, c.RenamedFrom)))
	}
	return state
}
