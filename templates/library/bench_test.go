package library_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// BenchmarkResolve makes the root modules of a thousand clusters, the template
// read again each time.
func BenchmarkResolve(b *testing.B) {
	tree := diskTree{os.DirFS("kubernetes")}
	text, err := tree.ReadFile("examples/aws-advanced.yaml")
	if err != nil {
		b.Fatal(err)
	}
	docs := make([]document.Document, 1000)
	for i := range docs {
		parsed, faults := document.ParseClusters("examples/x.yaml", []byte(strings.Replace(string(text), "prod-aws", fmt.Sprintf("prod-%d", i), 1)))
		if len(faults) > 0 {
			b.Fatal(faults)
		}
		docs[i] = parsed[0]
	}
	b.ReportAllocs()
	for b.Loop() {
		resolver := templates.NewResolver(nil)
		for _, doc := range docs {
			if _, faults, err := resolver.Resolve(b.Context(), tree, doc); err != nil || len(faults) > 0 {
				b.Fatal(err, faults)
			}
		}
	}
}
