package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"
	"golang.org/x/text/unicode/norm"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/unseen"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

const (
	sensitiveMark = `"` + holdfast.SensitiveValue + `"`
	unknownMark   = `"` + holdfast.UnknownValue + `"`
)

// visible returns s on one line with everything that a reader would not see, such
// as a newline or a mark that turns the direction of writing, as an escape, and so are
// letters that pass for others: values that differ do not look the same. Accents that
// are characters of their own are shown so where one character has both.
func visible(s string) string {
	composed, fakes := norm.NFC.IsNormalString(s), unseen.Disguised(s)
	if composed && fakes == nil && !strings.ContainsFunc(s, hides) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r > 0xffff && hides(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		case hides(r), fakes[i], !composed && unicode.Is(unicode.Mn, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// hides reports whether a character cannot be seen, or changes how others look.
func hides(r rune) bool {
	return !unicode.IsPrint(r) || unseen.Is(r) || r >= 0x1d400 && r <= 0x1d7ff || r >= 0xff01 && r <= 0xff5e // ASCII in other shapes
}

// codeText is code for what is to be seen as it is, with its spaces.
func codeText(s string) string { return codeSpan(visible(s)) }

// codeSpan is code of a text in which everything can be seen.
func codeSpan(s string) string {
	if strings.TrimSpace(s) == "" {
		return "` `"
	}
	fence := strings.Repeat("`", markdown.LongestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.HasPrefix(s, " ") && strings.HasSuffix(s, " ") {
		s = " " + s + " "
	}
	return fence + strings.ReplaceAll(s, "|", `\|`) + fence
}

// cellLimit is how much of a value is shown in a table.
const cellLimit = 60

// changeCell is "before → after" for a table. Long values are cut around the
// place in which they differ from each other.
func changeCell(a holdfast.AttributeChange) cells {
	switch {
	case len(a.Before)+len(a.After) == 0:
		return cells{}
	case shown(a.Before) && shown(a.After):
		c := compareValues(a.Before, a.After)
		return cells{c.cell + secretWords(a), c.partial}
	default:
		return sidesCell(a, holdfast.AttributeChange{})
	}
}

// secretWords says of values that are shown in part that the rest changes as well, or
// may: of texts their marks are of the whole.
func secretWords(a holdfast.AttributeChange) string {
	switch {
	case !shown(a.Before) || !shown(a.After) || a.BeforeMark == "" || a.AfterMark == "" || a.BeforeMark == a.AfterMark:
		return ""
	case bytes.Equal(a.Before, a.After):
		return " (a sensitive value in it changes)"
	default:
		return " (a sensitive value in it may change, too)"
	}
}

// sidesCell is changeCell for values that are cut around where they differ from those
// of like.
func sidesCell(a, like holdfast.AttributeChange) cells {
	before, after := sideCell(a.Before, like.Before), sideCell(a.After, like.After)
	return cells{before.cell + " → " + after.cell, before.partial || after.partial}
}

// shown reports whether a value is in the plan itself.
func shown(raw json.RawMessage) bool {
	s := string(raw)
	return s != "" && s != "null" && s != sensitiveMark && s != unknownMark
}

// cells is what a table says, and whether that is only a part.
type cells struct {
	cell    string
	partial bool
}

// sideCell is one value, cut around where it differs from another.
func sideCell(raw, like json.RawMessage) cells {
	if !shown(raw) {
		return cells{cell: valueCell(raw)}
	}
	partial := utf8.RuneCount(raw) > cellLimit
	if shown(like) {
		return cells{cutValue(string(raw), string(like)), partial}
	}
	return cells{codeText(around(string(raw), 0, cellLimit)), partial}
}

// compareValues is what differs between two values, for a table: all of it if it is
// short; otherwise the first difference.
func compareValues(before, after json.RawMessage) cells {
	a, b := string(before), string(after)
	if utf8.RuneCountInString(a) <= cellLimit && utf8.RuneCountInString(b) <= cellLimit {
		return cells{cell: codeText(a) + " → " + codeText(b)}
	}
	if parts := structural(before, after); len(parts) > 0 {
		const most = 2
		var cell string
		for i, part := range parts[:min(len(parts), most)] {
			if i > 0 {
				cell += "; "
			}
			cell += codeText(markdown.Shorten(part.Path, 80)) + " in it: " + compareParts(part.Before, part.After)
		}
		if more := len(parts) - most; more > 0 {
			cell += fmt.Sprintf(" and %s in it", markdown.Plural(more, "more change"))
		}
		return cells{cell, true}
	}
	if hunks := lineHunks(before, after); len(hunks) > 0 {
		h := hunks[0]
		cell := fmt.Sprintf("line %d: ", h.line)
		switch {
		case len(h.before) == 0:
			cell += "new: " + sideCell(quoted(h.after[0]), nil).cell
		case len(h.after) == 0:
			cell += "gone: " + sideCell(quoted(h.before[0]), nil).cell
		default:
			cell += compareValues(quoted(h.before[0]), quoted(h.after[0])).cell
		}
		more := 0
		for _, h := range hunks {
			more += max(len(h.before), len(h.after))
		}
		if more--; more > 0 {
			cell += fmt.Sprintf(" and %s", markdown.Plural(more, "more changed line"))
		}
		return cells{cell, true}
	}
	return cells{cutValue(a, b) + " → " + cutValue(b, a), true}
}

// firstDifference is the number of the first character that is not the same.
func firstDifference(a, b string) int {
	at := 0
	for a != "" && b != "" {
		r, n := utf8.DecodeRuneInString(a)
		q, m := utf8.DecodeRuneInString(b)
		if r != q || n != m || a[:n] != b[:m] {
			return at
		}
		a, b = a[n:], b[m:]
		at++
	}
	return at
}

// around returns at most limit characters of s, so that the one of number at is
// among them, with an ellipsis where something is left out.
func around(s string, at, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit || !utf8.ValidString(s) && len(s) <= limit {
		return s
	}
	const before = 15
	begin := min(max(at-before, 0), len(runes)-1)
	if at < limit-before {
		begin = 0
	}
	end := min(begin+limit, len(runes))
	if end == len(runes) {
		begin = max(0, end-limit)
	}
	cut := string(runes[begin:end])
	if begin > 0 {
		cut = "…" + cut
	}
	if end < len(runes) {
		cut += "…"
	}
	return cut
}

// structural lists what differs between two texts that are JSON objects or lists
// themselves, such as policies; nil if they are not, or say the same.
func structural(before, after json.RawMessage) []holdfast.AttributeChange {
	a, ok := document(before)
	if !ok {
		return nil
	}
	b, ok := document(after)
	if !ok {
		return nil
	}
	var found []holdfast.AttributeChange
	compareTrees("", a, b, &found)
	if len(found) == 1 && found[0].Path == "" {
		return nil // nothing is left of what was
	}
	return found
}

// document is the value of a text that is JSON, or of an object or a list. One
// with a key twice is refused: readers differ in which of the two they take.
func document(raw json.RawMessage) (any, bool) {
	if begin := strings.TrimLeft(strings.TrimPrefix(string(raw[:min(len(raw), 20)]), `"`), " \\nrt"); begin != "" && begin[0] != '{' && begin[0] != '[' {
		return nil, false
	}
	v, ok := decoded(raw)
	if !ok {
		return nil, false
	}
	if s, isText := v.(string); isText {
		raw = json.RawMessage(s)
		if v, ok = decoded(raw); !ok {
			return nil, false
		}
	}
	switch v.(type) {
	case map[string]any, []any:
		return v, !twice(json.NewDecoder(bytes.NewReader(raw)))
	}
	return nil, false
}

// twice reports whether an object in the next value has a key twice.
func twice(dec *json.Decoder) bool {
	token, err := dec.Token()
	if err != nil {
		return true
	}
	open, ok := token.(json.Delim)
	if !ok {
		return false
	}
	keys := map[string]bool{}
	for dec.More() {
		if open == '{' {
			key, err := dec.Token()
			name, _ := key.(string)
			if err != nil || keys[name] {
				return true
			}
			keys[name] = true
		}
		if twice(dec) {
			return true
		}
	}
	_, err = dec.Token()
	return err != nil
}

func compareTrees(path string, a, b any, found *[]holdfast.AttributeChange) {
	x, isObject := a.(map[string]any)
	y, other := b.(map[string]any)
	if isObject && other {
		both := maps.Clone(x)
		maps.Copy(both, y)
		for _, key := range slices.Sorted(maps.Keys(both)) {
			in, had := x[key]
			out, has := y[key]
			below := keyPath(path, key)
			switch {
			case had && has:
				compareTrees(below, in, out, found)
			case had:
				*found = append(*found, holdfast.AttributeChange{Path: below, Before: encoded(in)})
			default:
				*found = append(*found, holdfast.AttributeChange{Path: below, After: encoded(out)})
			}
		}
		return
	}
	l, isList := a.([]any)
	m, other := b.([]any)
	if isList && other {
		for i := range max(len(l), len(m)) {
			below := fmt.Sprintf("%s[%d]", path, i)
			switch {
			case i < len(l) && i < len(m):
				compareTrees(below, l[i], m[i], found)
			case i < len(l):
				*found = append(*found, holdfast.AttributeChange{Path: below, Before: encoded(l[i])})
			default:
				*found = append(*found, holdfast.AttributeChange{Path: below, After: encoded(m[i])})
			}
		}
		return
	}
	if before, after := encoded(a), encoded(b); string(before) != string(after) {
		*found = append(*found, holdfast.AttributeChange{Path: path, Before: before, After: after})
	}
}

// keyPath is the path of a key; one that could be taken for more is quoted.
func keyPath(path, key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return path + "[" + string(encoded(key)) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// encoded is JSON without the escapes for HTML.
func encoded(v any) json.RawMessage {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // cannot be: it was decoded from JSON
		return nil
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}

func quoted(s string) json.RawMessage { return encoded(s) }

// hunk is lines that were, and those in their place.
type hunk struct {
	line          int // the first of them, from 1: as it will be
	before, after []string
}

// lineHunks compares two texts of several lines; nil if they are not.
func lineHunks(before, after json.RawMessage) []hunk {
	if !bytes.Contains(before, []byte(`\n`)) && !bytes.Contains(after, []byte(`\n`)) {
		return nil
	}
	a, first := decodedText(before)
	b, second := decodedText(after)
	if !first || !second || !strings.Contains(a+b, "\n") || a == b {
		return nil
	}
	return compareLines(strings.Split(a, "\n"), strings.Split(b, "\n"))
}

func decodedText(raw json.RawMessage) (string, bool) {
	v, ok := decoded(raw)
	if !ok {
		return "", false
	}
	s, ok := v.(string)
	return s, ok
}

// compareLines returns few changes that make b of a.
func compareLines(a, b []string) []hunk {
	var hunks []hunk
	for _, d := range lcs.DiffLines(a, b) {
		hunks = append(hunks, hunk{line: d.ReplStart + 1, before: a[d.Start:d.End], after: b[d.ReplStart:d.ReplEnd]})
	}
	return hunks
}

// valueCell is one value in a table.
func valueCell(raw json.RawMessage) string {
	switch s := string(raw); s {
	case "":
		return "nothing"
	case sensitiveMark, unknownMark:
		return strings.Trim(s, `"`)
	default:
		return codeText(around(s, 0, cellLimit))
	}
}
