package cost

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// value is a part of a plandoc.Value, in its canonical encoding: JSON without spaces. It is
// searched and not decoded, as a plan may have thousands of resources with hundreds of
// attributes, of which a handful is asked for. nil is null, and the same as nothing.
type value []byte

// known says how much is known of a value.
type known int

const (
	absent  known = iota // null, or not there
	given                // its value is there
	unknown              // known after the apply, or secret
)

// of returns the value of a document, nil if it is null.
func of(v plandoc.Value) value { return value(v) }

// at returns what a path of names and indexes leads to. What is below something unknown is
// unknown.
func (v value) at(path ...any) value {
	for _, step := range path {
		if v.state() != given {
			return v
		}
		switch step := step.(type) {
		case string:
			v = v.member(step)
		case int:
			v = v.element(step)
		}
	}
	return v
}

// state says how much is known of the value.
func (v value) state() known {
	switch {
	case len(v) == 0 || bytes.Equal(v, []byte("null")):
		return absent
	case bytes.HasPrefix(v, []byte(`{"$mark":`)), bytes.HasPrefix(v, []byte(`{"$unknown":`)):
		return unknown
	default:
		return given
	}
}

// member returns the value of an object's key.
func (v value) member(name string) value {
	if len(v) == 0 || v[0] != '{' {
		return nil
	}
	for rest := v[1:]; len(rest) > 0 && rest[0] == '"'; {
		end := endOfString(rest)
		if end+1 >= len(rest) {
			return nil
		}
		key := rest[1 : end-1]
		rest = rest[end+1:] // behind the colon
		end = endOfValue(rest)
		if string(key) == name {
			return rest[:end]
		}
		rest = behindComma(rest[end:])
	}
	return nil
}

// members appends the keys of an object, as they are encoded, and their values; nothing of
// anything else.
func (v value) members(keys, values []value) (k, of []value) {
	if len(v) == 0 || v[0] != '{' {
		return keys, values
	}
	for rest := v[1:]; len(rest) > 0 && rest[0] == '"'; {
		end := endOfString(rest)
		if end+1 >= len(rest) {
			break
		}
		keys = append(keys, rest[1:end-1])
		rest = rest[end+1:]
		end = endOfValue(rest)
		values = append(values, rest[:end])
		rest = behindComma(rest[end:])
	}
	return keys, values
}

// element returns an element of a list.
func (v value) element(index int) value {
	for i, element := range v.elements() {
		if i == index {
			return element
		}
	}
	return nil
}

// elements are those of a list; none of anything else.
func (v value) elements() (all []value) {
	if len(v) < 2 || v[0] != '[' {
		return nil
	}
	for rest := v[1:]; len(rest) > 0 && rest[0] != ']'; {
		end := endOfValue(rest)
		if end == 0 {
			return all
		}
		all = append(all, rest[:end])
		rest = behindComma(rest[end:])
	}
	return all
}

func behindComma(rest value) value {
	if len(rest) > 0 && rest[0] == ',' {
		return rest[1:]
	}
	return rest
}

// endOfString is how long the string is that b begins with.
func endOfString(b []byte) int {
	if quote := bytes.IndexByte(b[1:], '"'); quote < 0 {
		return len(b)
	} else if bytes.IndexByte(b[1:1+quote], '\\') < 0 {
		return quote + 2
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// endOfValue is how long the value is that b begins with.
func endOfValue(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += endOfString(b[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(b)
}

// text returns the text at a path. What is not a text is absent.
func (v value) text(path ...any) (string, known) {
	v = v.at(path...)
	state := v.state()
	if state != given {
		return "", state
	}
	if len(v) < 2 || v[0] != '"' {
		return "", absent
	}
	if !bytes.ContainsAny(v, `\`) {
		return string(v[1 : len(v)-1]), given
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return "", absent
	}
	return s, given
}

// number returns the number at a path, also one that is written as a text: providers differ
// in that. A negative one is absent: no cloud sells less than nothing, and it would hide
// what something else costs.
func (v value) number(path ...any) (money.Amount, known) {
	v = v.at(path...)
	state := v.state()
	if state != given {
		return money.Amount{}, state
	}
	written := string(v)
	if v[0] == '"' {
		written, _ = v.text()
	}
	n, err := money.Parse(written)
	if err != nil || n.Sign() < 0 {
		return money.Amount{}, absent
	}
	return n, given
}

// is reports whether the boolean at a path is true, and whether that is known; what is
// absent is false.
func (v value) is(path ...any) (bool, known) {
	v = v.at(path...)
	state := v.state()
	return state == given && (string(v) == "true" || string(v) == `"true"`), state
}

// count is how many elements the list at a path has.
func (v value) count(path ...any) (int, known) {
	v = v.at(path...)
	return len(v.elements()), v.state()
}
