package hclvalue_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/templates/hclvalue"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"a text":                        {"a b", `"a b"`},
		"a reference keeps its type":    {"${var.node_count}", "var.node_count"},
		"a cluster's field is a local":  {"${cluster.name}", "local.cluster.name"},
		"a reference in a text":         {"a-${ var.x }-b", `"a-${var.x}-b"`},
		"a literal that looks like one": {"$${var.x}", `"$${var.x}"`},
		"a directive":                   {"%{if true}", `"%%{if true}"`},
		"signs before a reference":      {"100%${var.x}", `"100${"%"}${var.x}"`},
		"signs before a brace":          {"$$${x", `"${"$$"}{x"`},
		"quotes and lines":              {"\"a\"\n\\", `"\"a\"\n\\"`},
		"what is not printed":           {"a\x01\U000e0001", `"a\u0001\U000e0001"`},
		"a list":                        {[]any{"a", "${var.x}"}, `["a", var.x]`},
		"a fraction":                    {0.1, "0.1"},
		"a long number":                 {json.Number("12345678901234567890"), "12345678901234567890"},
		"a bool":                        {true, "true"},
		"nothing":                       {nil, "null"},
	} {
		parsed := hclvalue.Parse(test.value, func(err error) { t.Errorf("%s: %v", name, err) })
		if got := string(hclvalue.Tokens(parsed).Bytes()); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	var bad []string
	parsed := hclvalue.Parse(map[string]any{
		"b": []any{"${var.x} and ${module.net.ids[0]}", "${f(1)}"},
		"a": "${cluster.region}",
		"c": "${var.y",
	}, func(err error) { bad = append(bad, err.Error()) })
	if want := []string{`"${f(1)}" is not a reference`, `"${var.y}" is not a reference`}; !slices.Equal(bad, want) {
		t.Errorf("faults %q, want %q", bad, want)
	}
	var found []string
	hclvalue.References(parsed, func(ref hclvalue.Part) { found = append(found, ref.Text) })
	if want := []string{"cluster.region", "var.x", "module.net.ids[0]"}; !slices.Equal(found, want) {
		t.Errorf("references %q, want %q", found, want)
	}
}
