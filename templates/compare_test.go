package templates_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/templates"
)

const comparedTemplate = `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: web}
spec:
  providers:
    local:
      modules: [{name: site, source: ./site, inputs: {size: "${var.size}", tags: "${var.tags}"}}]
  variables:
    properties:
      size: {type: integer, default: 1, description: How large.}
      tags: {type: object, additionalProperties: {type: string}, default: {a: b}}
      token: {type: string, writeOnly: true}
`

// Another default is a change for clusters that leave the variable out, and not
// for those that say it: their plans differ, so they are not of one group.
func TestCompareReportsDefaults(t *testing.T) {
	t.Parallel()
	change := func(name, variables string, edits ...string) templates.RootChange {
		t.Helper()
		root := func(template string) *templates.Root {
			files := tree(map[string]string{
				"web/template.yaml": template, "web/site/main.tf": "variable \"size\" {}\nvariable \"tags\" {}\n",
			})
			return resolve(t, files, clusterOf(t, "clusters/"+name+".yaml", "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: "+name+
				"}\nspec: {project: p, environment: e, template: {path: ../web}, variables: "+variables+"}\n"))
		}
		return templates.Compare(root(comparedTemplate), root(strings.NewReplacer(edits...).Replace(comparedTemplate)))
	}
	size := []string{"default: 1", "default: 2"}
	a, b := change("a", "{}", size...), change("b", "{}", size...)
	c, d := change("c", "{size: 7}", size...), change("d", "{size: 8}", size...)
	if a.Key != b.Key || c.Key != d.Key {
		t.Error("clusters that change alike are not of one group")
	}
	if a.Key == c.Key {
		t.Error("a cluster that says its size is of the group of those that leave it out")
	}
	if diff := cmp.Diff([]string{"variable size is declared in another way"}, a.Words()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"variable size is declared in another way, and has a value of its own"}, c.Words()); diff != "" {
		t.Error(diff)
	}

	// A default of several lines, and what is said to people.
	tags := []string{"{a: b}", "{a: c, d: e}"}
	if change("e", "{}", tags...).Key == change("f", "{tags: {}}", tags...).Key {
		t.Error("a cluster that says its tags is of the group of those that leave them out")
	}
	words := []string{"How large.", "How many.", "./site, inputs", `./site, dependsOn: [], inputs`, "tags: {type", "more: {type: string}\n      tags: {type"}
	if change("g", "{}", words...).Key != change("h", "{size: 3}", words...).Key {
		t.Error("another description parts a group")
	}
}
