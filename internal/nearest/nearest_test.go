package nearest_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/nearest"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"node_count", "instance_type", "region", "regions"}
	for word, want := range map[string]string{
		"node_cuont":               "node_count",
		"NodeCount":                "node_count",
		"regoin":                   "region",
		"regionz":                  "region",
		"zone":                     "",
		"":                         "",
		strings.Repeat("r", 1_000): "",
	} {
		if got := nearest.Of(word, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"plan", "plan", 0}, {"plna", "plan", 1}, {"pan", "plan", 1}, {"apply", "approve", 4},
	} {
		if got := nearest.Distance(test.a, test.b); got != test.want {
			t.Errorf("EditDistance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
