package report_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/report"
)

// scene makes plan documents at random.
type scene struct {
	t testing.TB
	r *rand.Rand
}

// mark is of a secret value.
func mark(secret string) plandoc.Mark {
	sum := sha256.Sum256([]byte(secret))
	return plandoc.Mark{HMAC: base64.RawURLEncoding.EncodeToString(sum[:])}
}

// twins are values that look alike.
func twins() [][]any {
	long := strings.Repeat("same ", 100)
	one, two := mark("one"), mark("two")
	return [][]any{
		{json.Number("1"), json.Number("1.0"), json.Number("1e0"), "1", true, "true", "True"},
		{"", "null", "nothing", " ", []any{}, map[string]any{}, []any{""}},
		{"a", "A", "a ", " a", "a\u200b", "a\u00a0", "a\t"},
		{"\u00e1", "a\u0301"},
		{"a\nb", "a\\nb", "a\r\nb"},
		{"a  b", "a b", "a\u2003b", "a\u2800b"},
		{plandoc.Mark{Unknown: true}, "(known after apply)", `"(known after apply)"`, `\(known after apply)`},
		{one, "(sensitive value)", `\(sensitive value)`},
		{plandoc.Mark{HMAC: one.HMAC, Text: "user:(sensitive value)@host"}, "user:(sensitive value)@host"},
		{[]any{plandoc.Mark{Unknown: true}}, []any{"(known after apply)"}, "[(known after apply)]"},
		{long + "1", long + "2", long + "2 "},
		{"1" + long, "2" + long},
		{long + "1" + long, long + "2" + long, long + "12" + long},
		{`{"a": 1}`, `{"a":1}`, `{"a":1,"a":1}`, `{"a":1.0}`, map[string]any{"a": json.Number("1")}},
		{long + "\n1\n" + long, long + "\n2\n" + long, long + "\n1\r\n" + long},
		{"`", "``", "|", `\|`},
		{"</details>", "&lt;/details&gt;", "**a**", "<b>a</b>"},
		{map[string]any{"k.l": "x"}, map[string]any{"k": map[string]any{"l": "x"}}, map[string]any{`k["l"]`: "x"}},
		{[]any{"x", "y"}, []any{"y", "x"}, map[string]any{"0": "x", "1": "y"}},
		{nil, map[string]any{}, map[string]any{"a": nil}, map[string]any{"a": nil, "b": nil}, map[string]any{"a": "null"}},
		{map[string]any{"b": "x"}, map[string]any{"a": nil, "b": "x"}, map[string]any{"b": "x", "c": nil}, map[string]any{"a": map[string]any{"d": nil}, "b": "x"}},
		{map[string]any{"a": nil}, map[string]any{"a": map[string]any{}}, map[string]any{"a": map[string]any{"b": "x"}}, map[string]any{}},
		{[]any{}, []any{nil}, []any{nil, nil}, []any{"null"}, []any{"x"}, []any{"x", nil}, []any{[]any{nil}}},
		{[]any{map[string]any{"a": "x"}}, []any{map[string]any{"a": "x", "b": nil}}, []any{map[string]any{"a": "x"}, nil}},
		{one, two, plandoc.Mark{HMAC: one.HMAC, Unknown: true}},
		{plandoc.Mark{HMAC: one.HMAC, Text: "u:(sensitive value)@h"}, plandoc.Mark{HMAC: two.HMAC, Text: "u:(sensitive value)@h"}},
	}
}

func (s scene) value() any {
	all := twins()
	group := all[s.r.IntN(len(all))]
	return group[s.r.IntN(len(group))]
}

// pair is two values of a group that look alike, and whether only comparing tells them
// apart: nothing of secrets is shown.
func (s scene) pair(n int) (a, b any, secret bool) {
	all := twins()
	group := slices.Clone(all[n])
	s.r.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
	return group[0], group[1], n >= len(all)-2
}

