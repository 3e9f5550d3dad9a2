package document_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

func TestSettingsFaults(t *testing.T) {
	t.Parallel()

	const (
		times  = `write five fields such as "0 */4 * * *": minute, hour, day of month, month, day of week`
		places = `write it as the report does, such as scaling_config[0].desired_size or tags["a.b"]`
	)
	rules := make([]string, 101)
	for i := range rules {
		rules[i] = fmt.Sprintf("{address: a.b%d, reason: r}", i)
	}
	tests := map[string]struct {
		line string
		want []string
	}{
		"a glob without quotes": {`drift: {ignore: [{address: **, reason: r}]}`, []string{
			`c.yaml:8: file is not valid YAML: did not find expected alphabetic or numeric character (put a text that begins with * or & in quotes)`,
		}},
		"an index without quotes": {`drift: {ignore: [{address: a.b, attribute: c[0].d, reason: r}]}`, []string{
			`c.yaml:8: file is not valid YAML: did not find expected ',' or '}' (between { and }, put a text that has [, ], { or } in quotes)`,
		}},
		"no schedule": {`drift: {schedule: never}`, []string{
			`c.yaml:8:21: spec.drift.schedule is "never" (` + times + `, or "off")`,
		}},
		"off, the boolean": {`drift: {schedule: false}`, []string{
			`c.yaml:8:21: spec.drift.schedule must be text, not the boolean false (put it in quotes: "false")`,
		}},
		"six fields": {`drift: {schedule: 0 0 0 * * *}`, []string{
			`c.yaml:8:21: spec.drift.schedule "0 0 0 * * *" is not a schedule: expected exactly 5 fields, found 6: [0 0 0 * * *] (` + times + `)`,
		}},
		"too often": {`drift: {schedule: "@every 5s"}`, []string{
			`c.yaml:8:21: spec.drift.schedule "@every 5s" does not leave a minute between two times (write "@every 1h", or ` + times[len("write "):] + `)`,
		}},
		"too long": {`drift: {schedule: "` + strings.Repeat("1,", 300) + `1 * * * *"}`, []string{
			`c.yaml:8:21: spec.drift.schedule is longer than 500 bytes`,
		}},
		"time zone": {`drift: {schedule: "@daily", timeZone: Mars/North}`, []string{
			`c.yaml:8:41: spec.drift.timeZone "Mars/North" is not known (write one such as "Europe/Berlin")`,
		}},
		"two time zones": {`drift: {schedule: CRON_TZ=UTC @daily, timeZone: Europe/Berlin}`, []string{
			`c.yaml:8:21: spec.drift.schedule "CRON_TZ=UTC @daily" sets the time zone twice (CRON_TZ and timeZone) (remove one of them)`,
		}},
		"time zone of nothing": {`drift: {timeZone: Europe/Berlin}`, []string{
			`c.yaml:8:21: spec.drift.timeZone is only valid with a schedule (add one, or remove timeZone)`,
		}},
		"time zone of off": {`drift: {schedule: off, timeZone: Europe/Berlin}`, []string{
			`c.yaml:8:36: spec.drift.timeZone is only valid with a schedule (add one, or remove timeZone)`,
		}},
		"ignore what": {`drift: {ignore: "**"}`, []string{
			`c.yaml:8:19: spec.drift.ignore must be a list, not the text "**" (write ignore: [**])`,
		}},
		"ignore a text": {`drift: {ignore: ["**"]}`, []string{
			`c.yaml:8:20: spec.drift.ignore[0] must be a mapping, not the text "**"`,
		}},
		"ignore nothing": {`drift: {ignore: [{}, {reson: r, address: ""}]}`, []string{
			`c.yaml:8:20: spec.drift.ignore[0].address is missing`,
			`c.yaml:8:20: spec.drift.ignore[0].reason is missing`,
			`c.yaml:8:25: unknown key "reson" in spec.drift.ignore[1] (did you mean "reason"?)`,
			`c.yaml:8:44: spec.drift.ignore[1].address is empty`,
		}},
		"addresses": {
			`drift: {ignore: [{address: web, reason: r}, {address: module.net, reason: r}, {address: ' a.b', reason: r}, {address: 'module.net["a.b"].x', reason: r}]}`,
			[]string{
				`c.yaml:8:30: spec.drift.ignore[0].address "web" can match no resource (write type and name such as aws_instance.web, "aws_instance.*" or "**")`,
				`c.yaml:8:57: spec.drift.ignore[1].address "module.net" can match no resource (write module.net.** for all that is in the module)`,
				`c.yaml:8:91: spec.drift.ignore[2].address " a.b" has spaces around it (remove them)`,
				`c.yaml:8:121: spec.drift.ignore[3].address "module.net[\"a.b\"].x" can match no resource (write module.net["a.b"].x.** for all that is in the module)`,
			},
		},
		"long address": {`drift: {ignore: [{address: ` + strings.Repeat("a.", 200) + `, reason: r}]}`, []string{
			`c.yaml:8:30: spec.drift.ignore[0].address is longer than 250 bytes (write a shorter one, with * and **)`,
		}},
		"attributes": {
			`drift: {ignore: [{address: a.b, attribute: a.0.b, reason: r}, {address: a.b, attribute: ta*, reason: r}, {address: a.b, attribute: 'a["b', reason: r}]}`,
			[]string{
				`c.yaml:8:46: spec.drift.ignore[0].attribute "a.0.b" is not the path of an attribute (write an index as [0])`,
				`c.yaml:8:91: spec.drift.ignore[1].attribute "ta*" is not the path of an attribute (* matches a whole step)`,
				`c.yaml:8:134: spec.drift.ignore[2].attribute "a[\"b" is not the path of an attribute (` + places + `)`,
			},
		},
		"empty attributes": {
			`drift: {ignore: [{address: a.b, attribute: "", reason: r}, {address: a.b, attribute: , reason: r}]}`,
			[]string{
				`c.yaml:8:46: spec.drift.ignore[0].attribute is empty (leave it out to hide all of the resource)`,
				`c.yaml:8:77: spec.drift.ignore[1].attribute is empty (leave it out to hide all of the resource)`,
			},
		},
		"long attribute": {`drift: {ignore: [{address: a.b, attribute: ` + strings.Repeat("a.", 200) + `a, reason: r}]}`, []string{
			`c.yaml:8:46: spec.drift.ignore[0].attribute is longer than 250 bytes (write a shorter one: all below it is hidden too)`,
		}},
		"reasons": {
			`drift: {ignore: [{address: a.b, reason: " "}, {address: a.b, reason: ` + strings.Repeat("because ", 100) + `}]}`,
			[]string{
				`c.yaml:8:43: spec.drift.ignore[0].reason is empty`,
				`c.yaml:8:72: spec.drift.ignore[1].reason is longer than 500 bytes`,
			},
		},
		"expires": {
			`drift: {ignore: [{address: a.b, reason: r, expires: tomorrow}, {address: a.b, reason: r, expires: 2027-02-30}, {address: a.b, reason: r, expires: 2027}]}`,
			[]string{
				`c.yaml:8:55: spec.drift.ignore[0].expires "tomorrow" is not a date (write one such as 2027-01-31 or 2027-01-31T18:00:00Z)`,
				`c.yaml:8:101: spec.drift.ignore[1].expires "2027-02-30" is not a date (write one such as 2027-01-31 or 2027-01-31T18:00:00Z)`,
				`c.yaml:8:149: spec.drift.ignore[2].expires must be text, not the number 2027 (put it in quotes: "2027")`,
			},
		},
		"too many": {`drift: {ignore: [` + strings.Join(rules, ", ") + `]}`, []string{
			`c.yaml:8:2910: spec.drift.ignore has 101 rules, more than 100 (write wider ones, with * and **)`,
		}},
		"too many windows": {`apply: {windows: [` + strings.Repeat(`{kind: deny, schedule: "@daily", duration: 1h}, `, 51) + `]}`, []string{
			`c.yaml:8:2421: spec.apply.windows has 51 entries, more than 50 (write schedules that cover more)`,
		}},
		"a window without its kind": {`apply: {windows: [{schedule: "@daily", duration: 1h}]}`, []string{
			`c.yaml:8:21: spec.apply.windows[0].kind is missing`,
		}},
		"an unknown kind of window": {`apply: {windows: [{kind: alow, schedule: "@daily", duration: 1h}]}`, []string{
			`c.yaml:8:28: spec.apply.windows[0].kind is "alow" (did you mean "allow"?)`,
		}},
		"a deny window that never comes": {`apply: {windows: [{kind: deny, schedule: 0 0 31 4 *, duration: 1h}]}`, []string{
			`c.yaml:8:44: spec.apply.windows[0].schedule "0 0 31 4 *" never comes (check the day of the month)`,
		}},
		"a deny window with half a schedule": {`apply: {windows: [{kind: deny, schedule: CRON_TZ=UTC, duration: 1h}]}`, []string{
			`c.yaml:8:44: spec.apply.windows[0].schedule "CRON_TZ=UTC" has a time zone and no times (` + times + `)`,
		}},
		"a window that is off": {`apply: {windows: [{kind: deny, schedule: "off", duration: 1h}]}`, []string{
			`c.yaml:8:44: spec.apply.windows[0].schedule "off" is not a schedule: expected exactly 5 fields, found 1: [off] (` + times + `)`,
		}},
		"an empty window": {`apply: {windows: [{}, ~]}`, []string{
			`c.yaml:8:21: spec.apply.windows[0].schedule is missing`,
			`c.yaml:8:21: spec.apply.windows[0].kind is missing`,
			`c.yaml:8:21: spec.apply.windows[0].duration is missing`,
			`c.yaml:8:25: spec.apply.windows[1].schedule is missing`,
			`c.yaml:8:25: spec.apply.windows[1].kind is missing`,
			`c.yaml:8:25: spec.apply.windows[1].duration is missing`,
		}},
		"durations": {
			`apply: {windows: [{kind: deny, schedule: "@daily", duration: -1h}, {kind: deny, schedule: "@daily", duration: 4}, {kind: deny, schedule: "@daily", duration: 3 hours}, {kind: deny, schedule: "@daily", duration: 800h}]}`,
			[]string{
				`c.yaml:8:64: spec.apply.windows[0].duration is -1h0m0s (it must be positive and at most 744h0m0s)`,
				`c.yaml:8:113: spec.apply.windows[1].duration must be text, not the number 4 (4h? Write a duration such as 4h or 4m)`,
				`c.yaml:8:160: spec.apply.windows[2].duration "3 hours" is not a duration (write one such as "4h" or "90m")`,
				`c.yaml:8:213: spec.apply.windows[3].duration is 800h0m0s (it must be positive and at most 744h0m0s)`,
			},
		},
		"a window in no time zone": {`apply: {windows: [{kind: allow, schedule: "@daily", duration: 1h, timeZone: Local}]}`, []string{
			`c.yaml:8:79: spec.apply.windows[0].timeZone "Local" is not known (write one such as "Europe/Berlin")`,
		}},
		"a key that no window has": {`apply: {windows: [{kind: allow, schedule: "@daily", duration: 1h, actions: [apply]}]}`, []string{
			`c.yaml:8:69: unknown key "actions" in spec.apply.windows[0] (one of duration, kind, schedule, timeZone)`,
		}},
		"terms": {`apply: {requires: [cost, {approvals: {count: 0}}, {cost: {maxIncrease: 1e3, currency: usd}}, {costs: {}}, {approvals: {count: 1}, cost: {}}, {destroy: {count: 2}}]}`, []string{
			`c.yaml:8:22: spec.apply.requires[0] has no limit (write - cost: {maxIncrease: 100, currency: USD})`,
			`c.yaml:8:48: spec.apply.requires[1].approvals.count must be a number from 1 to 10, not the number 0`,
			`c.yaml:8:74: spec.apply.requires[2].cost.maxIncrease must be a decimal number, not the number 1e3 (write one such as 100 or 12.50)`,
			`c.yaml:8:89: spec.apply.requires[2].cost.currency is "usd" (write the three letters of ISO 4217, such as USD or EUR)`,
			`c.yaml:8:97: unknown key "costs" in spec.apply.requires[3] (did you mean "cost"?)`,
			`c.yaml:8:109: spec.apply.requires[4] has several conditions (write each as an entry of the list)`,
			`c.yaml:8:154: spec.apply.requires[5].destroy.approvals is missing`,
			`c.yaml:8:155: unknown key "count" in spec.apply.requires[5].destroy (the only one is approvals)`,
		}},
		"requires": {`apply: {requires: [aproved, mergeable]}`, []string{
			`c.yaml:8:22: spec.apply.requires has "aproved" (did you mean "approved"?)`,
		}},
		"protected perhaps": {`deletion: {protected: maybe}`, []string{
			`c.yaml:8:25: spec.deletion.protected must be true or false, not the text "maybe"`,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			docs, faults := document.ParseClusters("c.yaml", []byte(short("module: {path: infra}", tc.line)))
			wantFaults(t, faults, tc.want...)
			if len(docs) != 1 && !strings.Contains(name, "without quotes") {
				t.Fatalf("%d documents", len(docs))
			}
			// Half a rule would hide more than was meant.
			for _, doc := range docs {
				if rules := doc.Cluster.Drift.Ignore; len(rules) > 0 && name != "too many" {
					t.Errorf("rules %+v are kept", rules)
				}
			}
		})
	}
}

