package holdfast_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestAppliedIsOneShape: what was applied is at the same place of a cluster's line and
// of its record.
func TestAppliedIsOneShape(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{
		"a line":                  holdfast.ClusterSummary{Applied: holdfast.AppliedLine{Revision: "abc"}},
		"a record":                holdfast.ClusterRecord{Applied: holdfast.Applied{Revision: "abc"}},
		"a line of nothing yet":   holdfast.ClusterSummary{},
		"a record of nothing yet": holdfast.ClusterRecord{},
	} {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Applied *struct{ Revision string }
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if never := name != "a line" && name != "a record"; never != (got.Applied == nil) || !never && got.Applied.Revision != "abc" {
			t.Errorf("%s: %s", name, data)
		}
	}
}
