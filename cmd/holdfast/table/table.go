package table

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Column is one column of a table, and what it gives where a terminal is narrow.
type Column struct {
	Title string
	// Min is how short the column's cells may be made, with an ellipsis. Zero: they
	// are never shortened, as an id or a name that is cut is of no use.
	Min int
	// Yields says when the column is left out: those with the greatest number go
	// first. Zero: it stays.
	Yields int
}

// Width is how many places a text takes on a terminal: emoji take two.
func Width(text string) int {
	n := 0
	for _, r := range text {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.Is(unicode.Mn, r): // drawn over the one before
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// Columns are columns that give nothing.
func Columns(titles ...string) []Column {
	columns := make([]Column, len(titles))
	for i, t := range titles {
		columns[i].Title = t
	}
	return columns
}

// gap is between two columns.
const gap = 2

// Table returns rows under a header, with columns aligned. Nothing in a cell can break
// the lines. Where it is wider than the terminal, long cells are shortened and, if that
// is not enough, columns are left out: a last line names them.
func (p *Printer) Table(columns []Column, rows [][]Cell) string {
	return p.fit(columns, rows, p.Width)
}

// Section returns a titled block with a table, empty if it has no rows.
func (p *Printer) Section(title string, columns []Column, rows [][]Cell) string {
	if len(rows) == 0 {
		return ""
	}
	width := p.Width
	if width > 0 {
		width = max(width-len(indent), 1)
	}
	return Section(title, p.fit(columns, rows, width))
}

func (p *Printer) fit(columns []Column, rows [][]Cell, width int) string {
	header := make([]Cell, len(columns))
	for i, c := range columns {
		header[i].Text = c.Title
	}
	all := append([][]Cell{header}, rows...)
	widths := make([]int, len(columns))
	for _, row := range all {
		for i := range row {
			row[i].Text = OneLine(row[i].Text)
			widths[i] = max(widths[i], Width(row[i].Text))
		}
	}
	shown := make([]int, len(columns))
	for i := range shown {
		shown[i] = i
	}
	fitted := widths
	var left []string
	for width > 0 {
		fitted = shrink(columns, widths, shown, width)
		yields := mostYielding(columns, shown)
		if total(fitted, shown) <= width || yields < 0 {
			break
		}
		left = append(left, columns[shown[yields]].Title)
		shown = slices.Delete(shown, yields, yields+1)
	}
	text := p.lines(all, fitted, shown)
	if len(left) > 0 {
		text += p.Paint("(the terminal is too narrow for "+strings.Join(left, ", ")+")", Blue) + "\n"
	}
	return text
}

// shrink returns widths with which the shown columns fit, or come as near to that as
// possible: the widest of those that can be shortened goes first.
func shrink(columns []Column, widths, shown []int, width int) []int {
	widths = slices.Clone(widths)
	for total(widths, shown) > width {
		widest := -1
		for _, i := range shown {
			least := max(columns[i].Min, Width(columns[i].Title))
			if columns[i].Min > 0 && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// mostYielding returns which of the shown columns goes next, less than zero if none does.
func mostYielding(columns []Column, shown []int) int {
	most := -1
	for at, i := range shown {
		if columns[i].Yields > 0 && (most < 0 || columns[i].Yields > columns[shown[most]].Yields) {
			most = at
		}
	}
	return most
}

func total(widths, shown []int) int {
	sum := gap * (len(shown) - 1)
	for _, i := range shown {
		sum += widths[i]
	}
	return sum
}

func (p *Printer) lines(rows [][]Cell, widths, shown []int) string {
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for at, i := range shown {
			if i >= len(row) {
				break
			}
			text := row[i].Text
			if Width(text) > widths[i] {
				text = Shorten(text, widths[i])
			}
			line.WriteString(p.Paint(text, row[i].Colour))
			if at < len(shown)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-Width(text)+gap))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	return b.String()
}
