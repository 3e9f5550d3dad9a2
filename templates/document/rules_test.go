package document_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestDriftDue(t *testing.T) {
	t.Parallel()

	const zone = "Europe/Berlin"
	tests := map[string]struct {
		settings holdfast.DriftSettings
		fallback string
		last     string
		slot     string // empty: never
		spread   time.Duration
	}{
		"every four hours": {
			holdfast.DriftSettings{Schedule: "0 */4 * * *"},
			"",
			"2026-11-21T15:07:00Z", "2026-11-21T16:00:00Z", 24 * time.Minute,
		},
		"checked at the very time": {
			holdfast.DriftSettings{Schedule: "0 */4 * * *"},
			"",
			"2026-11-21T16:00:00Z", "2026-11-21T20:00:00Z", 24 * time.Minute,
		},
		"once a day": {
			holdfast.DriftSettings{Schedule: "0 4 * * *"},
			"",
			"2026-11-21T15:07:00Z", "2026-11-22T04:00:00Z", 30 * time.Minute,
		},
		"every minute": {
			holdfast.DriftSettings{Schedule: "* * * * *"},
			"",
			"2026-11-21T15:07:30Z", "2026-11-21T15:08:00Z", 6 * time.Second,
		},
		"before a weekend": {
			holdfast.DriftSettings{Schedule: "0 4 * * 1-5"},
			"",
			"2026-11-20T15:07:00Z", "2026-11-23T04:00:00Z", 30 * time.Minute,
		},
		"a leap day": {
			holdfast.DriftSettings{Schedule: "0 4 29 2 *"},
			"",
			"2026-11-20T15:07:00Z", "2028-02-29T04:00:00Z", 30 * time.Minute,
		},
		"in a time zone": {
			holdfast.DriftSettings{Schedule: "0 4 * * *", TimeZone: zone},
			"",
			"2026-11-21T15:07:00Z", "2026-11-22T03:00:00Z", 30 * time.Minute,
		},
		"in a time zone of the schedule": {
			holdfast.DriftSettings{Schedule: "CRON_TZ=Europe/Berlin 0 4 * * *"},
			"",
			"2026-11-21T15:07:00Z", "2026-11-22T03:00:00Z", 30 * time.Minute,
		},
		"the server's": {
			holdfast.DriftSettings{},
			"CRON_TZ=Europe/Berlin 0 4 * * *",
			"2026-11-21T15:07:00Z", "2026-11-22T03:00:00Z", 30 * time.Minute,
		},
		"rather one's own": {
			holdfast.DriftSettings{Schedule: "0 5 * * *"},
			"0 4 * * *",
			"2026-11-21T15:07:00Z", "2026-11-22T05:00:00Z", 30 * time.Minute,
		},
		"every so often": {
			holdfast.DriftSettings{Schedule: "@every 2h"},
			"",
			"2026-11-21T15:07:00Z", "2026-11-21T16:00:00Z", 12 * time.Minute,
		},
		"last in another time zone": {
			holdfast.DriftSettings{Schedule: "0 4 * * *"},
			"",
			"2026-11-21T23:30:00-08:00", "2026-11-23T04:00:00Z", 30 * time.Minute,
		},
		"never checked":           {holdfast.DriftSettings{Schedule: "@daily"}, "", "0001-01-01T00:00:00Z", "1970-01-02T00:00:00Z", 30 * time.Minute},
		"no schedule":             {holdfast.DriftSettings{}, "", "2026-11-21T15:07:00Z", "", 0},
		"off":                     {holdfast.DriftSettings{Schedule: "off"}, "0 4 * * *", "2026-11-21T15:07:00Z", "", 0},
		"off by the server":       {holdfast.DriftSettings{}, "off", "2026-11-21T15:07:00Z", "", 0},
		"unreadable":              {holdfast.DriftSettings{Schedule: "often"}, "0 4 * * *", "2026-11-21T15:07:00Z", "", 0},
		"unknown time zone":       {holdfast.DriftSettings{Schedule: "0 4 * * *", TimeZone: "Mars/North"}, "", "2026-11-21T15:07:00Z", "", 0},
		"a time zone and no time": {holdfast.DriftSettings{Schedule: "CRON_TZ=UTC"}, "", "2026-11-21T15:07:00Z", "", 0},
		"a day that never comes":  {holdfast.DriftSettings{Schedule: "0 4 30 2 *"}, "", "2026-11-21T15:07:00Z", "", 0},
		// Clocks in Berlin go from 2:00 to 3:00 on 2027-03-28, from 3:00 to 2:00 on
		// 2026-10-25.
		"the night that loses an hour": {
			holdfast.DriftSettings{Schedule: "0 4 * * *", TimeZone: zone},
			"",
			"2027-03-27T04:00:00Z", "2027-03-28T02:00:00Z", 30 * time.Minute,
		},
		"within the hour that is lost": {
			holdfast.DriftSettings{Schedule: "30 2 * * *", TimeZone: zone},
			"",
			"2027-03-27T04:00:00Z", "2027-03-29T00:30:00Z", 30 * time.Minute,
		},
		"the night that wins an hour": {
			holdfast.DriftSettings{Schedule: "0 4 * * *", TimeZone: zone},
			"",
			"2026-10-24T04:00:00Z", "2026-10-25T03:00:00Z", 30 * time.Minute,
		},
		"hourly through the hour that is lost": {
			holdfast.DriftSettings{Schedule: "0 * * * *", TimeZone: zone},
			"",
			"2027-03-28T00:10:00Z", "2027-03-28T01:00:00Z", 6 * time.Minute,
		},
		"hourly through the hour that comes twice": {
			holdfast.DriftSettings{Schedule: "0 * * * *", TimeZone: zone},
			"",
			"2026-10-25T00:10:00Z", "2026-10-25T01:00:00Z", 6 * time.Minute,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range 50 {
				cluster := fmt.Sprintf("cluster-%d", i)
				got := document.DriftDue(tc.settings, tc.fallback, cluster, instant(t, tc.last))
				if tc.slot == "" {
					if !got.IsZero() {
						t.Fatalf("due at %s, want never", got)
					}
					continue
				}
				slot := instant(t, tc.slot)
				if late := got.Sub(slot); late < 0 || late > tc.spread || got.Location() != time.UTC {
					t.Fatalf("due at %s, want between %s and %s later", got, slot, tc.spread)
				}
			}
		})
	}
}