func TestDriftSettings(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		line string
		want string
	}{
		"none":               {"region: r", "{   []}"},
		"empty":              {"drift: {}", "{   []}"},
		"off":                {"drift: {schedule: off}", "{off   []}"},
		"off, quoted":        {`drift: {schedule: "off", onDrift: ignore}`, "{off  ignore []}"},
		"an empty list":      {"drift: {schedule: '@hourly', ignore: []}", "{@hourly   []}"},
		"its own time zone":  {"drift: {schedule: TZ=Asia/Tokyo 0 4 * * *}", "{TZ=Asia/Tokyo 0 4 * * *   []}"},
		"every ninety":       {"drift: {schedule: '@every 90m', timeZone: Asia/Tokyo}", "{@every 90m Asia/Tokyo  []}"},
		"resource in module": {"drift: {ignore: [{address: 'module.a.module.b.x.y', reason: r}]}", "{   [{module.a.module.b.x.y  r 0001-01-01 00:00:00 +0000 UTC}]}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clusterOf(t, "c.yaml", short("module: {path: infra}", tc.line)).Cluster.Drift
			if fmt.Sprint(got) != tc.want {
				t.Errorf("got %v, want %s", got, tc.want)
			}
			if due := document.DriftDue(got, "", "a", time.Now()); due.IsZero() != (got.Schedule == "" || got.Schedule == document.DriftOff) {
				t.Errorf("%v is due at %s", got, due)
			}
		})
	}
}

