package document

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestClusterLimits: a document asks for limits of its runs, and says what is
// wrong with them at their lines.
func TestClusterLimits(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n" +
		"  project: shop\n  environment: production\n  module: {path: infra}\n  limits:\n"
	docs, faults := ParseClusters("c.yaml", []byte(head+"    memory: 8GiB\n    processes: 2048\n    cpu: 1.5\n"))
	want := holdfast.RunLimits{Memory: 8 << 30, Processes: 2048, CPU: 1.5}
	if len(faults) > 0 || len(docs) != 1 || docs[0].Cluster.Limits != want {
		t.Errorf("got %+v, %v", docs, faults)
	}
	for text, want := range map[string]string{
		"memory: 8":           `c.yaml:9:13: cluster "prod": spec.limits.memory must be a size, not the number 8`,
		"memory: lots":        `c.yaml:9:13: cluster "prod": spec.limits.memory must be a size, not the text "lots"`,
		"memory: -1GiB":       `c.yaml:9:13: cluster "prod": spec.limits.memory must be a size, not the text "-1GiB"`,
		"memory: 99999999TiB": `c.yaml:9:13: cluster "prod": spec.limits.memory must be a size, not the text "99999999TiB"`,
		"memory: [1]":         `c.yaml:9:13: cluster "prod": spec.limits.memory must be a size, not a list`,
		"memory: 1MiB":        `c.yaml:9:13: cluster "prod": spec.limits.memory must be at least 64MiB`,
		"processes: 1":        `c.yaml:9:16: cluster "prod": spec.limits.processes must be at least 32`,
		"processes: 1.5":      `c.yaml:9:16: cluster "prod": spec.limits.processes must be a whole number, not the number 1.5`,
		"cpu: 0":              `c.yaml:9:10: cluster "prod": spec.limits.cpu must be at least 0.01`,
		"cpu: .inf":           `c.yaml:9:10: cluster "prod": spec.limits.cpu must be a number, not the number .inf`,
		"memori: 1GiB":        `c.yaml:9:5: cluster "prod": unknown key "memori" in spec.limits`,
	} {
		_, faults := ParseClusters("c.yaml", []byte(head+"    "+text+"\n"))
		if len(faults) != 1 || faults[0].Position()+`: cluster "prod": `+faults[0].Message != want {
			t.Errorf("%s: got %v, want %s", text, faults, want)
		}
	}
}
