package plan

import (
	"encoding/json"
	"fmt"
	"io"
)

// stream reads a JSON document piece by piece.
type stream struct{ dec *json.Decoder }

func newStream(r io.Reader) stream {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	return stream{dec}
}

// object calls visit for each key of an object, with the value still to be read:
// visit reads it, or skips it. Null is an object without keys.
func (s stream) object(visit func(key string) error) error {
	open, err := s.open('{')
	if err != nil || !open {
		return err
	}
	for s.dec.More() {
		key, err := s.dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if err := visit(name); err != nil {
			return err
		}
	}
	_, err = s.dec.Token()
	return err
}

// list calls visit for each element of a list, which visit reads or skips. Null
// is an empty list.
func (s stream) list(visit func() error) error {
	open, err := s.open('[')
	if err != nil || !open {
		return err
	}
	for s.dec.More() {
		if err := visit(); err != nil {
			return err
		}
	}
	_, err = s.dec.Token()
	return err
}

// open reads the delimiter; false if there is null instead.
func (s stream) open(want json.Delim) (bool, error) {
	token, err := s.dec.Token()
	switch {
	case err != nil:
		return false, err
	case token == nil:
		return false, nil
	case token == want:
		return true, nil
	}
	kind := "value"
	switch t := token.(type) {
	case json.Delim:
		kind = map[json.Delim]string{'{': "object", '[': "array"}[t]
	case string:
		kind = "string"
	case json.Number:
		kind = "number"
	case bool:
		kind = "bool"
	}
	return false, &shapeError{kind, s.dec.InputOffset()}
}

// value decodes a value as a whole.
func (s stream) value(into any) error { return s.dec.Decode(into) }

// skip reads over a value.
func (s stream) skip() error {
	depth := 0
	for {
		token, err := s.dec.Token()
		if err != nil {
			return err
		}
		if delim, ok := token.(json.Delim); ok {
			if delim == '{' || delim == '[' {
				depth++
			} else {
				depth--
			}
		}
		if depth == 0 {
			return nil
		}
	}
}

// shapeError says that a document is not built as a plan is.
type shapeError struct {
	kind   string
	offset int64
}

func (e *shapeError) Error() string {
	return fmt.Sprintf("unexpected %s at byte %d", e.kind, e.offset)
}
