package journal_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/journal"
)

// TestDocument: a JSON object arrives whole, however it is cut, and without what stands
// before it.
func TestDocument(t *testing.T) {
	t.Parallel()
	const object = "{\n  \"a\": 1\n}\n{ not looked at\nany more\n"
	for text, want := range map[string]string{
		"":     "",
		object: object,
		"\nWarning: Unable to open CLI configuration file\n\nThe {file} is not there.\n\n" + object: object,
		"Warning: {\n { }\n" + object:         object,
		"Warning: nothing follows { here\n\n": "",
	} {
		for size := 1; size <= len(text)+1; size++ {
			var got strings.Builder
			w := journal.NewDocument(&got)
			for rest := text; rest != ""; {
				part := rest[:min(size, len(rest))]
				if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatalf("Write(%q) = %d, %v", part, n, err)
				}
				rest = rest[len(part):]
			}
			if got.String() != want {
				t.Errorf("of %q, %d bytes at a time, %q arrives", text, size, got.String())
			}
		}
	}
}
