package document

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
)

// A document asks for what its runs need of their runner, and says what is wrong with that.
func TestClusterRunner(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n" +
		"  project: shop\n  environment: production\n  module: {path: infra}\n  runner:\n"
	docs, faults := ParseClusters("c.yaml", []byte(head+
		"    resources: {memory: 2GiB, cpu: 1.5}\n    serviceAccount: team-a\n    podTemplate: {spec: {priorityClassName: high}}\n"))
	want := &holdfast.ClusterRunner{
		Resources: holdfast.RunLimits{Memory: 2 << 30, CPU: 1.5}, ServiceAccount: "team-a", PodTemplate: []byte(`{"spec":{"priorityClassName":"high"}}`),
	}
	if len(faults) > 0 || len(docs) != 1 || !cmp.Equal(docs[0].Cluster.Runner, want) {
		t.Fatalf("got %+v, %v", docs, faults)
	}
	for text, want := range map[string]string{
		"resources: {memory: 8}": `c.yaml:9:25: spec.runner.resources.memory must be a size`,
		"podTemplate: [1]":       `c.yaml:9:18: spec.runner.podTemplate must be a mapping`,
		"serviceAccount: [1]":    `c.yaml:9:21: spec.runner.serviceAccount must be`,
		"serviceacount: x":       `unknown key "serviceacount" in spec.runner`,
	} {
		_, faults := ParseClusters("c.yaml", []byte(head+"    "+text+"\n"))
		if len(faults) != 1 || !strings.Contains(faults[0].Error(), want) {
			t.Errorf("%s: got %v, want %q", text, faults, want)
		}
	}
}
