package table_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func TestWrapped(t *testing.T) {
	t.Parallel()
	words := strings.Split(strings.Repeat("cluster-name ", 300), " ")[:300]
	for _, width := range []int{0, 60, 10} {
		p := table.Printer{Width: width}
		got := p.Wrapped(words)
		if joined := strings.ReplaceAll(got, "\n", " "); joined != strings.Join(words, ", ") {
			t.Errorf("width %d: the words are %q", width, joined)
		}
		for line := range strings.Lines(got) {
			if most := map[int]int{0: 84, 60: 44, 10: 20}[width]; len(strings.TrimSpace(line)) > most {
				t.Errorf("width %d: %q has more than %d characters", width, line, most)
			}
		}
	}
	if p := (&table.Printer{}); p.Wrapped(nil) != "" || p.Wrapped([]string{"a", "b"}) != "a, b" {
		t.Errorf("few: %q, %q", p.Wrapped(nil), p.Wrapped([]string{"a", "b"}))
	}
}
