package document_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/templates/document"
)

// BenchmarkParse reads a thousand cluster documents.
func BenchmarkParse(b *testing.B) {
	text := []byte(fullCluster)
	b.ReportAllocs()
	for b.Loop() {
		for range 1000 {
			if _, faults := document.ParseClusters("c.yaml", text); faults != nil {
				b.Fatal(faults)
			}
		}
	}
}