func (s scene) encoded(v any) plandoc.Value {
	value, err := plandoc.NewValue(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return value
}

func (s scene) object() plandoc.Value {
	return s.encoded(map[string]any{"id": "i", "p": s.value(), "q": s.value()})
}

// resource makes what happens to one resource.
func (s scene) resource(name string) plandoc.Resource {
	r := plandoc.Resource{
		Address: "aws_thing." + name, Type: "aws_thing", Provider: "registry.terraform.io/hashicorp/aws",
	}
	s.happens(&r)
	return r
}

func (s scene) happens(r *plandoc.Resource) {
	actions := []string{"create", "update", "delete", "forget", "delete,create", "create,delete", "create,forget", "forget,create", "no-op"}
	r.Actions = strings.Split(actions[s.r.IntN(len(actions))], ",")
	r.Before, r.After, r.Replace, r.Reason = nil, nil, nil, ""
	if r.Actions[0] != "create" || len(r.Actions) > 1 {
		r.Before = s.object()
	}
	if r.Actions[0] != "delete" && r.Actions[0] != "forget" || len(r.Actions) > 1 {
		r.After = s.object()
	}
	switch {
	case len(r.Actions) > 1:
		r.Replace = s.paths()
		r.Reason = []string{"", "replace_because_tainted", "replace_by_request"}[s.r.IntN(3)]
	case r.Actions[0] == "no-op":
		r.Importing = s.encoded(s.importing())
	}
}

// paths are ones that force a replacement.
func (s scene) paths() []string {
	all := [][]string{
		nil, {"p"}, {"p", "q"}, {"q"}, {"z"}, {"p[0]"}, {"p", "p[0]"}, {"p.a"}, {"p.a", "p[0]"}, {"p", "p.a"}, {"p[0].a"}, {"p[0]", "p[0].a"},
	}
	return all[s.r.IntN(len(all))]
}

func (s scene) importing() any {
	all := []any{
		"i-1", "i-2", `{"a":"b"}`,
		map[string]any{"a": "b"},
		mark("one"), mark("two"),
		plandoc.Mark{Unknown: true},
		"(known after apply)",
		map[string]any{"id": "x", "object": "y"},
	}
	return all[s.r.IntN(len(all))]
}

func (s scene) document() plandoc.Document {
	d := plandoc.Document{Version: plandoc.Version}
	for i := range 1 + s.r.IntN(3) {
		d.Resources = append(d.Resources, s.resource(fmt.Sprintf("r%d", i)))
	}
	for i := range s.r.IntN(2) {
		d.Outputs = append(d.Outputs, s.output(fmt.Sprintf("o%d", i)))
	}
	for i := range s.r.IntN(2) {
		d.Reads = append(d.Reads, plandoc.Read{Address: fmt.Sprintf("data.local_file.d%d", i), Value: s.object()})
	}
	d.Sort()
	return d
}

func (s scene) output(name string) plandoc.Output {
	o := plandoc.Output{Name: name, Actions: []string{[]string{"create", "update", "delete"}[s.r.IntN(3)]}}
	if o.Actions[0] != "create" {
		o.Before = s.encoded(s.value())
	}
	if o.Actions[0] != "delete" {
		o.After = s.encoded(s.value())
	}
	return o
}

// others returns two documents that differ in one thing, in what, and whether only
// comparing tells them apart.
func (s scene) others() (a, b plandoc.Document, what string, secret bool) {
	a = s.document()
	b = a
	b.Resources, b.Outputs, b.Reads = slices.Clone(a.Resources), slices.Clone(a.Outputs), slices.Clone(a.Reads)
	n := s.r.IntN(len(a.Resources))
	was, is := &a.Resources[n], &b.Resources[n]
	group := s.r.IntN(len(twins()))
	x, y, secret := s.pair(group)
	first, second := s.encoded(map[string]any{"id": "i", "p": x}), s.encoded(map[string]any{"id": "i", "p": y})
	hidden := false
	switch n := s.r.IntN(14); {
	case n == 0:
		what, is.Deposed = "deposed object", fmt.Sprintf("%08x", s.r.IntN(1<<30))
	case n == 1:
		what, is.Previous = "move", "aws_thing.former"
	case n == 2:
		what, was.Importing, is.Importing = "import", s.encoded(s.importing()), s.encoded(s.importing())
	case n == 3 && len(is.Actions) > 1:
		what, is.Actions = "order of actions", [][]string{{"delete", "create"}, {"create", "delete"}, {"forget", "create"}, {"create", "forget"}}[s.r.IntN(4)]
	case n == 4:
		what, is.Provider = "provider", "registry.example.com/hashicorp/aws"
	case n == 5 && len(is.Actions) > 1:
		what, is.Replace = "replace paths", s.paths()
	case n == 6 && len(is.Actions) > 1:
		what, is.Reason = "cause", "replace_by_triggers"
	case n == 7 && len(a.Outputs) > 0 && a.Outputs[0].Actions[0] != "delete":
		what, a.Outputs[0].After, b.Outputs[0].After, hidden = "output", s.encoded(x), s.encoded(y), secret
	case n == 8 && len(a.Reads) > 0:
		what, a.Reads[0].Value, b.Reads[0].Value, hidden = "read", first, second, secret
	case n == 9:
		what, b.Reads = "reads", append(b.Reads, plandoc.Read{Address: "data.local_file.more", Value: s.object()})
	case was.After != nil && was.Before != nil && s.r.IntN(2) == 0: // of what looks like both
		z, _, _ := s.pair(group)
		what, was.Before, hidden = "value", s.encoded(map[string]any{"id": "i", "p": z}), secret
		is.Before, was.After, is.After = was.Before, first, second
	case was.After != nil:
		what, was.After, is.After, hidden = "value", first, second, secret
	default:
		what, was.Before, is.Before, hidden = "former value", first, second, secret
	}
	a.Sort()
	b.Sort()
	return a, b, what, hidden
}

// TestEachDocumentIsShown: two documents that are not the same read differently as
// text, and as comment or in what that says is left out of it, for one cluster and for
// two of which one has the other.
func TestEachDocumentIsShown(t *testing.T) {
	t.Parallel()

	for seed := range uint64(1500) {
		s := scene{t, rand.New(rand.NewPCG(seed, 2))}
		a, b, what, secret := s.others()
		if a.Validate() != nil || b.Validate() != nil || a.Digest() == b.Digest() {
			continue
		}
		one, two := plandiff.Plan(a, plandoc.Info{}), plandiff.Plan(b, plandoc.Info{})
		if !secret && report.PlanText(one) == report.PlanText(two) {
			t.Errorf("seed %d: another %s is not in the text:\n%s\n%s\n%s", seed, what, report.PlanText(one), encoding(t, a), encoding(t, b))
			continue
		}
		comment := report.Comment(pullRequest(planned("left", &one)))
		if !secret && comment == report.Comment(pullRequest(planned("left", &two))) {
			t.Errorf("seed %d: another %s is not in the comment:\n%s\n%s\n%s", seed, what, comment, encoding(t, a), encoding(t, b))
			continue
		}
		both := report.Comment(pullRequest(planned("left", &one), planned("right", &two)))
		if both == report.Comment(pullRequest(planned("left", &one), planned("right", &one))) || !secret && both == report.Comment(pullRequest(planned("left", &two), planned("right", &one))) {
			t.Errorf("seed %d: of two clusters another %s is not in the comment:\n%s\n%s\n%s", seed, what, both, encoding(t, a), encoding(t, b))
		}
	}
}

func encoding(t testing.TB, d plandoc.Document) string {
	t.Helper()
	var b strings.Builder
	if err := d.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
