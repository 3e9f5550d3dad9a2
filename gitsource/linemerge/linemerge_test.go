package linemerge_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/gitsource/linemerge"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	const base = "a\nb\nc\nd\n"
	for name, test := range map[string]struct {
		ours, theirs, want string // no want: a conflict
	}{
		"nobody changed":          {base, base, base},
		"one side":                {"a\nB\nc\nd\n", base, "a\nB\nc\nd\n"},
		"both, apart":             {"A\nb\nc\nd\n", "a\nb\nc\nD\n", "A\nb\nc\nD\n"},
		"both, the same":          {"a\nX\nc\nd\n", "a\nX\nc\nd\n", "a\nX\nc\nd\n"},
		"both, the same line":     {"a\nX\nc\nd\n", "a\nY\nc\nd\n", ""},
		"lines that touch":        {"a\nX\nc\nd\n", "a\nb\nY\nd\n", ""},
		"inserted and removed":    {"0\na\nb\nc\nd\n", "a\nb\nc\n", "0\na\nb\nc\n"},
		"no line feed at the end": {"A\nb\nc\nd\n", "a\nb\nc\nd", "A\nb\nc\nd"},
	} {
		merged, ok := linemerge.Merge([]byte(base), []byte(test.ours), []byte(test.theirs))
		if ok != (test.want != "") || ok && string(merged) != test.want {
			t.Errorf("%s: got %q, %v, want %q", name, merged, ok, test.want)
		}
	}
}

// What differs in more lines than are compared is a conflict.
func TestMergeGivesUp(t *testing.T) {
	t.Parallel()
	if _, ok := linemerge.Merge([]byte(strings.Repeat("a\n", 2000)), []byte(strings.Repeat("b\n", 2000)), []byte("c\n")); ok {
		t.Error("merged")
	}
}
