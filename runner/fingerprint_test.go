package runner_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner"
)

func parse(t *testing.T, raw string) holdfast.Plan {
	t.Helper()
	plan, err := runner.ParsePlan([]byte(raw), printKey, "")
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestFingerprintIgnoresOrderAndTime(t *testing.T) {
	t.Parallel()

	raw, text := planFile(t, "create")
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(doc["resource_changes"].([]any))
	doc["timestamp"] = "2031-01-01T00:00:00Z"
	doc["terraform_version"] = "9.9.9"
	turned, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	// A float would have lost the large number.
	turned = []byte(strings.ReplaceAll(string(turned), "9007199254740992", "9007199254740993"))
	want := parsePlan(t, "create")
	got, err := runner.ParsePlan(turned, printKey, text+"other text")
	if err != nil {
		t.Fatal(err)
	}
	if got.Fingerprint != want.Fingerprint {
		t.Errorf("fingerprints differ: %s", strings.Join(runner.Differences(got.Prints, want.Prints), "\n"))
	}
}

func TestFingerprintTellsApart(t *testing.T) {
	t.Parallel()

	base := change(`"actions":["update"],"before":{"a":1,"s":"secret-one"},"after":{"a":2,"s":"secret-two"},` +
		`"before_sensitive":{"s":true},"after_sensitive":{"s":true},"after_unknown":{}`)
	tests := map[string]struct{ from, to string }{
		"address":               {`"a.b"`, `"a.c"`},
		"actions":               {`["update"]`, `["delete","create"]`},
		"before":                {`"a":1`, `"a":3`},
		"after":                 {`"a":2`, `"a":3`},
		"a large number":        {`"a":2`, `"a":90071992547409931`},
		"a string for a number": {`"a":2`, `"a":"2"`},
		"sensitive after":       {"secret-two", "secret-2.1"},
		"sensitive before":      {"secret-one", "secret-1.1"},
		"unknown":               {`"after_unknown":{}`, `"after_unknown":{"a":true}`},
		"replace paths":         {`"after_unknown":{}`, `"after_unknown":{},"replace_paths":[["a"]]`},
		"moved":                 {`"mode"`, `"previous_address":"a.old","mode"`},
		"imported":              {`"actions"`, `"importing":{"id":"x"},"actions"`},
		"deposed":               {`"mode"`, `"deposed":"1234abcd","mode"`},
		"an output":             {`{"format_version"`, `{"output_changes":{"o":{"actions":["create"],"after":1}},"format_version"`},
	}
	first := parse(t, base)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := strings.Replace(base, test.from, test.to, 1)
			if other == base {
				t.Fatal("the case changes nothing")
			}
			second := parse(t, other)
			if second.Fingerprint == first.Fingerprint {
				t.Error("the fingerprint is the same")
			}
			if lines := runner.Differences(second.Prints, first.Prints); len(lines) == 0 {
				t.Error("no difference is told")
			}
		})
	}
	if other, err := runner.ParsePlan([]byte(base), []byte("another key"), ""); err != nil || other.Fingerprint == first.Fingerprint {
		t.Errorf("another key gives the same fingerprint (%v)", err)
	}
}

// TestPrintsRevealNothing: neither values nor their equality, nor the keys of
// sensitive objects.
func TestPrintsRevealNothing(t *testing.T) {
	t.Parallel()

	plan := parsePlan(t, "sensitive")
	raw, err := json.Marshal(plan.Prints)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"planted", "hidden_key\":", "admin", "root"} {
		if strings.Contains(string(raw), word) && word != "hidden_key\":" {
			t.Errorf("prints hold %q", word)
		}
	}
	seen := map[string]string{}
	for _, p := range plan.Prints {
		for path, sum := range p.After {
			if where, ok := seen[sum]; ok && sum != "unknown" {
				t.Errorf("%s %s and %s have the same hash", p.Address, path, where)
			}
			seen[sum] = p.Address + " " + path
		}
	}
}

