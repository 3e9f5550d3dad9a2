package markdown

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/unseen"
)

// What comes from files, plans and engines is written by others. It reaches a
// comment through one of these functions only.

// ZeroWidth is put where a mention or a reference would begin: forges look for
// those in the rendered text, so that escaping does not help.
const ZeroWidth = "\u200b"

// Text returns s as Markdown text on one line: no markup, no HTML, no mention.
func Text(s string) string { return escape(OneLine(s), false) }

// Words is text for sentences of our own making, in which #7 refers to a pull
// request.
func Words(s string) string { return escape(OneLine(s), true) }

func escape(s string, references bool) string {
	var b strings.Builder
	for i, r := range s {
		switch r {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '@':
			b.WriteString("@" + ZeroWidth)
		case '#':
			b.WriteByte('#')
			if !references || i == 0 {
				b.WriteString(ZeroWidth)
			}
		case '\\', '`', '*', '_', '[', ']', '|', '~', '!', '$':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '-', '+', '=':
			if i == 0 {
				b.WriteByte('\\') // no list, no heading
			}
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Code returns s as an inline code span, which is safe in a table cell too.
func Code(s string) string {
	s = OneLine(s)
	if s == "" {
		return "` `"
	}
	fence := strings.Repeat("`", LongestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + strings.ReplaceAll(s, "|", `\|`) + fence
}

// HTML returns s for the summary of a details element, where Markdown does
// not count.
func HTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "@", "@"+ZeroWidth, "#", "#"+ZeroWidth,
		"`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "|", "&#124;", "~", "&#126;", "$", "&#36;").Replace(OneLine(s))
}

// Fenced returns s as a code block whose fence is longer than any in s.
func Fenced(language, s string) string {
	s = strings.Trim(Printable(s), "\n")
	fence := strings.Repeat("`", max(3, LongestRun(s, '`')+1))
	return fence + language + "\n" + s + "\n" + fence
}

// LongestRun returns the length of the longest run of c in s: a fence is longer.
func LongestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] == c {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}

// Printable returns s without what a screen should not act upon: control
// characters, colours, marks that turn the direction of writing, what is not seen.
func Printable(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), "\uFFFD")
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == 0x1b {
			i += escapeSequence(s[i:])
			continue
		}
		i += n
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && !unseen.Is(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// escapeSequence returns the length of the terminal sequence that s begins
// with.
func escapeSequence(s string) int {
	if len(s) < 2 || s[1] != '[' {
		return 1
	}
	for i := 2; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		if s[i] < 0x20 || s[i] > 0x7e {
			return i
		}
	}
	return len(s)
}

// OneLine returns s on one line, with single spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(Printable(s)), " ") }

// Shorten returns at most limit characters of s, with an ellipsis if it was
// longer.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	count, cut := 0, 0
	for i := range s {
		if count == limit-1 {
			cut = i
		}
		if count == limit {
			return strings.TrimRight(s[:cut], " ") + "…"
		}
		count++
	}
	return s
}

// ShortText is text of at most limit characters, escapes included, whatever the
// length of s is.
func ShortText(s string, limit int) string { return Shorten(Text(Clip(s, limit)), limit) }

// ShortHint is text in the same way, in which what is between two backticks is code:
// hints name commands so.
func ShortHint(s string, limit int) string {
	parts := strings.Split(OneLine(Clip(s, limit)), "`")
	if len(parts)%2 == 0 {
		return ShortText(s, limit)
	}
	for i, part := range parts {
		if i%2 == 1 {
			parts[i] = Code(part)
		} else {
			parts[i] = escape(part, false)
		}
	}
	if hint := strings.Join(parts, ""); utf8.RuneCountInString(hint) <= limit {
		return hint
	}
	return ShortText(s, limit) // a span that is cut would have no end
}

// ShortWords is words in the same way.
func ShortWords(s string, limit int) string { return Shorten(Words(Clip(s, limit)), limit) }

// Clip returns enough of s for limit characters.
func Clip(s string, limit int) string {
	if most := 8 * limit; len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Plural returns "1 cluster", "2 clusters".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// List returns "a", "a and b", "a, b and c", of at most limit names: "a, b and
// 7 more".
func List(names []string, limit int) string {
	if len(names) > limit {
		more := len(names) - limit + 1
		names = append(append([]string{}, names[:limit-1]...), fmt.Sprintf("%d more", more))
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	default:
		return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	}
}
