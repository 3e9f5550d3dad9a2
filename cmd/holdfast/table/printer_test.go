package table_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func TestColoursAndAlignment(t *testing.T) {
	t.Parallel()
	a := table.Printer{Colour: true, Now: time.Now}
	got := a.Table(table.Columns("A", "B"), [][]table.Cell{{{Text: "ü\nx", Colour: table.Red}, {Text: "1", Colour: table.Plain}}, {{Text: "long", Colour: table.Green}, {Text: "2", Colour: table.Plain}}})
	want := "A     B\n\x1b[31mü x\x1b[0m   1\n\x1b[32mlong\x1b[0m  2\n"
	if got != want {
		t.Errorf("table = %q, want %q", got, want)
	}
}

func TestCalmWriter(t *testing.T) {
	t.Parallel()
	const text = "a\x1b[31mred\x1b[0m\tb\r\n\x1b[2Jc\x1b]0;title\x07d\x1bcé\x1b\nend" +
		"\u009b2J\u009b31m 5 to destroy\r0 to destroy \u202eabc\u200b \x9b \x1b[1é ⚠️ 50 %\r\r\n."
	const rest = "2J31m 5 to destroy\n0 to destroy �abc� � é ⚠️ 50 %\n\n."
	for _, tc := range []struct {
		colour bool
		want   string
	}{
		{true, "a\x1b[31mred\x1b[0m\tb\nc0;titledé\nend" + rest},
		{false, "ared\tb\nc0;titledé\nend" + rest},
	} {
		for size := range len(text) {
			var out bytes.Buffer
			w := table.CalmWriter{Out: &out, Colour: tc.colour}
			for rest := text; rest != ""; {
				n := min(size+1, len(rest))
				_, _ = w.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			if out.String() != tc.want {
				t.Fatalf("in pieces of %d: %q, want %q", size+1, out.String(), tc.want)
			}
		}
	}
}

// TestCleanShowsWhatIsNotSeen: names that look the same are told apart.
func TestCleanShowsWhatIsNotSeen(t *testing.T) {
	t.Parallel()
	for _, r := range "\x1b\u202e\u200b\ufe0f\U000e0100\u115f" {
		if got := table.Clean("prod" + string(r) + "eu"); got != "prod�eu" {
			t.Errorf("Clean() with %U = %q", r, got)
		}
	}
	for _, icon := range []string{"⚠️ 1 warning", "ℹ️ 1 change", "♻️"} {
		if got := table.Clean(icon); got != icon {
			t.Errorf("Clean(%q) = %q", icon, got)
		}
	}
}