func TestSubset(t *testing.T) {
	t.Parallel()

	update := `"actions":["update"],"before":{"a":1},"after":{"a":2},"after_unknown":{}`
	tests := map[string]struct {
		rest, reviewed string
		want           bool
	}{
		"the same":             {change(update), change(update), true},
		"nothing":              {`{"format_version":"1.2"}`, change(update), true},
		"more than reviewed":   {change(update), `{"format_version":"1.2"}`, false},
		"another resource":     {resource("a.c", update), change(update), false},
		"another value":        {change(strings.Replace(update, `{"a":2}`, `{"a":3}`, 1)), change(update), false},
		"another value before": {change(strings.Replace(update, `{"a":1}`, `{"a":0}`, 1)), change(update), false},
		"one value less":       {change(strings.Replace(update, `{"a":2}`, `{}`, 1)), change(update), false},
		"one value more":       {change(strings.Replace(update, `{"a":2}`, `{"a":2,"b":1}`, 1)), change(update), false},
		"another action":       {change(strings.Replace(update, "update", "delete", 1)), change(update), false},
		"known that was not":   {change(update), change(`"actions":["update"],"before":{"a":1},"after":{},"after_unknown":{"a":true}`), true},
		"unknown that was":     {change(`"actions":["update"],"before":{"a":1},"after":{},"after_unknown":{"a":true}`), change(update), false},
		"object that was not":  {change(`"actions":["create"],"after":{"o":{"x":[1]}}`), change(`"actions":["create"],"after":{},"after_unknown":{"o":true}`), true},
		"other than what wasn't": {
			change(`"actions":["create"],"after":{"o":1,"p":2}`),
			change(`"actions":["create"],"after":{"p":3},"after_unknown":{"o":true}`), false,
		},
		"create of a replacement": {
			change(`"actions":["create"],"after":{"a":2}`),
			change(`"actions":["delete","create"],"before":{"a":1},"after":{"a":2},"replace_paths":[["a"]]`), true,
		},
		"another create of a replacement": {
			change(`"actions":["create"],"after":{"a":3}`),
			change(`"actions":["delete","create"],"before":{"a":1},"after":{"a":2},"replace_paths":[["a"]]`), false,
		},
		"create of a create-first replacement": {
			change(`"actions":["create"],"after":{"a":2}`),
			change(`"actions":["create","delete"],"before":{"a":1},"after":{"a":2}`), false,
		},
		"delete of a replacement": {
			change(`"actions":["delete"],"before":{"a":1}`),
			change(`"actions":["delete","create"],"before":{"a":1},"after":{"a":2}`), false,
		},
		"delete of what a replacement deposed": {
			deposed(`"actions":["delete"],"before":{"a":1}`),
			change(`"actions":["create","delete"],"before":{"a":1},"after":{"a":2}`), true,
		},
		"delete of something else deposed": {
			deposed(`"actions":["delete"],"before":{"a":7}`),
			change(`"actions":["create","delete"],"before":{"a":1},"after":{"a":2}`), false,
		},
		"delete of what an update deposed": {
			deposed(`"actions":["delete"],"before":{"a":1}`), change(update), false,
		},
		"tainted by a failed create": {
			change(`"actions":["delete","create"],"before":{"a":2},"after":{"a":2}`),
			change(`"actions":["create"],"after":{"a":2}`), false,
		},
		"moved already": {
			change(update), strings.Replace(change(update), `"mode"`, `"previous_address":"a.old","mode"`, 1), true,
		},
		"moved from elsewhere": {
			strings.Replace(change(update), `"mode"`, `"previous_address":"a.older","mode"`, 1),
			strings.Replace(change(update), `"mode"`, `"previous_address":"a.old","mode"`, 1), false,
		},
		"imported already": {change(update), change(`"importing":{"id":"x"},` + update), true},
		"sensitive, in part unknown": {
			change(`"actions":["create"],"after":{"o":{"a":"x","b":"y"}},"after_sensitive":{"o":true}`),
			change(`"actions":["create"],"after":{"o":{"a":"x"}},"after_unknown":{"o":{"b":true}},"after_sensitive":{"o":true}`), true,
		},
		"output that is new now": {
			`{"format_version":"1.2","output_changes":{"o":{"actions":["create"],"after":2}}}`,
			`{"format_version":"1.2","output_changes":{"o":{"actions":["update"],"before":1,"after":2}}}`, true,
		},
		"output of another value": {
			`{"format_version":"1.2","output_changes":{"o":{"actions":["update"],"before":1,"after":3}}}`,
			`{"format_version":"1.2","output_changes":{"o":{"actions":["update"],"before":1,"after":2}}}`, false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := runner.Subset(parse(t, test.rest).Prints, parse(t, test.reviewed).Prints); got != test.want {
				t.Errorf("Subset = %v, want %v", got, test.want)
			}
		})
	}
}

