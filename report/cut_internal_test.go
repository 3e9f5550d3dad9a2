package report

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func cellOf(before, after string) string {
	return changeCell(holdfast.AttributeChange{Before: json.RawMessage(before), After: json.RawMessage(after)}).cell
}

// TestCutsTellWhatDiffers has values whose cuts are equal.
func TestCutsTellWhatDiffers(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("0", 58)
	for _, c := range []struct{ before, after, want string }{
		{"1" + strings.Repeat("0", 400), "1" + strings.Repeat("0", 401), "`…" + zeros + "00` (401 digits) → `…" + zeros + "00` (402 digits)"},
		{`"` + strings.Repeat("x", 100) + `"`, `"` + strings.Repeat("x", 101) + `"`, "x\"` (100 characters) → "},
		{`{"a":null}`, `{"a":1,"b":"` + strings.Repeat("y", 60) + `"}`, "`a` in it: `null` → `1`"},
		{`{"a":null,"b":"` + strings.Repeat("y", 60) + `"}`, `{"b":"` + strings.Repeat("y", 60) + `"}`, "`a` in it: `null` → nothing"},
	} {
		if got := cellOf(c.before, c.after); !strings.Contains(got, c.want) {
			t.Errorf("%.20s → %.20s: %s, want %s in it", c.before, c.after, got, c.want)
		}
	}
}

// besides is what a cell says besides the two values.
var besides = regexp.MustCompile("^line \\d+: |^`[^`]*` in it: (line \\d+: )?| and \\d+ more changed? ?(lines?|s)?( in it)?$")

// TestUnequalLinesLookUnequal is a property: a line that is gone never looks like a new
// one, nor a value like the one in its place.
func TestUnequalLinesLookUnequal(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	piece := func() string {
		all := []string{"", "a", "b", "\u200b", `\u200b`, "\r", `\r`, strings.Repeat("x", 49), strings.Repeat("xy", 40)}
		return all[random.IntN(len(all))]
	}
	side := func() (lines []string) {
		for range 1 + random.IntN(4) {
			lines = append(lines, piece()+piece()+piece())
		}
		return lines
	}
	for range 20_000 {
		h := hunk{line: 1, before: side(), after: side()}
		p := &painter{limit: 50}
		p.hunks([]hunk{h})
		lines := strings.Split(strings.TrimSuffix(p.b.String(), "\n"), "\n")[1:]
		for i, before := range h.before {
			for k, after := range h.after {
				if before != after && lines[i][1:] == lines[len(h.before)+k][1:] {
					t.Fatalf("%q and %q are both shown as %s", before, after, lines[i][1:])
				}
			}
		}
		one, other := quoted(h.before[0]), quoted(h.after[0])
		if shown := p.value(one, other); string(one) != string(other) && shown == p.value(other, one) {
			t.Fatalf("%s and %s are both shown as %s", one, other, shown)
		}
	}
}

// TestUnequalValuesLookUnequal is a property: of two values that differ the table
// never says the same.
func TestUnequalValuesLookUnequal(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"0", "1", "a", "ab", "\n", "\\", `"`, "é", "e\u0301", "\u200b", " ", "{", "}", "[1]", `{"k":null}`, "x\ny\n", "→", "…", "|", "`"}
	text := func(of []string) string {
		var b strings.Builder
		piece := of[random.IntN(len(of))]
		for range random.IntN(300) {
			if random.IntN(40) == 0 {
				piece = of[random.IntN(len(of))]
			}
			b.WriteString(piece)
		}
		return b.String()
	}
	value := func() string {
		if random.IntN(3) == 0 {
			return "1" + text(pieces[:2])
		}
		return string(quoted(text(pieces)))
	}
	grown := func(v string) string {
		if strings.HasPrefix(v, `"`) {
			var s string
			_ = json.Unmarshal([]byte(v), &s)
			at := random.IntN(len(s) + 1)
			return string(quoted(strings.ToValidUTF8(s[:at], "") + s[max(0, at-random.IntN(3)):]))
		}
		return v + v[len(v)-1:]
	}
	for range 20_000 {
		before := value()
		after := grown(before)
		if before == after {
			continue
		}
		cell := cellOf(before, after)
		sides := besides.ReplaceAllString(cell, "")
		half := (len(sides) - len(" → ")) / 2
		if half > 0 && len(sides) == 2*half+len(" → ") && sides[:half] == sides[half+len(" → "):] {
			t.Fatalf("%q and %q are both shown as %s", before, after, sides[:half])
		}
	}
}
