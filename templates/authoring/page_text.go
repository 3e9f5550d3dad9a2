package authoring

import (
	"regexp"
	"strings"
)

var spaces = regexp.MustCompile(`\s+`)

// inline makes text that stays text: on one line, and with nothing that Markdown
// or HTML would take for its own. Code spans stay, as authors write them.
func inline(s string) string {
	s = spaces.ReplaceAllString(strings.TrimSpace(strings.ToValidUTF8(s, "?")), " ")
	pieces := strings.Split(s, "`")
	paired := len(pieces)%2 == 1
	var b strings.Builder
	for i, piece := range pieces {
		switch {
		case paired && i%2 == 1:
			b.WriteString(code(piece))
			continue
		case !paired && i > 0:
			b.WriteString("\\`")
		}
		b.WriteString(escape(piece))
	}
	return b.String()
}

func escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '>':
			b.WriteString("&gt;")
			continue
		case r == '&':
			b.WriteString("&amp;")
			continue
		case strings.ContainsRune(`\|*[]~$`, r),
			r == '_' && (i == 0 || !wordAround(s, i)),
			i == 0 && strings.ContainsRune("#+-", r), r == '@', r == '!':
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// wordAround reports whether the underscore at i is inside of a word, where it
// means nothing to Markdown.
func wordAround(s string, i int) bool {
	word := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	return i > 0 && i+1 < len(s) && word(s[i-1]) && word(s[i+1])
}

// code makes a code span, also in a table.
func code(s string) string {
	s = spaces.ReplaceAllString(strings.ToValidUTF8(s, "?"), " ")
	if strings.TrimSpace(s) == "" {
		return ""
	}
	fence := fenceFor(s, 1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	// A pipe ends a cell even in a code span, unless there is a backslash.
	return fence + strings.ReplaceAll(s, "|", `\|`) + fence
}

// fenceFor is a row of backticks, at least that many, that is not in s.
func fenceFor(s string, least int) string {
	longest, row := 0, 0
	for i := range len(s) {
		if row++; s[i] != '`' {
			row = 0
		}
		longest = max(longest, row)
	}
	return strings.Repeat("`", max(least, longest+1))
}

func codes(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = code(w)
	}
	return strings.Join(out, ", ")
}

// html makes text that stays text between tags, where Markdown is read, too.
func html(s string) string {
	return escape(spaces.ReplaceAllString(strings.ToValidUTF8(s, "?"), " "))
}
