package plandoc

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Value is a value in a plan document, in its canonical encoding; nil is
// null, and the same as no value. The encoding is JSON without spaces, with the
// keys of objects sorted and numbers as the engine wrote them, in which a
// Mark is an object with these keys:
//
//	{"$mark": HMAC}                    a sensitive value
//	{"$mark": HMAC, "$text": TEXT}     a string with secrets in it, and what may be shown of it
//	{"$mark": HMAC, "$unknown": true}  a sensitive value of which a part is unknown
//	{"$unknown": true}                 a value that is known only after the apply
//
// A key of an object that begins with $ has one more in front, so that no value
// can look like a mark.
type Value []byte

// Mark replaces in a value's tree what is not shown or not known.
type Mark struct {
	// HMAC is the keyed hash of the value with its address and path; empty for
	// what is unknown. It tells equal from different without telling what.
	HMAC string
	// Text is what may be shown of a string; empty: nothing of it.
	Text string
	// Unknown is true for what is known only after the apply: all of it if HMAC is
	// empty, otherwise a part.
	Unknown bool
}

// maxDepth bounds how deep values are nested.
const maxDepth = 500

// NewValue encodes a tree as encoding/json decodes it with UseNumber (nil,
// bool, json.Number, string, map[string]any, []any), in which a Mark may
// stand for any part.
func NewValue(tree any) (Value, error) {
	if tree == nil {
		return nil, nil
	}
	var b bytes.Buffer
	e := encoder{b: &b, enc: json.NewEncoder(&b)}
	e.enc.SetEscapeHTML(false)
	if err := e.value(tree, 0); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

type encoder struct {
	b   *bytes.Buffer
	enc *json.Encoder
}

func (e encoder) value(tree any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("a value is nested deeper than %d", maxDepth)
	}
	switch v := tree.(type) {
	case nil:
		e.b.WriteString("null")
		return nil
	case Mark:
		return e.mark(v)
	case map[string]any:
		e.b.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				e.b.WriteByte(',')
			}
			name := key
			if strings.HasPrefix(key, "$") {
				name = "$" + key
			}
			if err := e.leaf(name); err != nil {
				return err
			}
			e.b.WriteByte(':')
			if err := e.value(v[key], depth+1); err != nil {
				return err
			}
		}
		e.b.WriteByte('}')
		return nil
	case []any:
		e.b.WriteByte('[')
		for i, child := range v {
			if i > 0 {
				e.b.WriteByte(',')
			}
			if err := e.value(child, depth+1); err != nil {
				return err
			}
		}
		e.b.WriteByte(']')
		return nil
	case bool, string, json.Number:
		return e.leaf(v)
	default:
		return fmt.Errorf("a value has the type %T", tree)
	}
}

func (e encoder) mark(m Mark) error {
	if m.HMAC == "" && (!m.Unknown || m.Text != "") || m.Text != "" && m.Unknown {
		return errors.New("a mark is neither of a secret nor of an unknown value")
	}
	e.b.WriteByte('{')
	if m.HMAC != "" {
		e.b.WriteString(`"$mark":`)
		if err := e.leaf(m.HMAC); err != nil {
			return err
		}
	}
	if m.Text != "" {
		e.b.WriteString(`,"$text":`)
		if err := e.leaf(m.Text); err != nil {
			return err
		}
	}
	if m.Unknown {
		if m.HMAC != "" {
			e.b.WriteByte(',')
		}
		e.b.WriteString(`"$unknown":true`)
	}
	e.b.WriteByte('}')
	return nil
}

func (e encoder) leaf(v any) error {
	if err := e.enc.Encode(v); err != nil {
		return errors.New("a value cannot be encoded")
	}
	e.b.Truncate(e.b.Len() - 1) // the encoder's newline
	return nil
}

// Tree returns what the value was made of. It is an error if the value is not
// in its canonical encoding.
func (v Value) Tree() (any, error) {
	if v == nil {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.UseNumber()
	var raw any
	if err := dec.Decode(&raw); err != nil {
		return nil, jsonError(err)
	}
	tree, err := unescape(raw, 0)
	if err != nil {
		return nil, err
	}
	again, err := NewValue(tree)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, v) {
		return nil, errors.New("a value is not in its canonical encoding")
	}
	return tree, nil
}

// unescape turns decoded JSON into a tree.
func unescape(raw any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("a value is nested deeper than %d", maxDepth)
	}
	switch v := raw.(type) {
	case map[string]any:
		if isMarkObject(v) {
			return markOf(v)
		}
		out := make(map[string]any, len(v))
		for key, child := range v {
			if rest, ok := strings.CutPrefix(key, "$"); ok {
				key = rest
			}
			var err error
			if out[key], err = unescape(child, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			var err error
			if out[i], err = unescape(child, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		return raw, nil
	}
}

// isMarkObject reports whether an object has a key with a single $ in front.
func isMarkObject(object map[string]any) bool {
	for key := range object {
		if strings.HasPrefix(key, "$") && !strings.HasPrefix(key, "$$") {
			return true
		}
	}
	return false
}

func markOf(object map[string]any) (Mark, error) {
	var m Mark
	for key, value := range object {
		ok := false
		switch key {
		case "$mark":
			m.HMAC, ok = value.(string)
			ok = ok && isHMAC(m.HMAC)
		case "$text":
			m.Text, ok = value.(string)
		case "$unknown":
			m.Unknown, ok = value.(bool)
		}
		if !ok {
			return m, errors.New("a mark has a key or a value that marks do not have")
		}
	}
	return m, nil
}

// isHMAC reports whether s has the form of an HMAC-SHA256 in base64url.
func isHMAC(s string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(raw) == 32
}

// MarshalJSON returns the canonical encoding.
func (v Value) MarshalJSON() ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	return v, nil
}

// UnmarshalJSON keeps data as it is; null becomes nil.
func (v *Value) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*v = nil
		return nil
	}
	*v = bytes.Clone(data)
	return nil
}
