package templates_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// BenchmarkRender1000 makes the root modules of a thousand clusters: five
// providers, each with nothing, a little, or everything switched on. With -cpu 1
// that is what one core takes.
func BenchmarkRender1000(b *testing.B) {
	tree := diskTree(b, "library/kubernetes")
	places := []string{
		"provider: aws\n  region: eu-west-1", "provider: gcp\n  region: europe-west1", "provider: azure\n  region: westeurope",
		"provider: digitalocean\n  region: fra1", "provider: linode\n  region: eu-central",
	}
	features := []string{
		"node_count: 3", "node_count: 4, enable_monitoring: true, tags: {team: shop}",
		"node_count: 5, enable_monitoring: true, enable_ingress: true, enable_cert_manager: true, high_availability: true, monitoring_retention_days: 30",
	}
	docs := make([]document.Document, 1000)
	for i := range docs {
		docs[i] = clusterOf(b, "clusters/x.yaml", fmt.Sprintf(`apiVersion: holdfast.dev/v1
kind: Cluster
metadata: {name: prod-%d}
spec:
  project: shop
  environment: production
  template: {path: ..}
  %s
  variables: {%s}
`, i, places[i%len(places)], features[i/len(places)%len(features)]))
	}
	b.ReportAllocs()
	for b.Loop() {
		resolver := templates.NewResolver(nil) // the template is read again
		for _, doc := range docs {
			if _, faults, err := resolver.Resolve(b.Context(), tree, doc); err != nil || len(faults) > 0 {
				b.Fatal(err, faults)
			}
		}
	}
}
