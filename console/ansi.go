package console

import (
	"html/template"
	"strconv"
	"strings"
)

// ansi is how text is to look, by what engines print.
type ansi struct {
	bold, dim, italic, underline bool
	colour                       int // 30 to 37 or 90 to 97; zero: none
}

func (a ansi) class() string {
	var classes []string
	for _, one := range []struct {
		on   bool
		name string
	}{{a.bold, "a-b"}, {a.dim, "a-d"}, {a.italic, "a-i"}, {a.underline, "a-u"}, {a.colour != 0, "a-" + strconv.Itoa(a.colour)}} {
		if one.on {
			classes = append(classes, one.name)
		}
	}
	return strings.Join(classes, " ")
}

// apply takes in one sequence "ESC [ … m"; codes that are not known change nothing.
func (a ansi) apply(codes string) ansi {
	for code := range strings.SplitSeq(codes, ";") {
		switch n, err := strconv.Atoi(code); {
		case code == "" || err == nil && n == 0:
			a = ansi{}
		case err != nil:
		case n == 1:
			a.bold = true
		case n == 2:
			a.dim = true
		case n == 3:
			a.italic = true
		case n == 4:
			a.underline = true
		case n == 22:
			a.bold, a.dim = false, false
		case n == 23:
			a.italic = false
		case n == 24:
			a.underline = false
		case n == 39:
			a.colour = 0
		case n >= 30 && n <= 37, n >= 90 && n <= 97:
			a.colour = n
		}
	}
	return a
}

// logLine shows a line of a log: colours become classes, all other sequences of control
// characters are left out, and what is left of these is escaped.
func logLine(l LogLine) template.HTML {
	line := l.Text
	var b strings.Builder
	var style ansi
	piece := func(s string) {
		if s == "" {
			return
		}
		if class := style.class(); class != "" {
			b.WriteString(`<span class="` + class + `">`)
			defer b.WriteString(`</span>`)
		}
		escaped(&b, s)
	}
	for line != "" {
		at := strings.IndexByte(line, 0x1b)
		if at < 0 {
			break
		}
		piece(line[:at])
		var codes string
		var final byte
		codes, final, line = sequence(line[at:])
		if final == 'm' {
			style = style.apply(codes)
		}
	}
	piece(line)
	if l.More > 0 {
		b.WriteString(` <span class="cut">… ` + count(l.More) + ` more bytes: see raw</span>`)
	}
	return template.HTML(b.String()) //nolint:gosec // built from escaped pieces
}

// sequence takes an escape sequence from the beginning of s, which is ESC: one of CSI with
// its codes and final byte, one of OSC up to its end, or ESC with one character.
func sequence(s string) (codes string, final byte, rest string) {
	switch {
	case len(s) < 2:
		return "", 0, ""
	case s[1] == '[':
		for i := 2; i < len(s); i++ {
			switch c := s[i]; {
			case c >= 0x40 && c <= 0x7e:
				return s[2:i], c, s[i+1:]
			case c < 0x20 || c > 0x3f: // not of a sequence: it was cut
				return "", 0, s[i:]
			}
		}
		return "", 0, ""
	case s[1] == ']':
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return "", 0, s[i+1:]
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return "", 0, s[i+2:]
			}
		}
		return "", 0, ""
	default:
		return "", 0, s[2:]
	}
}