// FuzzAcceptedSchedulesWork says that no schedule is accepted that later counts as
// unreadable: such a window would be closed forever, such a check never due.
func FuzzAcceptedSchedulesWork(f *testing.F) {
	f.Add("0 */4 * * *", "Europe/Berlin")
	f.Add("CRON_TZ=UTC @every 90m", "")
	f.Add("TZ= 1", "")
	f.Add("0 0 29 2 1", "Asia/Tokyo")
	now := time.Date(2026, 11, 21, 15, 7, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, schedule, zone string) {
		text := short("module: {path: infra}", fmt.Sprintf("drift: {schedule: %q, timeZone: %q}", schedule, zone))
		docs, faults := document.ParseClusters("c.yaml", []byte(text))
		if len(faults) > 0 || len(docs) == 0 {
			return
		}
		settings := docs[0].Cluster.Drift
		if settings.Schedule == "" || settings.Schedule == document.DriftOff {
			return
		}
		due := document.DriftDue(settings, "", "a", now)
		if !due.After(now) {
			t.Errorf("%v is due at %s", settings, due)
		}
		window := holdfast.ApplyWindow{Kind: "deny", Schedule: settings.Schedule, TimeZone: settings.TimeZone, Duration: time.Hour}
		if _, change := document.WindowsOpen([]holdfast.ApplyWindow{window}, now); change.IsZero() {
			t.Errorf("a window of %v never changes", settings)
		}
	})
}