// TestDriftDueSpreads says that clusters with one schedule do not come at once.
func TestDriftDueSpreads(t *testing.T) {
	t.Parallel()

	const clusters, buckets = 10_000, 30 // one for each minute
	settings := holdfast.DriftSettings{Schedule: "0 4 * * *"}
	last, slot := instant(t, "2026-11-21T15:07:00Z"), instant(t, "2026-11-22T04:00:00Z")
	var counts [buckets + 1]int
	for i := range clusters {
		name := fmt.Sprintf("prod-%04d", i)
		due := document.DriftDue(settings, "", name, last)
		counts[due.Sub(slot)/time.Minute]++
		if again := document.DriftDue(settings, "", name, last.Add(time.Hour)); !again.Equal(due) {
			t.Fatalf("%s is due at %s, and then at %s", name, due, again)
		}
	}
	for minute, n := range counts[:buckets] {
		if n < clusters/buckets/2 || n > clusters/buckets*2 {
			t.Errorf("%d of %d clusters are due in minute %d", n, clusters, minute)
		}
	}
}

// TestDriftDueOncePerSlot plays months of checks: whenever the server was down,
// each slot in which a check was possible has one, and none has two.
func TestDriftDueOncePerSlot(t *testing.T) {
	t.Parallel()

	schedules := []string{
		"* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 */4 * * *", "15 1-5 * * 1-5", "0 0 1 * *",
		"@hourly", "@daily", "@weekly", "0 9,10,17 * * *", "59 23 31 * *",
	}
	zones := []string{"", "Europe/Berlin", "America/New_York", "Africa/Cairo", "America/Havana", "Asia/Beirut", "Asia/Kathmandu", "Pacific/Apia"}
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		settings := holdfast.DriftSettings{
			Schedule: schedules[rng.IntN(len(schedules))],
			TimeZone: zones[rng.IntN(len(zones))],
		}
		name := fmt.Sprintf("cluster-%d", rng.IntN(10_000))
		text := "CRON_TZ=UTC " + settings.Schedule
		if settings.TimeZone != "" {
			text = "CRON_TZ=" + settings.TimeZone + " " + settings.Schedule
		}
		reference, err := cron.ParseStandard(text)
		if err != nil {
			t.Fatal(err)
		}
		// Days around the changes of the clocks are among the starts.
		last := time.Date(2026, time.Month(1+rng.IntN(12)), 1+rng.IntN(28), rng.IntN(24), rng.IntN(60), rng.IntN(60), rng.IntN(1e9), time.UTC)
		slot := reference.Next(last) // the next one that must have a check
		for range 60 {
			due := document.DriftDue(settings, "", name, last)
			end := reference.Next(slot)
			if due.Before(slot) || !due.Before(end) {
				t.Fatalf("%v of %s: after %s due at %s, outside of the slot from %s to %s", settings, name, last, due, slot, end)
			}
			// The check ends at some time after it is due: promptly, or after
			// the server was down for several slots.
			late := time.Duration(rng.Float64() * float64(end.Sub(due)))
			if rng.IntN(5) == 0 {
				late += time.Duration(rng.Float64() * 4 * float64(end.Sub(slot)))
			}
			last = due.Add(late)
			for slot = end; !slot.After(last); slot = reference.Next(slot) { // these have passed
			}
		}
	}
}

