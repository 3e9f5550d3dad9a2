package plandiff

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// unknownMark returns the mark of a value that is known only after the apply as
// a whole.
func unknownMark(tree any) (holdfast.PlanMark, bool) {
	m, ok := tree.(holdfast.PlanMark)
	return m, ok && m.Unknown && m.HMAC == ""
}

// shownTree returns a copy of a tree with words in place of its marks. A text that
// has these words itself has a backslash in front of them.
func shownTree(tree any) any {
	switch v := tree.(type) {
	case holdfast.PlanMark:
		switch {
		case v.HMAC == "":
			return holdfast.UnknownValue
		case v.Text != "":
			return v.Text
		default:
			return holdfast.SensitiveValue
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = shownTree(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = shownTree(child)
		}
		return out
	case string:
		if strings.TrimLeft(v, `\`) == holdfast.UnknownValue {
			return `\` + v
		}
		return strings.ReplaceAll(v, holdfast.SensitiveValue, `\`+holdfast.SensitiveValue)
	default:
		return tree
	}
}

// shownJSON is shownTree as JSON without the escapes for HTML; nil for nothing.
func shownJSON(tree any) json.RawMessage {
	if tree == nil {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(shownTree(tree)); err != nil { // cannot be: it was decoded from JSON
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// markDigest is of a value that has secrets in it; empty if it has none.
func markDigest(tree any) holdfast.Digest {
	if !hasSecret(tree) {
		return ""
	}
	value, err := holdfast.NewPlanValue(tree)
	if err != nil { // cannot be: it was one
		return ""
	}
	return holdfast.DigestOf(value)
}

// isSecret reports whether nothing of a value may be shown.
func isSecret(tree any) bool {
	m, ok := tree.(holdfast.PlanMark)
	return ok && m.HMAC != "" && m.Text == ""
}

// hasSecret reports whether a tree has a mark of something secret.
func hasSecret(tree any) bool {
	switch v := tree.(type) {
	case holdfast.PlanMark:
		return v.HMAC != ""
	case map[string]any:
		for _, child := range v {
			if hasSecret(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasSecret)
	}
	return false
}
