package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Decode decodes JSON and keeps numbers as they are written.
func Decode(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(into)
}

// Marshal is json.Marshal without the escapes for HTML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Error says where a document is broken without quoting it.
func Error(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("unexpected %s at byte %d", kind.Value, kind.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the document ends too early")
	default:
		return errors.New("not a plan document")
	}
}

// Field returns what an object has at key; nil if it is not an object.
func Field(value any, key string) any {
	if m, ok := value.(map[string]any); ok {
		return m[key]
	}
	return nil
}

// Item returns what a list has at i; nil if it is not a list, or too short.
func Item(value any, i int) any {
	if l, ok := value.([]any); ok && i < len(l) {
		return l[i]
	}
	return nil
}

// AnyTrue reports whether value is or has true anywhere.
func AnyTrue(value any) bool {
	switch v := value.(type) {
	case bool:
		return v
	case map[string]any:
		for _, child := range v {
			if AnyTrue(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, AnyTrue)
	}
	return false
}
