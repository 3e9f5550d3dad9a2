package reviewed_test

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/reviewed"
)

// hmacOf returns something of the form of an HMAC.
func hmacOf(b byte) string {
	return base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

func planValue(t *testing.T, tree any) holdfast.PlanValue {
	t.Helper()
	v, err := holdfast.NewPlanValue(tree)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRemains(t *testing.T) {
	t.Parallel()
	object := func(pairs ...any) holdfast.PlanValue {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return planValue(t, m)
	}
	unknown := holdfast.PlanMark{Unknown: true}
	create := holdfast.PlanResource{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("x", "1", "id", unknown)}
	secretIs := func(m holdfast.PlanMark) holdfast.PlanResource {
		return holdfast.PlanResource{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("s", m)}
	}
	replace := holdfast.PlanResource{
		Address: "a.b", Type: "a", Actions: []string{"delete", "create"}, Replace: []string{"x"},
		Before: object("x", "0", "id", "i"), After: object("x", "1", "id", unknown),
	}
	first := replace
	first.Actions = []string{"create", "delete"}
	moved := holdfast.PlanResource{Address: "a.b", Previous: "a.c", Type: "a", Actions: []string{"update"}, Before: object("x", "0"), After: object("x", "1")}
	notMoved := moved
	notMoved.Previous = ""
	tests := map[string]struct {
		rest, reviewed []holdfast.PlanResource
		want           bool
	}{
		"nothing remains":             {nil, []holdfast.PlanResource{create}, true},
		"all remains":                 {[]holdfast.PlanResource{create}, []holdfast.PlanResource{create}, true},
		"something new":               {[]holdfast.PlanResource{create}, nil, false},
		"another value":               {[]holdfast.PlanResource{{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("x", "2", "id", unknown)}}, []holdfast.PlanResource{create}, false},
		"known now":                   {[]holdfast.PlanResource{{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("x", "1", "id", "i-1")}}, []holdfast.PlanResource{create}, true},
		"unknown now":                 {[]holdfast.PlanResource{{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("x", unknown, "id", unknown)}}, []holdfast.PlanResource{create}, false},
		"a value more":                {[]holdfast.PlanResource{{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("x", "1", "y", "2", "id", unknown)}}, []holdfast.PlanResource{create}, false},
		"another action":              {[]holdfast.PlanResource{{Address: "a.b", Type: "a", Actions: []string{"delete"}, Before: object("x", "1")}}, []holdfast.PlanResource{create}, false},
		"the create of a replacement": {[]holdfast.PlanResource{create}, []holdfast.PlanResource{replace}, true},
		"the create of another order": {[]holdfast.PlanResource{create}, []holdfast.PlanResource{first}, false},
		"the deposed object":          {[]holdfast.PlanResource{{Address: "a.b", Deposed: "d", Type: "a", Actions: []string{"delete"}, Before: object("x", "0", "id", "i")}}, []holdfast.PlanResource{first}, true},
		"another deposed object":      {[]holdfast.PlanResource{{Address: "a.b", Deposed: "d", Type: "a", Actions: []string{"delete"}, Before: object("x", "9", "id", "i")}}, []holdfast.PlanResource{first}, false},
		"deposed by nothing":          {[]holdfast.PlanResource{{Address: "a.b", Deposed: "d", Type: "a", Actions: []string{"delete"}, Before: object("x", "0", "id", "i")}}, []holdfast.PlanResource{replace}, false},
		"the move is done":            {[]holdfast.PlanResource{notMoved}, []holdfast.PlanResource{moved}, true},
		"a secret known in part":      {[]holdfast.PlanResource{secretIs(holdfast.PlanMark{HMAC: hmacOf(8)})}, []holdfast.PlanResource{secretIs(holdfast.PlanMark{HMAC: hmacOf(9), Unknown: true})}, false},
		"the same part of a secret":   {[]holdfast.PlanResource{secretIs(holdfast.PlanMark{HMAC: hmacOf(9), Unknown: true})}, []holdfast.PlanResource{secretIs(holdfast.PlanMark{HMAC: hmacOf(9), Unknown: true})}, true},
		"a secret that was unknown":   {[]holdfast.PlanResource{secretIs(holdfast.PlanMark{HMAC: hmacOf(8)})}, []holdfast.PlanResource{secretIs(unknown)}, true},
		"a move that was not there":   {[]holdfast.PlanResource{moved}, []holdfast.PlanResource{notMoved}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rest := holdfast.PlanDocument{Version: 1, Resources: test.rest}
			shown := holdfast.PlanDocument{Version: 1, Resources: test.reviewed}
			if got := reviewed.Remains(rest, shown); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	output := func(action, after string) holdfast.PlanDocument {
		return holdfast.PlanDocument{Version: 1, Outputs: []holdfast.PlanOutput{{Name: "o", Actions: []string{action}, After: planValue(t, after)}}}
	}
	if !reviewed.Remains(output("create", "x"), output("update", "x")) || reviewed.Remains(output("create", "x"), output("create", "y")) {
		t.Error("outputs are compared by what they become")
	}
}
