package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/holdfast-dev/holdfast"
)

// attributeChanges compares what was with what will be, attribute by attribute.
func attributeChanges(change *tfjson.Change, forces []string) []holdfast.AttributeChange {
	d := differ{forces: forces}
	d.compare("", "", planSide{change.Before, change.BeforeSensitive}, planSide{change.After, change.AfterSensitive}, change.AfterUnknown)
	slices.SortStableFunc(d.found, func(a, b holdfast.AttributeChange) int {
		if a.Forces != b.Forces {
			if a.Forces {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	return d.found
}

// planSide is a value before or after a change, with its sensitive marks: true, or
// the shape of the value with true at its sensitive parts.
type planSide struct{ value, marks any }

func (s planSide) at(key string) planSide {
	return planSide{fieldOf(s.value, key), fieldOf(s.marks, key)}
}

func (s planSide) item(i int) planSide {
	return planSide{itemOf(s.value, i), itemOf(s.marks, i)}
}

type differ struct {
	forces []string
	found  []holdfast.AttributeChange
}

// compare adds the differences at path and below. name is the last attribute
// name in path.
func (d *differ) compare(path, name string, before, after planSide, unknown any) {
	switch {
	case unknown == true:
		d.add(path, name, before, after, true)
	case before.marks == true || after.marks == true || secretName(name):
		if !reflect.DeepEqual(before.value, after.value) || anyTrue(unknown) {
			d.add(path, name, before, after, false)
		}
	case isObject(before.value, after.value) && (path == "" || sizeOf(before.value)+sizeOf(after.value)+sizeOf(unknown) > 0):
		for _, key := range keysOf(before.value, after.value, unknown) {
			d.compare(joinKey(path, key), key, before.at(key), after.at(key), fieldOf(unknown, key))
		}
	case isList(before.value, after.value) && sizeOf(before.value)+sizeOf(after.value) > 0:
		for i := range max(sizeOf(before.value), sizeOf(after.value)) {
			d.compare(joinIndex(path, i), name, before.item(i), after.item(i), itemOf(unknown, i))
		}
	case !reflect.DeepEqual(before.value, after.value):
		d.add(path, name, before, after, false)
	}
}

func (d *differ) add(path, name string, before, after planSide, unknown bool) {
	secret := secretName(name) && (isText(before.value) || isText(after.value))
	change := holdfast.AttributeChange{
		Path: path, Unknown: unknown, Forces: d.forcesAt(path),
		Sensitive: secret || isMarked(before.marks) || isMarked(after.marks),
		Before:    shownValue(before, secret),
	}
	if unknown {
		change.After = jsonString(unknownValue)
	} else {
		change.After = shownValue(after, secret)
	}
	d.found = append(d.found, change)
}

// forcesAt reports whether a replace path is at path, above it or below it.
func (d *differ) forcesAt(path string) bool {
	return slices.ContainsFunc(d.forces, func(force string) bool { return pathWithin(path, force) || pathWithin(force, path) })
}

// pathWithin reports whether path is base or below it.
func pathWithin(path, base string) bool {
	rest, ok := strings.CutPrefix(path, base)
	return ok && (rest == "" || base == "" || rest[0] == '.' || rest[0] == '[')
}

// shownValue returns a value as it may be shown; nil for none.
func shownValue(s planSide, secret bool) json.RawMessage {
	if s.value == nil {
		return nil
	}
	if secret || s.marks == true {
		return jsonString(sensitiveValue)
	}
	raw, err := marshalJSON(masked(s.value, s.marks))
	if err != nil {
		return jsonString(sensitiveValue) // cannot be: it was decoded from JSON
	}
	return raw
}

func jsonString(s string) json.RawMessage { return json.RawMessage(strconv.Quote(s)) }

// marshalJSON is json.Marshal without the escapes for HTML.
func marshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// masked returns a copy of value with "(sensitive value)" in place of what is
// marked, or named like a secret.
func masked(value, marks any) any {
	if marks == true {
		if value == nil {
			return nil
		}
		return sensitiveValue
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			if secretName(key) {
				child = maskText(child)
			}
			out[key] = masked(child, fieldOf(marks, key))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = masked(child, itemOf(marks, i))
		}
		return out
	default:
		return value
	}
}

// maskText replaces the strings and numbers in value.
func maskText(value any) any {
	switch v := value.(type) {
	case string:
		if v == "" {
			return v
		}
		return sensitiveValue
	case json.Number:
		return sensitiveValue
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = maskText(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = maskText(child)
		}
		return out
	default:
		return value
	}
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

func fieldOf(value any, key string) any {
	if m, ok := value.(map[string]any); ok {
		return m[key]
	}
	return nil
}

func itemOf(value any, i int) any {
	if l, ok := value.([]any); ok && i < len(l) {
		return l[i]
	}
	return nil
}

func sizeOf(value any) int {
	switch v := value.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	default:
		return 0
	}
}

// isObject reports whether both are objects, or one is and the other is
// nothing.
func isObject(a, b any) bool {
	_, first := a.(map[string]any)
	_, second := b.(map[string]any)
	return (first || a == nil) && (second || b == nil) && (first || second)
}

func isList(a, b any) bool {
	_, first := a.([]any)
	_, second := b.([]any)
	return (first || a == nil) && (second || b == nil) && (first || second)
}

func keysOf(values ...any) []string {
	keys := map[string]bool{}
	for _, value := range values {
		if m, ok := value.(map[string]any); ok {
			for key := range m {
				keys[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// isMarked reports whether marks has a true anywhere.
func isMarked(marks any) bool { return anyTrue(marks) }

func anyTrue(value any) bool {
	switch v := value.(type) {
	case bool:
		return v
	case map[string]any:
		for _, child := range v {
			if anyTrue(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, anyTrue)
	}
	return false
}

func joinKey(path, key string) string {
	switch {
	case !isIdentifier(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

func joinIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func isIdentifier(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}

// pathOfSteps renders a path as the plan JSON has it: a list of names and
// indexes.
func pathOfSteps(steps any) string {
	list, ok := steps.([]any)
	if !ok {
		return fmt.Sprint(steps)
	}
	path := ""
	for _, step := range list {
		switch s := step.(type) {
		case string:
			path = joinKey(path, s)
		case json.Number:
			path += "[" + s.String() + "]"
		default:
			path += "[?]"
		}
	}
	return path
}
