package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// cutValue is a value for a table, cut around where it differs from another, with
// what tells the two apart if the cuts do not.
func cutValue(raw, other string) string { return cutApart(raw, other, cellLimit, codeText) }

// cutApart is cutValue for a text of another length that is written in another way.
func cutApart(raw, other string, limit int, write func(string) string) string {
	if raw == other {
		other = "" // from the begin
	}
	at := firstDifference(raw, other)
	own := around(raw, at, limit)
	cut := write(own)
	if own == raw || cut != write(around(other, at, limit)) {
		return cut
	}
	n, what := length(raw)
	if m, _ := length(other); n != m {
		return fmt.Sprintf("%s (%s)", cut, markdown.Plural(n, what))
	}
	return hashed(cut, raw)
}

// hashed is what is shown of a value with what tells it from all others.
func hashed(cell, raw string) string {
	return fmt.Sprintf("%s (sha256 %s)", cell, strings.TrimPrefix(string(holdfast.DigestOf([]byte(raw))), "sha256:"))
}

// memberCells are the different values of a group for a table: what differs between
// them can be seen, and no two look the same.
func memberCells(values []holdfast.AttributeChange) []cells {
	sides := func(a, other holdfast.AttributeChange) cells {
		if len(a.Before)+len(other.Before) == 0 {
			return sideCell(a.After, other.After) // what it is
		}
		return sidesCell(a, other)
	}
	ways := []func(a, other holdfast.AttributeChange) cells{
		func(a, other holdfast.AttributeChange) cells {
			if shown(a.Before) && shown(a.After) {
				return compareValues(a.Before, a.After)
			}
			return sides(a, other)
		},
		sides, // they change in the same way: their sides differ elsewhere
		func(a, other holdfast.AttributeChange) cells {
			c := sides(a, other)
			return cells{hashed(c.cell, strings.TrimPrefix(string(a.Before)+" → "+string(a.After), " → ")), c.partial}
		},
	}
	shown := make([]cells, len(values))
	for _, way := range ways {
		before := slices.Clone(shown)
		for i, a := range values {
			for k, other := range values {
				if k != i && before[k].cell == before[i].cell {
					shown[i] = way(a, other)
					break
				}
			}
		}
	}
	return shown
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
