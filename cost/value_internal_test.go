package cost

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/plandoc"
)

// What is searched in a value is what decoding it finds.
func FuzzValue(f *testing.F) {
	f.Add(`{"a":[{"b":"c"},null,1],"d\"e":{"f":true},"g":"x,]}\\"}`, "a")
	f.Add(`{"a":{"$unknown":true}}`, "a")
	f.Add(`[1,[2,"]"],{}]`, "")
	f.Fuzz(func(t *testing.T, text, name string) {
		v := plandoc.Value(text)
		if _, err := v.Tree(); err != nil || text == "" {
			return // not a value of a document
		}
		var decoded any
		if err := json.Unmarshal(v, &decoded); err != nil {
			t.Fatal(err)
		}
		switch decoded := decoded.(type) {
		case map[string]any:
			keys, values := value(v).members(nil, nil)
			if len(keys) != len(decoded) || len(values) != len(decoded) {
				t.Fatalf("%d members of %s", len(keys), text)
			}
			for i := range values {
				if !json.Valid(values[i]) {
					t.Fatalf("a member of %s is %s", text, values[i])
				}
			}
			if want, ok := decoded[name]; ok && slices.ContainsFunc(keys, func(k value) bool { return string(k) == name }) {
				same(t, want, value(v).member(name))
			}
		case []any:
			elements := value(v).elements()
			if len(elements) != len(decoded) {
				t.Fatalf("%d elements of %s", len(elements), text)
			}
			for i := range elements {
				same(t, decoded[i], elements[i])
			}
		}
	})
}

func same(t *testing.T, want any, got value) {
	t.Helper()
	a, _ := json.Marshal(want)
	var decoded any
	if err := json.Unmarshal(got, &decoded); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	b, _ := json.Marshal(decoded)
	if string(a) != string(b) {
		t.Fatalf("%s, want %s", b, a)
	}
}

// What is not a value of a document does not end the process.
func FuzzBrokenValue(f *testing.F) {
	f.Add(`{"a`)
	f.Add(`{"a":`)
	f.Add(`["\`)
	f.Fuzz(func(_ *testing.T, text string) {
		v := value(text)
		v.at("a", 0, "b")
		v.members(nil, nil)
		v.text("a")
		v.number("a")
		v.is("a")
		v.count("a")
	})
}
