package document

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// ChangedSettings says how two documents of a cluster differ in what no plan shows: whose
// it is, when it is applied and by whose word, how its drift is looked for, what it waits
// for, and what guards it. Each is a sentence such as "apply.requires: none → approved".
func ChangedSettings(before, after holdfast.Cluster) []string {
	var out []string
	was, is := settingsOf(before), settingsOf(after)
	for i, s := range is {
		if s.value != was[i].value {
			out = append(out, fmt.Sprintf("%s: %s → %s", s.key, was[i].value, s.value))
		}
	}
	if !reflect.DeepEqual(before.Drift.Ignore, after.Drift.Ignore) {
		out = append(out, fmt.Sprintf("drift.ignore: %d added, %d removed",
			missing(after.Drift.Ignore, before.Drift.Ignore), missing(before.Drift.Ignore, after.Drift.Ignore)))
	}
	return out
}

// setting is a key of a document with what it says, in words.
type setting struct{ key, value string }

func settingsOf(c holdfast.Cluster) []setting {
	windows := make([]string, len(c.Apply.Windows))
	for i, w := range c.Apply.Windows {
		windows[i] = windowText(w)
	}
	upgrades := ""
	if c.Template != nil {
		upgrades = c.Template.Upgrades
	}
	return []setting{
		{"project", cmp.Or(c.Project, "none")},
		{"environment", cmp.Or(c.Environment, "none")},
		{"apply.onMerge", fmt.Sprint(!c.Apply.Manual)},
		{"apply.requires", listText(requiresText(c.Apply))},
		{"apply.windows", listText(windows)},
		{"deletion.protected", fmt.Sprint(c.Deletion.Protected)},
		{"dependsOn", listText(c.DependsOn)},
		{"drift.schedule", strings.TrimSpace(cmp.Or(c.Drift.Schedule, "as the server says") + " " + c.Drift.TimeZone)},
		{"drift.onDrift", cmp.Or(c.Drift.OnDrift, "report")},
		{"template.upgrades", cmp.Or(upgrades, "none")},
	}
}

// requiresText are the conditions of an apply, with what they ask for.
func requiresText(a holdfast.ApplySettings) (out []string) {
	for _, name := range a.Requires {
		switch {
		case name == holdfast.GateApproved && a.Terms.Approvals > 1:
			out = append(out, fmt.Sprintf("%s by %d", name, a.Terms.Approvals))
		case name == holdfast.GateDestroy && a.Terms.Destroys > 1:
			out = append(out, fmt.Sprintf("%s approved by %d", name, a.Terms.Destroys))
		case name == holdfast.GateCost:
			for _, limit := range a.Terms.Costs {
				out = append(out, fmt.Sprintf("%s: %s", name, limitText(limit)))
			}
		default:
			out = append(out, name)
		}
	}
	return out
}

func limitText(limit holdfast.CostTerms) string {
	text := limit.String()
	if limit.Unpriced {
		text += ", whatever has no price"
	}
	if len(limit.ApprovedBy) > 0 {
		text += ", or approved by " + strings.Join(limit.ApprovedBy, " or ")
	}
	return text
}

func listText(list []string) string {
	list = slices.Sorted(slices.Values(list))
	return cmp.Or(strings.Join(list, ", "), "none")
}

func windowText(w holdfast.ApplyWindow) string {
	lasts := w.Duration.String()
	if w.Duration%time.Minute == 0 {
		lasts = strings.TrimSuffix(strings.TrimSuffix(lasts, "0s"), "0m")
	}
	return fmt.Sprintf("%s %q for %s in %s", w.Kind, w.Schedule, lasts, cmp.Or(w.TimeZone, "UTC"))
}

// missing counts the rules of a list that another one does not have.
func missing(rules, from []holdfast.DriftRule) int {
	n := 0
	for _, rule := range rules {
		if !slices.Contains(from, rule) {
			n++
		}
	}
	return n
}
