package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// cutValue is a value for a table, cut around where it differs from another, with
// what tells the two apart if the cuts do not.
func cutValue(raw, other string) string {
	at := firstDifference(raw, other)
	own := around(raw, at, cellLimit)
	cell := codeText(own)
	if raw == other || own == raw || cell != codeText(around(other, at, cellLimit)) {
		return cell
	}
	n, what := length(raw)
	if m, _ := length(other); n != m {
		return fmt.Sprintf("%s (%s)", cell, markdown.Plural(n, what))
	}
	return fmt.Sprintf("%s (sha256 %s)", cell, strings.TrimPrefix(string(holdfast.DigestOf([]byte(raw))), "sha256:"))
}

// length counts the characters of a text, or the digits and signs of a number.
func length(raw string) (n int, what string) {
	if text, ok := decodedText(json.RawMessage(raw)); ok {
		return utf8.RuneCountInString(text), "character"
	}
	if raw != "" && strings.Trim(raw, "0123456789") == "" {
		return len(raw), "digit"
	}
	return utf8.RuneCountInString(raw), "character"
}

// compareParts is compareValues for a part of two values, either of which may
// not have it.
func compareParts(before, after json.RawMessage) string {
	switch {
	case len(before) == 0:
		return "nothing → " + cutValue(string(after), "")
	case len(after) == 0:
		return cutValue(string(before), "") + " → nothing"
	default:
		return compareValues(before, after).cell
	}
}
