package authoring_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/templates/authoring"
)

func TestUnified(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ from, to, want string }{
		"the same":    {"a\nb\n", "a\nb\n", ""},
		"one line":    {"a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
		"all new":     {"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
		"all gone":    {"a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		"no line end": {"a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		"far apart": {
			"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "x\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\ny\n",
			"@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+y\n",
		},
		"close by": {
			"1\n2\n3\n4\n5\n6\n", "x\n2\n3\n4\n5\ny\n",
			"@@ -1,6 +1,6 @@\n-1\n+x\n 2\n 3\n 4\n 5\n-6\n+y\n",
		},
	} {
		want := tc.want
		if want != "" {
			want = "--- a\n+++ b\n" + want
		}
		if got := authoring.Unified("a", "b", []byte(tc.from), []byte(tc.to)); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// patched applies a difference as patch does.
func patched(from, diff string) (string, error) {
	source := strings.SplitAfter(from, "\n")
	if source[len(source)-1] == "" {
		source = source[:len(source)-1]
	}
	var out strings.Builder
	next := 0
	for _, part := range strings.Split("\n"+diff, "\n@@ ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		var line, count int
		if _, err := fmt.Sscanf(head, "-%d,%d ", &line, &count); err != nil { // of one line there is no count
			if _, err := fmt.Sscanf(head, "-%d ", &line); err != nil {
				return "", err
			}
			count = 1
		}
		if count > 0 {
			line--
		}
		for ; next < line; next++ {
			out.WriteString(source[next])
		}
		text := strings.ReplaceAll(body, "\n\\ No newline at end of file", "\x00")
		for row := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			content, bare := strings.CutSuffix(row[1:], "\x00")
			if !bare {
				content += "\n"
			}
			if row[0] != '+' {
				if next >= len(source) || source[next] != content {
					return "", fmt.Errorf("line %d is not %q", next+1, content)
				}
				next++
			}
			if row[0] != '-' {
				out.WriteString(content)
			}
		}
	}
	for ; next < len(source); next++ {
		out.WriteString(source[next])
	}
	return out.String(), nil
}

// What Unified says leads from one text to the other.
func FuzzUnified(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nc\nd")
	f.Add("", "x")
	f.Add("a\na\na\nb\n", "b\na\na\n")
	f.Fuzz(func(t *testing.T, from, to string) {
		if strings.ContainsAny(from+to, "\x00\\@") || len(from)+len(to) > 10_000 {
			t.Skip("what the test itself uses")
		}
		diff := authoring.Unified("a", "b", []byte(from), []byte(to))
		if got, err := patched(from, diff); err != nil || got != to {
			t.Errorf("%q to %q: %q, %v by\n%s", from, to, got, err, diff)
		}
	})
}
