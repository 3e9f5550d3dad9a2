package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/unseen"
)

// What comes from files, plans and engines is written by others. It reaches a
// comment through one of these functions only.

// zeroWidth is put where a mention or a reference would begin: forges look for
// those in the rendered text, so that escaping does not help.
const zeroWidth = "\u200b"

// text returns s as Markdown text on one line: no markup, no HTML, no mention.
func text(s string) string { return escape(s, false) }

// words is text for sentences of our own making, in which #7 refers to a pull
// request.
func words(s string) string { return escape(s, true) }

func escape(s string, references bool) string {
	var b strings.Builder
	s = oneLine(s)
	for i, r := range s {
		switch r {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '@':
			b.WriteString("@" + zeroWidth)
		case '#':
			b.WriteByte('#')
			if !references || i == 0 {
				b.WriteString(zeroWidth)
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

// code returns s as an inline code span, which is safe in a table cell too.
func code(s string) string {
	s = oneLine(s)
	if s == "" {
		return "` `"
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + strings.ReplaceAll(s, "|", `\|`) + fence
}

// htmlText returns s for the summary of a details element, where Markdown does
// not count.
func htmlText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "@", "@"+zeroWidth, "#", "#"+zeroWidth,
		"`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "|", "&#124;", "~", "&#126;", "$", "&#36;").Replace(oneLine(s))
}

// fenced returns s as a code block whose fence is longer than any in s.
func fenced(language, s string) string {
	s = strings.Trim(printable(s), "\n")
	fence := strings.Repeat("`", max(3, longestRun(s, '`')+1))
	return fence + language + "\n" + s + "\n" + fence
}

func longestRun(s string, c byte) int {
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

// printable returns s without what a screen should not act upon: control
// characters, colours, marks that turn the direction of writing, what is not seen.
func printable(s string) string {
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

// oneLine returns s on one line, with single spaces.
func oneLine(s string) string { return strings.Join(strings.Fields(printable(s)), " ") }

// shorten returns at most limit characters of s, with an ellipsis if it was
// longer.
func shorten(s string, limit int) string {
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

// shortText is text of at most limit characters, escapes included, whatever the
// length of s is.
func shortText(s string, limit int) string { return shorten(text(clip(s, limit)), limit) }

// shortWords is words in the same way.
func shortWords(s string, limit int) string { return shorten(words(clip(s, limit)), limit) }

// clip returns enough of s for limit characters.
func clip(s string, limit int) string {
	if most := 8 * limit; len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// plural returns "1 cluster", "2 clusters".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// list returns "a", "a and b", "a, b and c", of at most limit names: "a, b and
// 7 more".
func list(names []string, limit int) string {
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
