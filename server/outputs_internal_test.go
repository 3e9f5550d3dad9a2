package server

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// TestReadOutputs: values that are too large together are left out, with their sizes,
// and the rest is shown.
func TestReadOutputs(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 18) + `"`
	for list, want := range map[string][]v1.Output{
		"null": nil,
		"[]":   nil,
		`[{"name": "a", "value": ` + long + `}, {"name": "b", "value": ` + long + `}, {"name": "c", "value": 7}]`: {
			{Name: "a", Value: []byte(long)}, {Name: "b", Omitted: 20}, {Name: "c", Value: []byte("7")},
		},
		`[{"name": "a", "sensitive": true}, {"name": "b", "value": ` + long + `}, {"name": "password", "value": ` + long + `}]`: {
			{Name: "a", Sensitive: true}, {Name: "b", Value: []byte(long)}, {Name: "password"},
		},
	} {
		got, err := readOutputs(strings.NewReader(list), 30)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", list, err, diff)
		}
	}
	for _, broken := range []string{"", "[", `[{"name": "a"}`, `[{"name": 7}]`} {
		if _, err := readOutputs(strings.NewReader(broken), 30); err == nil {
			t.Errorf("%q is read", broken)
		}
	}
}
