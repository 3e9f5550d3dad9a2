package plan_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/reviewed"
)

func TestFingerprintIgnoresOrderAndTime(t *testing.T) {
	t.Parallel()

	raw, _ := planFile(t, "create")
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
	got, want := document(t, string(turned)), document(t, string(raw))
	if got.Fingerprint() != want.Fingerprint() || got.Digest() != want.Digest() {
		t.Errorf("digests differ: %s", strings.Join(reviewed.Differences(got, want), "\n"))
	}
}

func TestFingerprintDistinguishes(t *testing.T) {
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
	first := document(t, base)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := strings.Replace(base, test.from, test.to, 1)
			if other == base {
				t.Fatal("the case changes nothing")
			}
			second := document(t, other)
			if second.Fingerprint() == first.Fingerprint() || second.Digest() == first.Digest() {
				t.Error("the fingerprint is the same")
			}
			if lines := reviewed.Differences(second, first); len(lines) == 0 {
				t.Error("no difference is told")
			}
		})
	}
	if other, err := plan.Read(strings.NewReader(base), plan.Options{Key: []byte("another key")}); err != nil || other.Document.Digest() == first.Digest() {
		t.Errorf("another key gives the same fingerprint (%v)", err)
	}
}

// TestDocumentRevealsNothing: neither secret values nor their equality, nor the
// keys of sensitive objects.
func TestDocumentRevealsNothing(t *testing.T) {
	t.Parallel()

	raw, _ := planFile(t, "sensitive")
	var b bytes.Buffer
	if err := document(t, string(raw)).Encode(&b); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"planted", `"input":{"conf":{"hidden_key"`} {
		if strings.Contains(b.String(), word) {
			t.Errorf("the document holds %q: %s", word, b.String())
		}
	}
	equal := resource("a.b", `"actions":["create"],"after":{"s":"the same secret","t":"the same secret"},"after_sensitive":{"s":true,"t":true}`)
	marks := regexp.MustCompile(`"\$mark":"([^"]+)"`).FindAllStringSubmatch(string(document(t, equal).Resources[0].After), -1)
	if len(marks) != 2 || marks[0][1] == marks[1][1] {
		t.Errorf("equal secrets at two places have the marks %v", marks)
	}
}

// What is unknown of a sensitive value is hashed with it: the key of an unknown value
// in a sensitive map decides what is applied.
func TestUnknownPartsOfSensitiveValues(t *testing.T) {
	t.Parallel()
	of := func(unknown string) holdfast.Digest {
		return document(t, change(`"actions":["create"],"after":{"o":{"z":"x"}},"after_unknown":{"o":`+unknown+`},"after_sensitive":{"o":true}`)).Digest()
	}
	viewer := of(`{"viewer":true}`)
	if again := of(`{"viewer":true}`); again != viewer {
		t.Error("equal plans have different digests")
	}
	for _, other := range []string{`{"admin":true}`, `{"admin":true,"viewer":true}`, `{}`, `true`} {
		if of(other) == viewer {
			t.Errorf("after_unknown %s has the digest of another key", other)
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
		"another action":       {change(`"actions":["delete"],"before":{"a":1}`), change(update), false},
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
		// Its known part cannot be told from what has become known.
		"sensitive, in part unknown": {
			change(`"actions":["create"],"after":{"o":{"a":"x","b":"y"}},"after_sensitive":{"o":true}`),
			change(`"actions":["create"],"after":{"o":{"a":"x"}},"after_unknown":{"o":{"b":true}},"after_sensitive":{"o":true}`), false,
		},
		"sensitive, all of it unknown": {
			change(`"actions":["create"],"after":{"o":{"a":"x","b":"y"}},"after_sensitive":{"o":true}`),
			change(`"actions":["create"],"after":{},"after_unknown":{"o":true},"after_sensitive":{"o":true}`), true,
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
			if got := reviewed.Remains(document(t, test.rest), document(t, test.reviewed)); got != test.want {
				t.Errorf("Subset = %v, want %v", got, test.want)
			}
		})
	}
}

func deposed(fields string) string {
	return strings.Replace(change(fields), `"mode"`, `"deposed":"1234abcd","mode"`, 1)
}

// TestDifferencesAgreeWithFingerprint: what has another fingerprint has words
// for it, whichever plans are compared.
func TestDifferencesAgreeWithFingerprint(t *testing.T) {
	t.Parallel()

	plans := map[string]plandoc.Document{}
	for _, name := range []string{"create", "update", "replace", "delete", "move", "import", "forget", "tainted", "sensitive", "nochange"} {
		raw, _ := planFile(t, name)
		plans[name] = document(t, string(raw))
	}
	for _, a := range slices.Sorted(maps.Keys(plans)) {
		for _, b := range slices.Sorted(maps.Keys(plans)) {
			same := plans[a].Digest() == plans[b].Digest()
			if told := len(reviewed.Differences(plans[a], plans[b])) == 0; told != same {
				t.Errorf("%s and %s: same fingerprint %v, no difference told %v", a, b, same, told)
			}
		}
	}
}