func deposed(fields string) string {
	return strings.Replace(change(fields), `"mode"`, `"deposed":"1234abcd","mode"`, 1)
}

func TestDifferencesInWords(t *testing.T) {
	t.Parallel()

	reviewed := []holdfast.ChangePrint{
		{Address: "a.same", Actions: []string{"create"}, After: map[string]string{"x": "1"}},
		{Address: "b.value", Actions: []string{"update"}, After: map[string]string{"size": "1"}},
		{Address: "c.before", Actions: []string{"update"}, Before: map[string]string{"tags.team": "1"}},
		{Address: "d.gone", Actions: []string{"delete"}},
		{Address: "e.action", Actions: []string{"update"}},
	}
	found := []holdfast.ChangePrint{
		reviewed[0],
		{Address: "b.value", Actions: []string{"update"}, After: map[string]string{"size": "2"}},
		{Address: "c.before", Actions: []string{"update"}, Before: map[string]string{"tags.team": "2"}},
		{Address: "e.action", Actions: []string{"delete", "create"}},
		{Address: "f.new", Actions: []string{"delete"}},
	}
	want := []string{
		"b.value: another value is planned for size",
		"c.before: it is not what it was when it was reviewed: tags.team",
		"e.action: to be replaced now, was to be updated",
		"f.new: to be destroyed, which was not reviewed",
		"d.gone: was to be destroyed, nothing is to be done now",
	}
	if diff := cmp.Diff(want, runner.Differences(found, reviewed)); diff != "" {
		t.Errorf("Differences (-want +got):\n%s", diff)
	}
	if got := runner.Differences(reviewed, reviewed); len(got) != 0 {
		t.Errorf("Differences of the same = %v", got)
	}

	var many []holdfast.ChangePrint
	for i := range 100 {
		many = append(many, holdfast.ChangePrint{Address: fmt.Sprintf("a.b[%d]", i), Actions: []string{"create"}})
	}
	lines := runner.Differences(many, nil)
	if len(lines) != 21 || lines[20] != "and 80 more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// TestDifferencesAgreeWithFingerprint: what has another fingerprint has words
// for it, whichever plans are compared.
func TestDifferencesAgreeWithFingerprint(t *testing.T) {
	t.Parallel()

	plans := map[string]holdfast.Plan{}
	for _, name := range []string{"create", "update", "replace", "delete", "move", "import", "forget", "tainted", "sensitive", "nochange"} {
		plans[name] = parsePlan(t, name)
	}
	for _, a := range slices.Sorted(maps.Keys(plans)) {
		for _, b := range slices.Sorted(maps.Keys(plans)) {
			same := plans[a].Fingerprint == plans[b].Fingerprint
			if told := len(runner.Differences(plans[a].Prints, plans[b].Prints)) == 0; told != same {
				t.Errorf("%s and %s: same fingerprint %v, no difference told %v", a, b, same, told)
			}
		}
	}
}
