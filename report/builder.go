package report

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/report/markdown"
)

// page is a text in the making that may have to be shortened.
type page struct {
	b       strings.Builder
	dropped bool // something was left out because of the size
	clipped bool // a value is not there as a whole
}

func (p *page) reset() {
	p.b.Reset()
	p.dropped, p.clipped = false, false
}

func (p *page) line(s string) {
	p.b.WriteString(s)
	p.b.WriteByte('\n')
}

// full reports whether the page is too long already, so that the rest of it need
// not be written.
func (p *page) full() bool { return p.b.Len() > commentLimit }

func (p *page) linef(format string, args ...any) { p.line(fmt.Sprintf(format, args...)) }

// cut returns the first lines of s, at most that many.
func (p *page) cut(s string, most int) string {
	lines := strings.Split(s, "\n")
	more := len(lines) - most
	if more > 0 {
		p.dropped = true
		lines = append(lines[:most:most], fmt.Sprintf("… %s", markdown.Plural(more, "more line")))
	}
	return strings.Join(lines, "\n")
}

// firstOf returns at most n of list, and remembers if that is not all.
func firstOf[T any](p *page, list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	p.dropped = true
	return list[:n]
}
