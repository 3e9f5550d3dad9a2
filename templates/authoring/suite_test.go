package authoring_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/templates/authoring"
)

// All that is wrong with a file of cases is told at once, each at its line and
// column.
func TestParseSuiteFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"empty":          {"", []string{"t/tests/a.yaml: file is empty (write cases: and a list of them, or remove the file)"}},
		"no YAML":        {"cases: [", []string{"t/tests/a.yaml:1: file is not valid YAML: did not find expected node content"}},
		"no cases":       {"{}", []string{"t/tests/a.yaml:1:1: file has no cases (write cases: and a list of them)"}},
		"two documents":  {"cases: []\n---\ncases: []\n", []string{"t/tests/a.yaml:2: a second document in one file (put its cases into the first, or into a file of their own)"}},
		"not a list":     {"cases: 3\n", []string{"t/tests/a.yaml:1:8: cases must be a list, not 3"}},
		"misspelt":       {"caes: []\n", []string{`t/tests/a.yaml:1:1: unknown key "caes" in the file (did you mean "cases"?)`}},
		"a case of text": {"cases: [x]\n", []string{`t/tests/a.yaml:1:9: cases[0] must be a mapping, not the text "x"`}},
		"nothing in it":  {"cases: [{}]\n", []string{"t/tests/a.yaml:1:9: cases[0].name is missing (say in a few words what the case shows)", "t/tests/a.yaml:1:9: cases[0].cluster is missing (write the spec of a cluster, such as {provider: local, variables: {}})"}},
		"a name that is a number": {
			"cases: [{name: 3, cluster: {}}]\n", []string{`t/tests/a.yaml:1:16: cases[0].name must be text, not 3 (put it in quotes: "3")`},
		},
		"names twice": {
			"cases:\n  - {name: a, cluster: {}}\n  - {name: a, cluster: {}}\n", []string{`t/tests/a.yaml:3:12: cases[1].name "a" is that of the case in line 2 (names tell cases apart)`},
		},
		"a template of its own": {
			"cases: [{name: a, cluster: {template: {path: x}}}]\n", []string{"t/tests/a.yaml:1:29: cases[0].cluster has template (remove it: a case is of the template next to it)"},
		},
		"a cluster's name": {
			"cases: [{name: a, cluster: {name: B}}]\n", []string{`t/tests/a.yaml:1:35: cases[0].cluster.name is "B" (use a-z, 0-9 and - inside, at most 63 characters)`},
		},
		"faults and a plan": {
			"cases: [{name: a, cluster: {}, faults: [{message: x}], plan: {create: 1}}]\n",
			[]string{"t/tests/a.yaml:1:9: cases[0] expects faults, and a root module or a plan (a cluster with faults has neither: make it two cases)"},
		},
		"faults that say nothing": {
			"cases: [{name: a, cluster: {}, faults: [{}, {at: variables.x}, {mesage: x}]}, {name: b, cluster: {}, faults: []}]\n",
			[]string{
				"t/tests/a.yaml:1:41: cases[0].faults[0] says neither at nor message (say where the fault is, or what it says)",
				`t/tests/a.yaml:1:45: cases[0].faults[1].at is "variables.x" (write a path from the document's root, such as spec.variables.node_count)`,
				`t/tests/a.yaml:1:65: unknown key "mesage" in cases[0].faults[2] (did you mean "message"?)`,
				"t/tests/a.yaml:1:110: cases[1].faults is empty (leave it out: without it the cluster must be valid)",
			},
		},
		"golden that leaves": {
			"cases: [{name: a, cluster: {}, golden: ../../x}]\n",
			[]string{`t/tests/a.yaml:1:40: cases[0].golden "../../x" leaves the folder of the file (write a folder next to the file, such as golden/basic)`},
		},
		"plans": {
			"cases:\n  - {name: a, cluster: {}, plan: {}}\n  - {name: b, cluster: {}, plan: {valid: false}}\n  - {name: c, cluster: {}, plan: {valid: true, create: 1}}\n  - {name: d, cluster: {}, plan: {create: -1}}\n  - {name: e, cluster: {}, plan: {update: 1}}\n",
			[]string{
				"t/tests/a.yaml:2:34: cases[0].plan says nothing (write {valid: true}, or numbers such as {create: 3})",
				"t/tests/a.yaml:3:42: cases[1].plan.valid can only be true (a root module that is not valid for the engine is a fault of the template)",
				"t/tests/a.yaml:4:42: cases[2].plan has valid and numbers (a plan that can be counted is valid: remove valid)",
				"t/tests/a.yaml:5:43: cases[3].plan.create must be a number of resources, not -1",
				`t/tests/a.yaml:6:35: unknown key "update" in cases[4].plan (one of change, create, destroy, replace, valid)`,
			},
		},
		"aliases without end": {
			"a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n" +
				"e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\ncases: [*e, *e]\n",
			[]string{"file has too many values, or is nested too deeply, once its aliases are replaced"},
		},
		"an alias of itself": {"cases: &a [*a]\n", []string{"file has too many values, or is nested too deeply"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, faults := authoring.ParseSuite("t/tests/a.yaml", "t", []byte(tc.text))
			var got []string
			for _, f := range faults {
				got = append(got, f.Error())
			}
			if len(tc.want) == 1 && len(got) == 1 && strings.Contains(got[0], tc.want[0]) {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseSuite(f *testing.F) {
	f.Add("cases:\n  - name: a\n    cluster: {provider: local, variables: {x: &a [1, *a]}}\n    faults: [{at: spec.variables.x, message: x}]\n")
	f.Add("cases: [{name: a, cluster: {<<: {x: 1}}, plan: {create: 1}, golden: g}]")
	f.Fuzz(func(_ *testing.T, text string) {
		authoring.ParseSuite("tests/a.yaml", ".", []byte(text)) // does not panic, and ends
	})
}