func TestDriftDueEveryIsTheSameForAll(t *testing.T) {
	t.Parallel()
	settings := holdfast.DriftSettings{Schedule: "@every 90m"}
	last := instant(t, "2026-11-21T15:07:00Z")
	for i := range 100 {
		due := document.DriftDue(settings, "", "a", last)
		if d := due.Sub(last); i > 0 && (d < 80*time.Minute || d > 100*time.Minute) {
			t.Fatalf("due %s after a check at %s", d, last)
		}
		if late := due.Sub(due.Truncate(90 * time.Minute)); late > 9*time.Minute {
			t.Fatalf("due at %s, %s late", due, late)
		}
		last = due.Add(time.Duration(i%7) * time.Minute / 2)
	}
}

func TestHides(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		glob string
		yes  []string
		no   []string
	}{
		"itself": {
			"aws_instance.web",
			[]string{"aws_instance.web"},
			[]string{"aws_instance.web2", "aws_instance.we", "aws_instance.web[0]", "module.a.aws_instance.web", "", "aws_instance"},
		},
		"a star": {
			"aws_instance.*",
			[]string{"aws_instance.web", "aws_instance.web[0]", `aws_instance.web["a"]`, "aws_instance."},
			[]string{"aws_instances.web", `aws_instance.web["a.b"]`, "aws_instance"},
		},
		"a star within": {
			"aws_*.web",
			[]string{"aws_instance.web", "aws_.web"},
			[]string{"aws_a.b.web", "gcp_instance.web"},
		},
		"several stars": {
			"module.*.aws_*.w*b",
			[]string{"module.net.aws_eip.wb", `module.net["x"].aws_eip.web`},
			[]string{"module.net.module.sub.aws_eip.web", "module.net.aws_eip.web[0]"},
		},
		"two stars": {
			"module.net.**",
			[]string{"module.net.aws_eip.a", "module.net.module.sub.aws_eip.a"},
			[]string{"module.net", "module.net2.aws_eip.a", "module.net[0].aws_eip.a"},
		},
		"two stars in front": {
			"**.aws_eip.a",
			[]string{"module.net.aws_eip.a", "module.a.module.b.aws_eip.a"},
			[]string{"aws_eip.a", "module.net.aws_eip.ab"},
		},
		"both": {
			"**aws_eip.*[0]",
			[]string{"aws_eip.a[0]", "module.x.aws_eip.a[0]", "aws_eip.a.aws_eip.b[0]"},
			[]string{"aws_eip.a.b[0]", "aws_eip.a[1]"},
		},
		"everything": {"**", []string{"a", "a.b", `m.x["y.z"].a.b`, ""}, nil},
		"brackets": {
			`aws_eip.a["x"]`,
			[]string{`aws_eip.a["x"]`},
			[]string{`aws_eip.ax`, `aws_eip.a["y"]`, `aws_eip.a"x"`},
		},
		"any index":      {"aws_eip.a[*]", []string{"aws_eip.a[0]", `aws_eip.a["x"]`}, []string{"aws_eip.a", "aws_eip.ab"}},
		"question marks": {"aws_eip.?", []string{"aws_eip.?"}, []string{"aws_eip.a"}},
		"nothing":        {"", []string{""}, []string{"a.b"}},
		"too long":       {strings.Repeat("*a", 200), nil, []string{strings.Repeat("a", 400)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := holdfast.DriftRule{Address: tc.glob, Reason: "r"}
			for _, address := range tc.yes {
				if !document.Hides(rule, time.Now(), address) || !document.HidesAttribute(rule, time.Now(), address, "any.thing") {
					t.Errorf("%q does not hide %q", tc.glob, address)
				}
			}
			for _, address := range tc.no {
				if document.Hides(rule, time.Now(), address) || document.HidesAttribute(rule, time.Now(), address, "any.thing") {
					t.Errorf("%q hides %q", tc.glob, address)
				}
			}
		})
	}
}

