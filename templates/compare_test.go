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
	if diff := cmp.Diff([]string{"variable size is declared differently"}, a.Words()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"variable size is declared differently, and has a value of its own"}, c.Words()); diff != "" {
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

// A root module that is new is told apart by all that reaches it; one that a document
// changes, by what its values were and are.
func TestCompareTellsValuesApart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 100)
	root := func(variables string) *templates.Root {
		t.Helper()
		files := tree(map[string]string{
			"web/template.yaml": comparedTemplate, "web/site/main.tf": "variable \"size\" {}\nvariable \"tags\" {}\n",
		})
		return resolve(t, files, clusterOf(t, "clusters/a.yaml", "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\n"+
			"spec: {project: p, environment: e, template: {path: ../web}, variables: {"+variables+"}}\n"))
	}
	key := func(before *templates.Root, after string) string {
		change := templates.Compare(before, root(after))
		return string(change.Key + change.Values(change.Reach()))
	}
	if words := templates.Compare(nil, root("")).Words(); !cmp.Equal(words, []string{"the root module is new"}) {
		t.Errorf("a new root module is told as %q", words)
	}
	if key(nil, "") != key(nil, "size: 1") {
		t.Error("a default that is said parts a group")
	}
	for name, keys := range map[string][2]string{
		"a new number":            {key(nil, "size: 7"), key(nil, "size: 8")},
		"a new nested text":       {key(nil, "tags: {a: x}"), key(nil, "tags: {a: y}")},
		"a new secret":            {key(nil, "token: {secret: {env: ONE}}"), key(nil, "token: {secret: {env: TWO}}")},
		"new, and there":          {key(nil, "size: 7"), key(root("size: 8"), "size: 7")},
		"what it was":             {key(root("size: 7"), "size: 9"), key(root("size: 8"), "size: 9")},
		"the end of a long value": {key(root(""), "tags: {a: "+long+"x}"), key(root(""), "tags: {a: "+long+"y}")},
		"another secret":          {key(root("token: {secret: {env: ONE}}"), "token: {secret: {env: TWO}}"), key(root("token: {secret: {env: ONE}}"), "token: {secret: {env: THREE}}")},
	} {
		if keys[0] == keys[1] {
			t.Errorf("%s: both are of one group", name)
		}
	}
}

// What a template hands on no longer is a change from a value of the cluster.
func TestCompareTellsFormerFieldsApart(t *testing.T) {
	t.Parallel()
	values := func(name string) string {
		root := func(inputs string) *templates.Root {
			template := strings.Replace(comparedTemplate, `inputs: {size: "${var.size}", tags: "${var.tags}"}`, "inputs: {"+inputs+"}", 1)
			files := tree(map[string]string{"web/template.yaml": template, "web/site/main.tf": "variable \"name\" { default = \"x\" }\n"})
			return resolve(t, files, clusterOf(t, "clusters/"+name+".yaml", "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: "+name+
				"}\nspec: {project: p, environment: e, template: {path: ../web}}\n"))
		}
		change := templates.Compare(root(`name: "${cluster.name}"`), root(""))
		return string(change.Key + change.Values(change.Reach()))
	}
	if values("a") == values("b") {
		t.Error("clusters whose names go are of one group")
	}
}
