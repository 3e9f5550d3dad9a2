package reviewed_test

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/reviewed"
)

// hmacOf returns something of the form of an HMAC.
func hmacOf(b byte) string {
	return base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

func planValue(t *testing.T, tree any) plandoc.Value {
	t.Helper()
	v, err := plandoc.NewValue(tree)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRemains(t *testing.T) {
	t.Parallel()
	object := func(pairs ...any) plandoc.Value {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return planValue(t, m)
	}
	unknown := plandoc.Mark{Unknown: true}
	create := plandoc.Resource{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("x", "1", "id", unknown)}
	secretIs := func(m plandoc.Mark) plandoc.Resource {
		return plandoc.Resource{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("s", m)}
	}
	replace := plandoc.Resource{
		Address: "a.b", Type: "a", Actions: []string{"delete", "create"}, Replace: []string{"x"},
		Before: object("x", "0", "id", "i"), After: object("x", "1", "id", unknown),
	}
	first := replace
	first.Actions = []string{"create", "delete"}
	moved := plandoc.Resource{Address: "a.b", Previous: "a.c", Type: "a", Actions: []string{"update"}, Before: object("x", "0"), After: object("x", "1")}
	notMoved := moved
	notMoved.Previous = ""
	tests := map[string]struct {
		rest, reviewed []plandoc.Resource
		want           bool
	}{
		"nothing remains":             {nil, []plandoc.Resource{create}, true},
		"all remains":                 {[]plandoc.Resource{create}, []plandoc.Resource{create}, true},
		"something new":               {[]plandoc.Resource{create}, nil, false},
		"another value":               {[]plandoc.Resource{{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("x", "2", "id", unknown)}}, []plandoc.Resource{create}, false},
		"known now":                   {[]plandoc.Resource{{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("x", "1", "id", "i-1")}}, []plandoc.Resource{create}, true},
		"unknown now":                 {[]plandoc.Resource{{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("x", unknown, "id", unknown)}}, []plandoc.Resource{create}, false},
		"a value more":                {[]plandoc.Resource{{Address: "a.b", Type: "a", Actions: []string{"create"}, After: object("x", "1", "y", "2", "id", unknown)}}, []plandoc.Resource{create}, false},
		"another action":              {[]plandoc.Resource{{Address: "a.b", Type: "a", Actions: []string{"delete"}, Before: object("x", "1")}}, []plandoc.Resource{create}, false},
		"the create of a replacement": {[]plandoc.Resource{create}, []plandoc.Resource{replace}, true},
		"the create of another order": {[]plandoc.Resource{create}, []plandoc.Resource{first}, false},
		"the deposed object":          {[]plandoc.Resource{{Address: "a.b", Deposed: "d", Type: "a", Actions: []string{"delete"}, Before: object("x", "0", "id", "i")}}, []plandoc.Resource{first}, true},
		"another deposed object":      {[]plandoc.Resource{{Address: "a.b", Deposed: "d", Type: "a", Actions: []string{"delete"}, Before: object("x", "9", "id", "i")}}, []plandoc.Resource{first}, false},
		"deposed by nothing":          {[]plandoc.Resource{{Address: "a.b", Deposed: "d", Type: "a", Actions: []string{"delete"}, Before: object("x", "0", "id", "i")}}, []plandoc.Resource{replace}, false},
		"the move is done":            {[]plandoc.Resource{notMoved}, []plandoc.Resource{moved}, true},
		"a secret known in part":      {[]plandoc.Resource{secretIs(plandoc.Mark{HMAC: hmacOf(8)})}, []plandoc.Resource{secretIs(plandoc.Mark{HMAC: hmacOf(9), Unknown: true})}, false},
		"the same part of a secret":   {[]plandoc.Resource{secretIs(plandoc.Mark{HMAC: hmacOf(9), Unknown: true})}, []plandoc.Resource{secretIs(plandoc.Mark{HMAC: hmacOf(9), Unknown: true})}, true},
		"a secret that was unknown":   {[]plandoc.Resource{secretIs(plandoc.Mark{HMAC: hmacOf(8)})}, []plandoc.Resource{secretIs(unknown)}, true},
		"a move that was not there":   {[]plandoc.Resource{moved}, []plandoc.Resource{notMoved}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rest := plandoc.Document{Version: 1, Resources: test.rest}
			shown := plandoc.Document{Version: 1, Resources: test.reviewed}
			if got := reviewed.Remains(rest, shown); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	output := func(action, after string) plandoc.Document {
		return plandoc.Document{Version: 1, Outputs: []plandoc.Output{{Name: "o", Actions: []string{action}, After: planValue(t, after)}}}
	}
	if !reviewed.Remains(output("create", "x"), output("update", "x")) || reviewed.Remains(output("create", "x"), output("create", "y")) {
		t.Error("outputs are compared by what they become")
	}
}
