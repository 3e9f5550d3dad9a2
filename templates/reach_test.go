package templates_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/templates"
)

// A network, what stands on it, what depends on that, and something beside.
const reachedTemplate = `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: web}
spec:
  providers:
    local:
      modules:
        - {name: network, source: ./network, inputs: {cidr: "${var.cidr}", region: "${cluster.region}"}}
        - {name: nodes, source: ./nodes, inputs: {pools: "${var.pools}", net: "${module.network.id}"}}
        - {name: apps, source: ./apps, inputs: {tier: "${var.tier}"}, dependsOn: [nodes]}
        - {name: logs, source: ./logs, inputs: {days: "${var.days}", name: "${cluster.name}"}}
  variables:
    properties:
      cidr: {type: string, default: 10.0.0.0/16}
      pools: {type: array, items: {type: object, properties: {spot: {type: boolean}}}, default: []}
      tier: {type: string, default: small}
      days: {type: integer, default: 7}
`

type reachedCluster struct{ name, region, variables string }

// change is what a change of one module does to a cluster.
func (c reachedCluster) change(t testing.TB, module string) templates.RootChange {
	t.Helper()
	root := func(changed string) *templates.Root {
		files := map[string]string{"web/template.yaml": reachedTemplate}
		for name, inputs := range map[string][]string{"network": {"cidr", "region"}, "nodes": {"pools", "net"}, "apps": {"tier"}, "logs": {"days", "name"}} {
			text := ""
			for _, input := range inputs {
				text += fmt.Sprintf("variable %q {}\n", input)
			}
			if name == changed {
				text += "# changed\n"
			}
			files["web/"+name+"/main.tf"] = text + "output \"id\" { value = 1 }\n"
		}
		return resolve(t, tree(files), clusterOf(t, "clusters/"+c.name+".yaml", "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: "+c.name+
			"}\nspec: {project: p, environment: e, region: "+c.region+", template: {path: ../web}, variables: {"+c.variables+"}}\n"))
	}
	return templates.Compare(root(""), root(module))
}

// What is handed to a module that changes, to those that it gets values from, and
// to those that depend on it, tells clusters apart, whatever kind of value it is;
// what goes elsewhere does not.
func TestReach(t *testing.T) {
	t.Parallel()
	plain := reachedCluster{"a", "eu-1", ""}
	tests := map[string]struct {
		other   reachedCluster
		reaches string // the modules whose change it reaches
	}{
		"the same":          {plain, ""},
		"its default":       {reachedCluster{"a", "eu-1", "tier: small, days: 7"}, ""},
		"a name":            {reachedCluster{"b", "eu-1", ""}, "logs"},
		"a region":          {reachedCluster{"a", "us-1", ""}, "network nodes apps"},
		"a text upstream":   {reachedCluster{"a", "eu-1", "cidr: 10.1.0.0/16"}, "network nodes apps"},
		"a nested boolean":  {reachedCluster{"a", "eu-1", "pools: [{spot: true}]"}, "network nodes apps"},
		"a text downstream": {reachedCluster{"a", "eu-1", "tier: large"}, "network nodes apps"},
		"a number":          {reachedCluster{"a", "eu-1", "days: 30"}, "logs"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			for _, module := range []string{"network", "nodes", "apps", "logs"} {
				one, two := plain.change(t, module), tt.other.change(t, module)
				if one.Key != two.Key {
					t.Fatalf("the change of %s is not the same", module)
				}
				if one.Values(one.Reach()) != two.Values(two.Reach()) {
					got += " " + module
				}
			}
			if want := tt.reaches; want != "" && got != " "+want || want == "" && got != "" {
				t.Errorf("it reaches the changes of %q, want %q", got, want)
			}
		})
	}
}

// It is asked for each cluster of a fleet while a push is taken in.
func BenchmarkValues(b *testing.B) {
	change := reachedCluster{"a", "eu-1", "tier: large"}.change(b, "nodes")
	reach := change.Reach()
	for b.Loop() {
		change.Values(reach)
	}
}
