package schema

import (
	"strconv"
	"strings"
)

// Pointer finds what a reference inside a schema refers to.
func Pointer(doc map[string]any, ref string) (any, bool) {
	if ref == "#" {
		return doc, true
	}
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	var at any = doc
	for word := range strings.SplitSeq(rest, "/") {
		word = strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
		switch v := at.(type) {
		case map[string]any:
			at = v[word]
		case []any:
			n, err := strconv.Atoi(word)
			if err != nil || n < 0 || n >= len(v) {
				return nil, false
			}
			at = v[n]
		default:
			return nil, false
		}
	}
	return at, at != nil
}

// pointerWord is a key as a word of a JSON pointer.
func pointerWord(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// UnpointerWord is a word of a JSON pointer as a key.
func UnpointerWord(word string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
}
