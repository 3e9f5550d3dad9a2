package templates_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestSettingsChangeNothing says that what a document says of its settings is
// not part of what is handed to the engine, nor of the source digest.
func TestSettingsChangeNothing(t *testing.T) {
	t.Parallel()

	const settings = `spec:
  dependsOn: [network-eu]
  drift: {schedule: "0 4 * * *", timeZone: Europe/Berlin, onDrift: apply, ignore: [{address: "**", attribute: tags, reason: r, expires: 2027-01-31}]}
  apply: {onMerge: false, requires: [approved, mergeable], windows: [{kind: deny, schedule: "@daily", duration: 1h}]}
  deletion: {protected: true}
`
	tests := map[string]struct {
		path, text string
		files      map[string]string
	}{
		"template":                 {"clusters/prod-eu.yaml", demoCluster, demoFiles()},
		"module":                   {"clusters/own.yaml", moduleCluster, moduleFiles()},
		"module with its document": {"infra/own/cluster.yaml", moduleCluster, moduleFiles()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(tc.text, "metadata: {name: own}", "metadata: {name: own, labels: {a: b}}", 1)
			text = strings.Replace(text, "spec:\n", settings, 1)
			var digests, bundles []holdfast.Digest
			for _, text := range []string{tc.text, text} {
				root := resolve(t, tree(with(tc.files, tc.path, text)), clusterOf(t, tc.path, text))
				_, bundle, err := root.Bundle()
				if err != nil {
					t.Fatal(err)
				}
				digests, bundles = append(digests, root.Digest), append(bundles, bundle)
			}
			if digests[0] != digests[1] {
				t.Error("settings change the source digest")
			}
			if bundles[0] != bundles[1] {
				t.Error("settings change the bundle")
			}
		})
	}
}