func TestHidesAttribute(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		pattern string
		yes     []string
		no      []string
	}{
		"a name": {
			"tags",
			[]string{"tags", "tags.a", `tags["a.b"]`, "tags[0]", "tags.a.b[3].c"},
			[]string{"tags_all", "tag", "x.tags", ""},
		},
		"a path": {
			"scaling_config[0].desired_size",
			[]string{"scaling_config[0].desired_size", "scaling_config[0].desired_size.x"},
			[]string{"scaling_config", "scaling_config[0]", "scaling_config[1].desired_size", "scaling_config[0].desired_size2", "scaling_config.desired_size"},
		},
		"any index":          {"a[*].b", []string{"a[0].b", "a[17].b", `a["x"].b`, "a.x.b"}, []string{"a.b", "a[0].c", "a[0][1].b"}},
		"any step":           {"a.*", []string{"a.x", "a[0]", `a["x.y"].z`}, []string{"a", "b.x"}},
		"any first step":     {"*.size", []string{"node.size", "pool.size.x"}, []string{"size", "pool[0].size"}},
		"quotes":             {`tags["a.b"]`, []string{`tags["a.b"]`, `tags["a.b"].c`}, []string{"tags.a.b", "tags.a", `tags["a"]`}},
		"quotes not needed":  {`tags["a"]`, []string{"tags.a", `tags["a"].b`}, []string{"tags.ab"}},
		"quotes, not number": {`tags["0"]`, []string{`tags["0"]`}, []string{"tags[0]"}},
		"escapes":            {`tags["a\"b]"]`, []string{`tags["a\"b]"]`}, []string{`tags["a"]`}},
		"all":                {"", []string{"", "a", "a.b"}, nil},
		// What was refused when it was read.
		"unreadable dots":     {"a..b", nil, []string{"a..b", "a.b", "a"}},
		"unreadable brackets": {"a[b]", nil, []string{"a[b]", "a.b", "a"}},
		"unreadable index":    {"a.0", nil, []string{"a[0]", "a.0"}},
		"part of a step":      {"ta*", nil, []string{"tags"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := holdfast.DriftRule{Address: "a.*", Attribute: tc.pattern, Reason: "r"}
			if tc.pattern != "" && document.Hides(rule, time.Now(), "a.b") {
				t.Error("hides the resource as a whole")
			}
			for _, path := range tc.yes {
				if !document.HidesAttribute(rule, time.Now(), "a.b", path) {
					t.Errorf("%q does not hide %q", tc.pattern, path)
				}
				if document.HidesAttribute(rule, time.Now(), "c.b", path) {
					t.Errorf("%q hides %q of another resource", tc.pattern, path)
				}
			}
			for _, path := range tc.no {
				if document.HidesAttribute(rule, time.Now(), "a.b", path) {
					t.Errorf("%q hides %q", tc.pattern, path)
				}
			}
		})
	}
}

