package show

import (
	"html"
	"regexp"
	"strings"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// commentText shows a comment as a terminal can: headings, boxes, tables and folded
// parts without their Markdown and HTML. What is in a block of code stays as it is.
func commentText(p *table.Printer, body string) string {
	c := commentWriter{p: p, width: p.Width - 2}
	for line := range strings.Lines(table.Clean(withoutZeroWidth.Replace(body))) {
		c.line(strings.TrimRight(line, "\n"))
	}
	c.endTable()
	return strings.Trim(manyBlank.ReplaceAllString(c.out.String(), "\n\n"), "\n") + "\n"
}

var (
	// hiddenMarker is how a comment is found again. Code hosts do not show it. What
	// looks like one elsewhere is part of a plan.
	hiddenMarker = regexp.MustCompile(`^<!-- holdfast:\S+(?: \S+)? -->$`)
	foldedPart   = regexp.MustCompile(`^<details(?: open)?><summary>(.*)</summary>$`)
	smallPart    = regexp.MustCompile(`^<sub>(.*)</sub>$`)
	box          = regexp.MustCompile(`^> \[!([A-Z]+)\]$`)
	heading      = regexp.MustCompile(`^#{1,6} (.*)$`)
	item         = regexp.MustCompile(`^(\s*)[-*] (.*)$`)
	ruler        = regexp.MustCompile(`^\|(?:\s*:?-+:?\s*\|)+$`)
	tags         = regexp.MustCompile(`</?(?:b|i|code|sub|em|strong)>`)
	link         = regexp.MustCompile(`\[([^\]]*)\]\((https?://[^)\s]+)\)`)
	escaped      = regexp.MustCompile("\\\\([\\\\`*_\\[\\]|~!$#+=.<>-])")
	manyBlank    = regexp.MustCompile(`\n{3,}`)
	// Mentions and references are kept from code hosts by characters without width.
	withoutZeroWidth = strings.NewReplacer("\u200b", "")
)

// commentWriter writes one comment, line by line.
type commentWriter struct {
	p     *table.Printer
	out   strings.Builder
	width int        // of a line; zero or less: any
	fence int        // backticks that the block of code began with; zero outside of one
	rows  [][]string // of the table that is being read
}

func (c *commentWriter) line(text string) {
	fence := backticks(text)
	switch {
	case c.fence == 0 && hiddenMarker.MatchString(text):
		return
	case c.fence == 0 && fence >= 3:
		c.endTable()
		c.fence = fence
		return
	case c.fence > 0 && fence >= c.fence && fence == len(text):
		c.fence = 0
		return
	case c.fence > 0:
		c.out.WriteString("    " + c.p.Paint(text, diffColour(text)) + "\n")
		return
	}
	if strings.HasPrefix(text, "|") {
		if !ruler.MatchString(text) {
			c.rows = append(c.rows, tableCells(text))
		}
		return
	}
	c.endTable()
	c.prose(text)
}

func (c *commentWriter) prose(text string) {
	if m := foldedPart.FindStringSubmatch(text); m != nil {
		c.wrap("▸ ", "  ", inline(m[1]), table.Blue)
	} else if m := heading.FindStringSubmatch(text); m != nil {
		c.wrap("", "", inline(m[1]), table.Blue)
	} else if m := box.FindStringSubmatch(text); m != nil {
		c.wrap("┃ ", "┃ ", m[1], table.Red)
	} else if m := smallPart.FindStringSubmatch(text); m != nil {
		c.wrap("", "", inline(m[1]), table.Plain)
	} else if m := item.FindStringSubmatch(text); m != nil {
		c.wrap(m[1]+"- ", m[1]+"  ", inline(m[2]), table.Plain)
	} else if quoted, ok := strings.CutPrefix(text, ">"); ok {
		c.wrap("┃ ", "┃ ", inline(strings.TrimSpace(quoted)), table.Plain)
	} else if text != "</details>" {
		c.wrap("", "", inline(text), table.Plain)
	}
}

// inline takes the markup out of a line.
func inline(text string) string {
	var out strings.Builder
	for text != "" {
		before, code, after := codeSpan(text)
		before = link.ReplaceAllString(before, "$1 ($2)")
		before = strings.ReplaceAll(tags.ReplaceAllString(before, ""), "**", "")
		before = strings.ReplaceAll(before, "<br>", "; ")
		// An entity may stand for a control character, which was not seen before.
		out.WriteString(table.Clean(html.UnescapeString(escaped.ReplaceAllString(before, "$1"))))
		out.WriteString(code)
		text = after
	}
	return out.String()
}

// codeSpan cuts text around its first span of code, which begins and ends with the
// same number of backticks, and stays as it is.
func codeSpan(text string) (before, code, after string) {
	for at := 0; at < len(text); {
		start := strings.IndexByte(text[at:], '`')
		if start < 0 {
			break
		}
		start += at
		if slashes := len(text[:start]) - len(strings.TrimRight(text[:start], `\`)); slashes%2 == 1 {
			at = start + 1 // an escaped backtick
			continue
		}
		ticks := backticks(text[start:])
		for end := start + ticks; end < len(text); {
			next := strings.IndexByte(text[end:], '`')
			if next < 0 {
				break
			}
			end += next
			n := backticks(text[end:])
			if n == ticks {
				code = text[start+ticks : end]
				if strings.Trim(code, " ") != "" && code[0] == ' ' && code[len(code)-1] == ' ' {
					code = code[1 : len(code)-1]
				}
				return text[:start], code, text[end+n:]
			}
			end += n
		}
		at = start + ticks
	}
	return text, "", ""
}

func backticks(text string) int { return len(text) - len(strings.TrimLeft(text, "`")) }

// wrap writes a paragraph in lines that fit, the first after one prefix and the others
// after another.
func (c *commentWriter) wrap(first, others, text string, colour table.Colour) {
	prefix, line := first, ""
	flush := func() {
		c.out.WriteString(strings.TrimRight(prefix+c.p.Paint(line, colour), " ") + "\n")
		prefix, line = others, ""
	}
	for _, word := range strings.Fields(text) {
		length := table.Width(prefix+line+word) + 1
		if c.width > 0 && line != "" && length > c.width {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	flush()
}

// tableCells splits a row of a table at the bars that are not escaped.
func tableCells(row string) []string {
	const bar = "\x00"
	row = strings.ReplaceAll(strings.Trim(strings.TrimSpace(row), "|"), `\|`, bar)
	cells := strings.Split(row, "|")
	for i, cell := range cells {
		cells[i] = inline(strings.ReplaceAll(strings.TrimSpace(cell), bar, "|"))
	}
	return cells
}

// endTable writes the table that was read. Columns without anything in them are left
// out, and long texts get their own lines below their row.
func (c *commentWriter) endTable() {
	if len(c.rows) == 0 {
		return
	}
	columns, rows := filled(c.rows)
	c.rows = nil
	last := len(columns) - 1
	if c.width <= 0 || last < 1 || rowsWidth(columns, rows) <= c.width {
		c.out.WriteString((&table.Printer{}).Table(columns, rows))
		return
	}
	for _, row := range rows { // a table would be cut: nothing of a plan is
		var short []string
		for i, cell := range row[:last] {
			if cell.Text != "" {
				short = append(short, label(columns[i].Title)+cell.Text)
			}
		}
		c.wrap("- ", "  ", strings.Join(short, "  "), table.Plain)
		if text := row[last].Text; text != "" {
			c.wrap("    "+label(columns[last].Title), "    ", text, table.Plain)
		}
	}
}

// label says which column a number is of; words say so themselves.
func label(title string) string {
	switch title {
	case "Create", "Change", "Replace", "Destroy", "Run":
		return strings.ToLower(title) + " "
	}
	return ""
}

func filled(rows [][]string) ([]table.Column, [][]table.Cell) {
	var columns []table.Column
	out := make([][]table.Cell, len(rows)-1)
	for i, title := range rows[0] {
		used := false
		for _, row := range rows[1:] {
			used = used || i < len(row) && row[i] != ""
		}
		if !used {
			continue
		}
		columns = append(columns, table.Column{Title: title})
		for at, row := range rows[1:] {
			cell := table.Cell{}
			if i < len(row) {
				cell.Text = row[i]
			}
			out[at] = append(out[at], cell)
		}
	}
	return columns, out
}

func rowsWidth(columns []table.Column, rows [][]table.Cell) int {
	sum := 0
	for i, column := range columns {
		width := table.Width(column.Title)
		for _, row := range rows {
			width = max(width, table.Width(row[i].Text))
		}
		sum += width + 2
	}
	return sum
}

func diffColour(line string) table.Colour {
	switch {
	case strings.HasPrefix(line, "+"):
		return table.Green
	case strings.HasPrefix(line, "-"):
		return table.Red
	case strings.HasPrefix(line, "~"), strings.HasPrefix(line, "±"):
		return table.Yellow
	}
	return table.Plain
}
