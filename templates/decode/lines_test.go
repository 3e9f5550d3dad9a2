package decode_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/templates/document"
)

// TestPlacesAreThoseOfEditors: what is wrong is told at the line that people see,
// whatever the parser takes for the end of one, and where it comes from.
func TestPlacesAreThoseOfEditors(t *testing.T) {
	t.Parallel()

	const module = "module: {path: infra}"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"next line in a text": {
			short(module, "region: \"a\u0085b\"", "nonsense: 1"),
			[]string{`c.yaml:9:3: unknown key "nonsense" in spec`},
		},
		"line separator in a comment": {
			short(module, "# a\u2028  # b\u2029# c", "nonsense: 1"),
			[]string{`c.yaml:9:3: unknown key "nonsense" in spec`},
		},
		"key behind a next line": {
			short(module, "region: a\u0085  nonsense: 1"),
			[]string{`c.yaml:8:15: unknown key "nonsense" in spec`},
		},
		"next line in a word": {
			short(module, "variables:", "  a: x\u0085y", "  b: 1"),
			[]string{`c.yaml:9:9: file is not valid YAML: an invisible character ends the line here (remove it`},
		},
		"syntax": {
			short(module, "region: eu", "labels", "zone: b"),
			[]string{`c.yaml:9: file is not valid YAML: could not find expected ':'`},
		},
		"syntax behind next lines": {
			short(module, "region: eu # \u0085  # b\u2028  # c", "labels", "zone: b"),
			[]string{`c.yaml:9: file is not valid YAML: could not find expected ':'`}, // as without them
		},
		"no-break space": {
			short(module, "region:\u00a0eu", "variables: {}"),
			[]string{`c.yaml:8:10: file is not valid YAML: a no-break space instead of a space (write an ordinary space)`},
		},
		"placeholder for a value": {
			short(module, "region: {{ .region }}"),
			[]string{`c.yaml:8:12: a key must be text (files are not rendered as Go or Helm templates`},
		},
		"placeholder for a line": {
			short(module, "region: eu") + "{{ if x }}\n  labels: x\n{{ end }}\n",
			[]string{`c.yaml:9:1: file is not valid YAML: {{ begins a placeholder of a template engine`},
		},
		"placeholder at the begin": {
			"{{- if x }}\n" + short(module),
			[]string{`c.yaml:1:1: file is not valid YAML: {{ begins a placeholder of a template engine`},
		},
		"alias of another document": {
			short(module, "variables: &v {x: 1}") + "---\n" + strings.Replace(short(module, "variables: *v"), "name: a", "name: b", 1),
			[]string{`c.yaml:17:14: an alias (*) of something in another document (write the value here)`},
		},
		"number that is too large": {
			short(module, "variables: {x: 1e400, y: [-1E+999], z: \"1e400\", zz: 1e4}"),
			[]string{`c.yaml:8:18: this is not a number that can be used`, `c.yaml:8:29: this is not a number that can be used`},
		},
		"tags": {
			short("module: !thing {path: infra}", "variables: {x: !vault [1], y: !!set {a}, z: !!seq [1], zz: !!map {a: 1}}"),
			[]string{`c.yaml:7:11: a tag is not supported (remove it)`, `c.yaml:8:18: a tag`, `c.yaml:8:33: a tag`},
		},
		"tag of a name": {
			strings.Replace(short(module), "name: a", "name: !foo a", 1),
			[]string{`c.yaml:3:18: metadata.name must be text, not a value with a tag`},
		},
		"number that is too small": {
			short(module, "variables: {x: 1e-400, y: -.1E-9999, z: 0e5, zz: -0.0, zzz: 1e-300}"),
			[]string{`c.yaml:8:18: this is not a number that can be used: it is too small`, `c.yaml:8:29: this is not a number that can be used: it is`},
		},
		"number of more than 64 bits": {
			short(module, "variables: {x: 0xFFFFFFFFFFFFFFFFFF, y: 0xFF, z: 0xFG, zz: \"0xFFFFFFFFFFFFFFFFFF\"}"),
			[]string{`c.yaml:8:18: this is not a number that can be used: it is too large`},
		},
		"octal number": {
			short(module, "variables: {x: 0777, y: 0, z: 0o777, zz: \"0777\", zzz: 0.5}"),
			[]string{`c.yaml:8:18: a number that begins with 0 is octal to some and not to others`},
		},
		"nearly octal number": {
			short(module, "variables: {x: 08, y: -019, z: 08.5}"),
			[]string{`c.yaml:8:18: a number that begins with 0 is octal`, `c.yaml:8:25: a number that begins with 0 is octal`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, faults := document.ParseClusters("c.yaml", []byte(tc.text))
			if len(faults) != len(tc.want) {
				t.Fatalf("faults:\n%v", faults)
			}
			for i, fault := range faults {
				if !strings.HasPrefix(fault.Error(), tc.want[i]) {
					t.Errorf("got  %s\nwant %s", fault.Error(), tc.want[i])
				}
			}
		})
	}
}
