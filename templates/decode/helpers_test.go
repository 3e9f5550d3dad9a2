package decode_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// short returns a cluster whose spec has lines added.
func short(lines ...string) string {
	return "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\nspec:\n  project: p\n  environment: e\n  " +
		strings.Join(lines, "\n  ") + "\n"
}

func wantFaults(t testing.TB, got holdfast.Faults, want ...string) {
	t.Helper()
	text := strings.Join(want, "\n")
	if got.Error() != text {
		t.Errorf("faults:\n%s\nwant:\n%s", got.Error(), text)
	}
}
