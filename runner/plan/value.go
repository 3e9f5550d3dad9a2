package plan

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/jsontree"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// maker makes the values of one change, with marks in place of secrets.
type maker struct {
	key      []byte
	redactor *redact.Redactor
	address  string // as the engine has it
}

// marks are what says that a value is sensitive: true, or the shape of the value
// with true at its sensitive parts. What is sensitive before or after a change is
// sensitive on both sides of it.
type marks []any

func (m marks) at(key string) marks {
	out := make(marks, len(m))
	for i := range m {
		out[i] = jsontree.Field(m[i], key)
	}
	return out
}

func (m marks) item(n int) marks {
	out := make(marks, len(m))
	for i := range m {
		out[i] = jsontree.Item(m[i], n)
	}
	return out
}

func (m marks) all() bool { return slices.Contains(m, any(true)) }

// value makes a value of what the engine says; unknown has true at what is known
// only after the apply.
func (m maker) value(raw any, sensitive marks, unknown any) (plandoc.Value, error) {
	return plandoc.NewValue(m.tree("", "", raw, sensitive, unknown))
}

// tree makes the part at path. name is the last attribute's name in path.
func (m maker) tree(path holdfast.AttributePath, name string, raw any, sensitive marks, unknown any) any {
	switch {
	case unknown == true:
		return plandoc.Mark{Unknown: true}
	case sensitive.all(), redact.Name(name) && isText(raw):
		if raw == nil && !jsontree.AnyTrue(unknown) {
			return nil
		}
		if jsontree.AnyTrue(unknown) { // engines leave out of a value what is not known of it, keys too
			return plandoc.Mark{HMAC: m.sumValue(path, []any{raw, unknown}), Unknown: true}
		}
		return plandoc.Mark{HMAC: m.sumValue(path, raw)}
	}
	switch v := raw.(type) {
	case nil:
		if !jsontree.AnyTrue(unknown) {
			return nil
		}
		if _, ok := unknown.([]any); ok {
			return m.list(path, name, nil, sensitive, unknown)
		}
		return m.object(path, nil, sensitive, unknown)
	case map[string]any:
		return m.object(path, v, sensitive, unknown)
	case []any:
		return m.list(path, name, v, sensitive, unknown)
	case string:
		text := m.redactor.String(v)
		switch text {
		case v:
			return v
		case holdfast.SensitiveValue:
			text = ""
		}
		return plandoc.Mark{HMAC: m.sumValue(path, v), Text: text}
	case json.Number:
		if m.redactor.Known(v.String()) != v.String() {
			return plandoc.Mark{HMAC: m.sumValue(path, v)}
		}
		return v
	default:
		return v
	}
}

func (m maker) object(path holdfast.AttributePath, v map[string]any, sensitive marks, unknown any) map[string]any {
	out := make(map[string]any, len(v))
	for key, child := range v {
		out[m.name(path, key)] = m.tree(path.Key(key), key, child, sensitive.at(key), jsontree.Field(unknown, key))
	}
	more, _ := unknown.(map[string]any)
	for key, child := range more {
		if _, ok := v[key]; !ok && jsontree.AnyTrue(child) {
			out[m.name(path, key)] = m.tree(path.Key(key), key, nil, sensitive.at(key), child)
		}
	}
	return out
}

func (m maker) list(path holdfast.AttributePath, name string, v []any, sensitive marks, unknown any) []any {
	more, _ := unknown.([]any)
	out := make([]any, max(len(v), len(more)))
	for i := range out {
		out[i] = m.tree(path.Index(i), name, jsontree.Item(v, i), sensitive.item(i), jsontree.Item(unknown, i))
	}
	return out
}

// name returns an address, a key or a path without known secrets. Names that
// differ in what is left out stay different.
func (m maker) name(path holdfast.AttributePath, name string) string {
	known := m.redactor.Known(name)
	if known == name {
		return name
	}
	return known + " #" + m.sum(string(path)+" (name)", name)[:16]
}

// sumValue hashes a decoded JSON value; encoding sorts the keys of objects.
func (m maker) sumValue(path holdfast.AttributePath, value any) string {
	raw, err := jsontree.Marshal(value)
	if err != nil { // cannot be: it was decoded from JSON
		raw = nil
	}
	return m.sum(string(path), string(raw))
}

// sum is keyed, and of the address and the path as well: equal values at two
// places have different hashes, so that a secret cannot be found by comparing.
func (m maker) sum(path, value string) string { return Hash(m.key, m.address, path, value) }

// Hash returns a keyed hash of parts: an HMAC-SHA256 in base64url.
func Hash(key []byte, parts ...string) string {
	mac := hmac.New(sha256.New, key)
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		mac.Write(size[:])
		mac.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// isText reports whether value holds text that a name could make secret.
func isText(value any) bool {
	switch v := value.(type) {
	case string:
		return v != ""
	case json.Number, map[string]any, []any:
		return true
	default:
		return false
	}
}

// pathOfSteps renders a path as the plan JSON has it: a list of names and
// indexes.
func pathOfSteps(steps any) string {
	list, ok := steps.([]any)
	if !ok {
		return fmt.Sprint(steps)
	}
	var path holdfast.AttributePath
	for _, step := range list {
		switch s := step.(type) {
		case string:
			path = path.Key(s)
		case json.Number:
			path += holdfast.AttributePath("[" + s.String() + "]")
		default:
			path += "[?]"
		}
	}
	return string(path)
}
