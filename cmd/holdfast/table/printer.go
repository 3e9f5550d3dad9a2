package table

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/internal/unseen"
)

// Print writes value in a format; text makes what people read.
func (p *Printer) Print(format string, value any, text func() string) error {
	var out []byte
	var err error
	switch format {
	case "json":
		out, err = asJSON(value)
	case "yaml":
		out, err = asYAML(value)
	default:
		out = []byte(text())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", format, err)
	}
	if _, err := p.Out.Write(out); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func asJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return out.Bytes(), err
}

// asYAML writes what asJSON does, with the same keys in the same order: JSON is
// YAML, and only its style changes.
func asYAML(value any) ([]byte, error) {
	data, err := asJSON(value)
	if err != nil {
		return nil, err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, err
	}
	unquote(&node)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return nil, err
	}
	err = encoder.Close()
	return out.Bytes(), err
}

func unquote(node *yaml.Node) {
	node.Style = 0
	for _, n := range node.Content {
		unquote(n)
	}
}

// Printer writes what commands answer: to people, and to programs.
type Printer struct {
	Out      io.Writer
	Err      io.Writer
	Now      func() time.Time
	Terminal bool // Out is one: it must not be given control sequences
	Colour   bool // it wants colours
	Width    int  // of the terminal, in characters; zero: nothing is made to fit
}

// Buffered returns a Printer that writes answers to memory, in the same way.
func (p *Printer) Buffered() (*Printer, *bytes.Buffer) {
	out := new(bytes.Buffer)
	same := *p
	same.Out = out
	return &same, out
}

// Colour is the colour of a word, on terminals that support it.
type Colour string

// The colours of words.
const (
	Plain  Colour = ""
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	Blue   Colour = "34"
)

// Paint shows a text in a colour, where the output wants any.
func (p *Printer) Paint(text string, c Colour) string {
	if !p.Colour || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Cell is one place in a table.
type Cell struct {
	Text   string
	Colour Colour
}

// Cells are cells without colours.
func Cells(texts ...string) []Cell {
	row := make([]Cell, len(texts))
	for i, t := range texts {
		row[i] = Cell{Text: t}
	}
	return row
}

// Fields returns "name: value" lines with the values aligned; empty values are
// left out.
func (p *Printer) Fields(rows ...[2]string) string {
	width := 0
	for _, r := range rows {
		if r[1] != "" {
			width = max(width, len(r[0]))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		if r[1] == "" {
			continue
		}
		indent := "\n" + strings.Repeat(" ", width+3)
		value := strings.ReplaceAll(strings.TrimRight(Clean(r[1]), "\n"), "\n", indent)
		fmt.Fprintf(&b, "%s:%s%s\n", r[0], strings.Repeat(" ", width-len(r[0])+2), value)
	}
	return b.String()
}

// Wrapped lists words for a value of Fields, in lines that fit.
func (p *Printer) Wrapped(words []string) string {
	const usual = 100
	listed := make([]string, len(words))
	for i, word := range words {
		if listed[i] = word; i < len(words)-1 {
			listed[i] += ","
		}
	}
	return wrapValue(listed, cmp.Or(p.Width, usual))
}

// Filled puts a sentence for a value of Fields in lines that fit a terminal. Lines that
// it has stay lines.
func (p *Printer) Filled(text string) string {
	if p.Width == 0 {
		return text
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, wrapValue(strings.Fields(line), p.Width))
	}
	return strings.Join(lines, "\n")
}

// wrapValue puts words in lines, for a value of Fields in so many places of a terminal.
func wrapValue(words []string, places int) string {
	const label = 16
	most := max(places-label, 20)
	var b strings.Builder
	taken := 0
	for _, word := range words {
		n := Width(word)
		switch {
		case taken == 0:
		case taken+1+n > most:
			b.WriteByte('\n')
			taken = 0
		default:
			b.WriteByte(' ')
			taken++
		}
		b.WriteString(word)
		taken += n
	}
	return b.String()
}

// indent is what precedes the lines of a section.
const indent = "  "

// Section returns a titled block, empty if there is nothing in it.
func Section(title, body string) string {
	body = strings.TrimRight(body, "\n")
	if body == "" {
		return ""
	}
	return "\n" + title + "\n" + indent + strings.ReplaceAll(body, "\n", "\n"+indent) + "\n"
}

// Clean replaces control characters, and what is not seen: texts come from pull
// requests, and a terminal obeys what it is shown. A symbol may be a coloured one.
func Clean(text string) string {
	var last rune
	return strings.Map(func(r rune) rune {
		before := last
		last = r
		switch {
		case r == '\n' || r == '\t', r == coloured && before >= 0x2100 && before <= 0x2bff:
			return r
		case unicode.IsControl(r) || unseen.Is(r):
			return '�'
		}
		return r
	}, text)
}

// coloured asks for the coloured form of the symbol before it, such as ⚠️.
const coloured = '\ufe0f'

// OneLine is a text without line breaks and control characters.
func OneLine(text string) string {
	return strings.Join(strings.Fields(Clean(text)), " ")
}

// Shorten cuts a text to so many places of a terminal, with an ellipsis.
func Shorten(text string, places int) string {
	text = OneLine(text)
	if Width(text) <= places {
		return text
	}
	taken := 0
	for at, r := range text {
		if taken += Width(string(r)); taken > places-1 {
			return text[:at] + "…"
		}
	}
	return text
}

// Age returns how long ago t was, in the largest unit that says enough.
func (p *Printer) Age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ShortDuration(max(p.Now().Sub(t), 0))
}

