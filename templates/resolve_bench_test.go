package templates_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// BenchmarkResolveLibrary makes the root modules of a thousand clusters of the
// template of the library, which has rules, conditions and configured providers.
func BenchmarkResolveLibrary(b *testing.B) {
	tr := diskTree(b, "library/kubernetes")
	text, err := os.ReadFile("library/kubernetes/examples/aws-advanced.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var docs []document.Document
	for i := range 1000 {
		doc := clusterOf(b, "examples/x.yaml", string(text))
		doc.Cluster.Name = fmt.Sprintf("prod-%d", i)
		doc.Cluster.Template.Path, doc.Cluster.Template.Name, doc.Cluster.Template.Version = "..", "", ""
		docs = append(docs, doc)
	}
	b.ReportAllocs()
	for b.Loop() {
		resolver := templates.NewResolver(nil)
		for _, doc := range docs {
			if _, faults, err := resolver.Resolve(b.Context(), tr, doc); err != nil || faults != nil {
				b.Fatal(err, faults)
			}
		}
	}
}

// BenchmarkLoad reads a template, with its modules, for the first time.
func BenchmarkLoad(b *testing.B) {
	tr := diskTree(b, "library/kubernetes")
	b.ReportAllocs()
	for b.Loop() {
		if _, faults, err := templates.NewResolver(nil).Load(tr, "."); err != nil || len(faults) > 0 {
			b.Fatal(err, faults)
		}
	}
}
