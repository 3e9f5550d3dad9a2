package plandiff

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// unknownMark returns the mark of a value that is known only after the apply as
// a whole.
func unknownMark(tree any) (plandoc.Mark, bool) {
	m, ok := tree.(plandoc.Mark)
	return m, ok && m.Unknown && m.HMAC == ""
}

// shownTree returns a copy of a tree with words in place of its marks. A text that
// has these words itself has a backslash in front of them.
func shownTree(tree any) any {
	switch v := tree.(type) {
	case plandoc.Mark:
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

// markDigest is of what a value has of secrets; empty if it has none. What is shown of
// it does not count.
func markDigest(tree any) holdfast.Digest {
	secrets := secretsOf(tree)
	if secrets == nil {
		return ""
	}
	value, err := plandoc.NewValue(secrets)
	if err != nil { // cannot be: it was one
		return ""
	}
	return holdfast.DigestOf(value)
}

// isSecret reports whether nothing of a value may be shown.
func isSecret(tree any) bool {
	m, ok := tree.(plandoc.Mark)
	return ok && m.HMAC != "" && m.Text == ""
}

// secretsOf is what a tree has of secrets, each at its place; nil if it has none.
func secretsOf(tree any) any {
	found := map[string]any{}
	keep := func(key string, child any) {
		if secrets := secretsOf(child); secrets != nil {
			found[key] = secrets
		}
	}
	switch v := tree.(type) {
	case plandoc.Mark:
		if v.HMAC != "" {
			return v
		}
	case map[string]any:
		for key, child := range v {
			keep(key, child)
		}
	case []any:
		for i, child := range v {
			keep(strconv.Itoa(i), child)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}