func TestHidesUntilItExpires(t *testing.T) {
	t.Parallel()
	end := instant(t, "2027-01-31T00:00:00Z")
	whole := holdfast.DriftRule{Address: "a.b", Reason: "r", Expires: end}
	part := holdfast.DriftRule{Address: "a.b", Attribute: "c", Reason: "r", Expires: end}
	for now, want := range map[time.Time]bool{end.Add(-time.Nanosecond): true, end: false, end.Add(time.Hour): false} {
		if document.Hides(whole, now, "a.b") != want || document.HidesAttribute(whole, now, "a.b", "c") != want ||
			document.HidesAttribute(part, now, "a.b", "c") != want {
			t.Errorf("at %s a rule that expires at %s hides: %t", now, end, !want)
		}
	}
}

// FuzzHides holds the glob against a regular expression.
func FuzzHides(f *testing.F) {
	f.Add("module.*.aws_**.x[*]", `module.a["b"].aws_eip.x[0]`)
	f.Add("***", "a.b")
	f.Add("**a*a.a", "a.aa.a")
	f.Add("*.*a*", "x.y.za")
	f.Fuzz(func(t *testing.T, glob, address string) {
		if len(glob) > 250 || len(address) > 1000 || strings.ContainsAny(glob+address, "\x00") {
			return
		}
		rest := strings.ReplaceAll(regexp.QuoteMeta(glob), `\*\*`, "\x00")
		rest = strings.ReplaceAll(rest, `\*`, `[^.]*`)
		reference, err := regexp.Compile(`(?s)\A` + strings.ReplaceAll(rest, "\x00", ".*") + `\z`)
		if err != nil {
			return // not UTF-8
		}
		got := document.Hides(holdfast.DriftRule{Address: glob}, time.Time{}, address)
		if want := reference.MatchString(address); got != want {
			t.Errorf("%q hides %q: %t, want %t", glob, address, got, want)
		}
	})
}

// FuzzHidesAttribute makes a path of steps and says what must match it.
func FuzzHidesAttribute(f *testing.F) {
	f.Add("tags\x00a.b\x00 0\x00x", uint8(1))
	f.Add("a[*]\x00\"", uint8(0))
	f.Add("*\x00\xff", uint8(7))
	f.Fuzz(func(t *testing.T, text string, star uint8) {
		if len(text) > 200 {
			return
		}
		var paths, wild []string // of the first step, of two, …
		path, pattern := "", ""
		steps := strings.Split(text, "\x00")
		for i, name := range steps {
			step := "[" + strconv.Quote(name) + "]"
			if number, ok := strings.CutPrefix(name, " "); ok && number != "" && strings.Trim(number, "0123456789") == "" {
				step = "[" + number + "]"
			} else if plain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_"); plain == "" && name != "" {
				if step = name; i > 0 {
					step = "." + name
				}
			}
			path += step
			if int(star)%len(steps) == i {
				step = "[*]"
			}
			pattern += step
			paths, wild = append(paths, path), append(wild, pattern)
		}
		hides := func(pattern, path string) bool {
			return document.HidesAttribute(holdfast.DriftRule{Address: "a.b", Attribute: pattern}, time.Time{}, "a.b", path)
		}
		for i, path := range paths {
			for j := range paths {
				if got := hides(paths[j], path); got != (j <= i) {
					t.Errorf("%q hides %q: %t", paths[j], path, got)
				}
				if got := hides(wild[j], path); got != (j <= i) {
					t.Errorf("%q hides %q: %t", wild[j], path, got)
				}
			}
		}
		hides(text, path) // whatever it is: no panic
		hides(path, text)
	})
}
