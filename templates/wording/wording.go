package wording

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/unseen"
)

// Clip shortens what people wrote to what fits into a message.
func Clip(s string) string {
	const most = 80
	s = strings.ToValidUTF8(s, "?")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// Visible is a text as a fault has it: on one line, and without characters that
// nobody sees and that change how others are read.
func Visible(s string) string {
	seen := func(r rune) bool { return r == ' ' || unicode.IsPrint(r) && !unseen.Is(r) }
	if strings.IndexFunc(s, func(r rune) bool { return !seen(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case seen(r):
			b.WriteRune(r)
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// Listed joins words for people: "a, b and c".
func Listed(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return fmt.Sprintf("%s and %s", strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}

// Count is a number of things, such as "1 item" or "2 items".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Article is the names of types with their articles, such as "a string or null".
func Article(want []string) string {
	words := make([]string, len(want))
	for i, w := range want {
		switch w {
		case "integer", "array", "object":
			words[i] = "an " + w
		case "null":
			words[i] = w
		default:
			words[i] = "a " + w
		}
	}
	return strings.Join(words, " or ")
}
