package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
)

var formats = []string{"table", "json", "yaml"}

func addFormatFlag(c *cobra.Command, format *string) {
	c.Flags().StringVarP(format, "output", "o", "table", "how to print: table, json or yaml")
	checked := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if !slices.Contains(formats, *format) {
			return usageError("output %q: want table, json or yaml", *format)
		}
		if checked != nil {
			return checked(c, args)
		}
		return nil
	}
}

// print writes value in a format; text makes what people read.
func (a *app) print(format string, value any, text func() string) error {
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
	if _, err := a.out.Write(out); err != nil {
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

// colour is one that a word is shown in, on terminals that want it.
type colour string

const (
	plain  colour = ""
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	blue   colour = "34"
)

func (a *app) paint(text string, c colour) string {
	if !a.colour || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// cell is one place in a table.
type cell struct {
	text   string
	colour colour
}

func cells(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, t := range texts {
		row[i] = cell{text: t}
	}
	return row
}

// table returns rows under a header, with columns aligned. Nothing in a cell
// can break the lines.
func (a *app) table(header []string, rows [][]cell) string {
	all := append([][]cell{cells(header...)}, rows...)
	widths := make([]int, len(header))
	for _, row := range all {
		for i := range row {
			row[i].text = oneLine(row[i].text)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	var b strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, c := range row {
			line.WriteString(a.paint(c.text, c.colour))
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+2))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// fields returns "name: value" lines with the values aligned; empty values are
// left out.
func (a *app) fields(rows ...[2]string) string {
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
		value := strings.ReplaceAll(strings.TrimRight(clean(r[1]), "\n"), "\n", indent)
		fmt.Fprintf(&b, "%s:%s%s\n", r[0], strings.Repeat(" ", width-len(r[0])+2), value)
	}
	return b.String()
}

// section returns a titled block, empty if there is nothing in it.
func section(title, body string) string {
	body = strings.TrimRight(body, "\n")
	if body == "" {
		return ""
	}
	return "\n" + title + "\n  " + strings.ReplaceAll(body, "\n", "\n  ") + "\n"
}

// clean replaces control characters: texts come from pull requests, and a
// terminal obeys what it is shown.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || isHidden(r) {
			return '�'
		}
		return r
	}, text)
}

// isHidden tells the characters that reorder the text around them or are not seen.
func isHidden(r rune) bool { return unicode.Is(unicode.Cf, r) }

func oneLine(text string) string {
	return strings.Join(strings.Fields(clean(text)), " ")
}

func shorten(text string, width int) string {
	runes := []rune(oneLine(text))
	if len(runes) <= width {
		return string(runes)
	}
	return string(runes[:width-1]) + "…"
}

// age returns how long ago t was, in the largest unit that says enough.
func (a *app) age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return shortDuration(max(a.now().Sub(t), 0))
}

func shortDuration(d time.Duration) string {
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

// when returns a point in time with its age, for descriptions.
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339) + " (" + a.age(t) + " ago)"
}

func countsText(c holdfast.Counts) string {
	if c.Zero() {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		sign string
		n    int
	}{
		{"+", c.Create},
		{"~", c.Update},
		{"±", c.Replace},
		{"-", c.Delete},
		{"import ", c.Import},
		{"move ", c.Move},
		{"forget ", c.Forget},
		{"outputs ", c.Outputs},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s%d", p.sign, p.n))
		}
	}
	return strings.Join(parts, " ")
}

func statusCell(s holdfast.RunStatus) cell {
	c := cell{text: string(s)}
	switch s {
	case holdfast.RunErrored, holdfast.RunInterrupted:
		c.colour = red
	case holdfast.RunApplied, holdfast.RunNoChanges:
		c.colour = green
	case holdfast.RunWaiting, holdfast.RunRetrying, holdfast.RunCanceled:
		c.colour = yellow
	case holdfast.RunRunning, holdfast.RunPlanned:
		c.colour = blue
	default: // queued: not worth a colour
	}
	return c
}

func phaseCell(p holdfast.Phase) cell {
	c := cell{text: string(p)}
	switch p {
	case holdfast.PhaseFailed:
		c.colour = red
	case holdfast.PhaseActive:
		c.colour = green
	case holdfast.PhaseProvisioning, holdfast.PhaseConfiguring, holdfast.PhaseUpdating, holdfast.PhaseDeleting:
		c.colour = blue
	default: // pending or deleted: nothing continues
	}
	return c
}

func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// calmWriter passes text on to a terminal, colours if they are wanted, and
// nothing else that a terminal obeys. Use one for one log.
type calmWriter struct {
	out     io.Writer
	colour  bool
	pending []byte // an escape sequence that has not ended
}

// maxEscape is longer than any colour.
const maxEscape = 32

func (w *calmWriter) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(p)+len(w.pending))
	for _, b := range p {
		switch {
		case len(w.pending) > 0:
			out = w.escape(out, b)
		case b == 0x1b:
			w.pending = append(w.pending, b)
		case b < ' ' && b != '\n' && b != '\t' && b != '\r' || b == 0x7f:
		default:
			out = append(out, b)
		}
	}
	if _, err := w.out.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escape takes the next byte of an escape sequence. A whole colour is passed
// on; what turns out to be something else loses its escape.
func (w *calmWriter) escape(out []byte, b byte) []byte {
	w.pending = append(w.pending, b)
	switch {
	case len(w.pending) == 2 && b == '[':
		return out
	case len(w.pending) > 2 && b == 'm':
		if w.colour {
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
