package wording

import (
	"encoding/json"
	"strings"
)

// JSON is a value as people write it, clipped.
func JSON(v any) string {
	return Clip(Canonical(v))
}

// Canonical is the same text for the same value.
func Canonical(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "a value"
	}
	return strings.TrimSpace(b.String())
}