// ShortDuration is a duration in the largest unit that says enough.
func ShortDuration(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// When returns a point in time with its age, for descriptions.
func (p *Printer) When(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339) + " (" + p.Age(t) + " ago)"
}

// OrList lists words: a, b or c.
func OrList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// CalmWriter passes text on to a terminal, colours if they are wanted, and
// nothing else that a terminal obeys or that hides other text: a return without a new
// line begins one. Use one for one log.
type CalmWriter struct {
	Out      io.Writer
	Colour   bool
	pending  []byte // an escape sequence that has not ended
	part     []byte // of a character that has not ended
	returned bool   // the last character was a return
}

// maxEscape is longer than any colour.
const maxEscape = 32

func (w *CalmWriter) Write(p []byte) (int, error) {
	text := append(w.part, p...)
	out := make([]byte, 0, len(text)+len(w.pending))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		out = w.pass(out, r, text[:size])
		text = text[size:]
	}
	w.part = bytes.Clone(text)
	if _, err := w.Out.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// pass appends a character if a terminal only shows it.
func (w *CalmWriter) pass(out []byte, r rune, encoded []byte) []byte {
	if w.returned && r != '\n' {
		out = append(out, '\n')
	}
	w.returned = false
	switch {
	case len(w.pending) > 0 && r < utf8.RuneSelf:
		return w.escape(out, byte(r))
	case r == 0x1b:
		w.pending = append(w.pending[:0], 0x1b)
		return out
	case r == '\r':
		w.returned = true
		return out
	case r == '\n' || r == '\t':
		return append(out, encoded...)
	case unicode.IsControl(r):
		return out
	case r == utf8.RuneError || unseen.Is(r) && r != coloured:
		return append(out, "�"...)
	}
	w.pending = w.pending[:0] // no sequence has such a character
	return append(out, encoded...)
}

// escape takes the next byte of an escape sequence. A whole colour is passed
// on; what turns out to be something else loses its escape.
func (w *CalmWriter) escape(out []byte, b byte) []byte {
	w.pending = append(w.pending, b)
	switch {
	case len(w.pending) == 2 && b == '[':
		return out
	case len(w.pending) > 2 && b == 'm':
		if w.Colour {
			out = append(out, w.pending...)
		}
	case len(w.pending) > 2 && len(w.pending) < maxEscape && (b >= '0' && b <= '9' || b == ';'):
		return out
	case b == '\n':
		out = append(out, b)
	}
	w.pending = w.pending[:0]
	return out
}

// NotNil makes an empty list print as one.
func NotNil[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// Joined is a text with a detail, or the only one of both that is not empty.
func Joined(text, detail string) string {
	if text == "" || detail == "" {
		return text + detail
	}
	return text + ": " + detail
}

// Count is a number of things in words.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if s, ok := strings.CutSuffix(thing, "y"); ok {
		return fmt.Sprintf("%d %sies", n, s)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Until returns how long it is until t, nothing for the zero time.
func (p *Printer) Until(t time.Time) string {
	switch left := t.Sub(p.Now()); {
	case t.IsZero():
		return ""
	case left < time.Second:
		return "now"
	default:
		return "in " + ShortDuration(left)
	}
}

// Place is a line of a file.
func Place(path string, line int) string {
	if path == "" || line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, line)
}
