package document_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// clusterOf parses the only cluster of a text.
func clusterOf(t testing.TB, name, text string) document.Document {
	t.Helper()
	docs, faults := document.ParseClusters(name, []byte(text))
	if len(faults) > 0 || len(docs) != 1 {
		t.Fatalf("ParseClusters gives %d clusters and\n%v", len(docs), faults.Err())
	}
	return docs[0]
}

func wantFaults(t testing.TB, got holdfast.Faults, want ...string) {
	t.Helper()
	text := strings.Join(want, "\n")
	if got.Error() != text {
		t.Errorf("faults:\n%s\nwant:\n%s", got.Error(), text)
	}
}
