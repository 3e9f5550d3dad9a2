package boundedhcl

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/apparentlymart/go-textseg/v15/textseg"
	"github.com/hashicorp/hcl/v2"
)

// scanner goes through JSON as the parser of HCL's JSON form does, which is not quite as
// others do: it ends a text at a control character, and reads characters together that are
// written as one, a quote among them.
type scanner struct {
	data                  []byte
	line                  int
	depth, tokens, errors int
}

// admitJSON returns why a text is not parsed, and how many tokens it has.
func admitJSON(data []byte) (int, error) {
	s := scanner{data: data, line: 1}
	for len(s.data) > 0 {
		known, err := s.token()
		switch {
		case err != nil:
			return 0, err
		case s.depth > MaxDepth:
			return 0, &Excess{Line: s.line, What: deep}
		case s.tokens > MaxTokens:
			return 0, &Excess{Line: s.line, What: many}
		case s.errors > maxErrors:
			return 0, &Excess{Line: s.line, What: mistaken}
		case !known: // and the parser goes no further
			return s.tokens, nil
		}
	}
	return s.tokens, nil
}

// token reads one token, or the space before one.
func (s *scanner) token() (known bool, err error) {
	switch first := s.data[0]; first {
	case '\n':
		s.line++
		s.data = s.data[1:]
		return true, nil
	case ' ', '\r', '\t':
		s.data = s.data[1:]
		return true, nil
	case '{', '[':
		s.depth++
	case '}', ']': // the parser leaves a level for each of them, whichever it was
		s.depth = max(0, s.depth-1)
	case ',', ':', '=':
	case '"':
		s.tokens++
		return true, s.text()
	default:
		s.tokens++
		if word := s.run(isNumeric); len(word) > 0 {
			if !numberFits(word) {
				return false, &Excess{Line: s.line, What: long}
			}
			if !json.Valid(word) {
				s.errors++
			}
			return true, nil
		}
		word := s.run(isAlphabetic)
		if !slices.Contains([]string{"true", "false", "null"}, string(word)) {
			s.errors++
		}
		return len(word) > 0, nil
	}
	s.tokens++
	s.data = s.data[1:]
	return true, nil
}

func isNumeric(c byte) bool {
	return c >= '0' && c <= '9' || bytes.IndexByte([]byte("-+.eE"), c) >= 0
}

func isAlphabetic(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// run reads characters of a kind. A number does not begin with a letter.
func (s *scanner) run(kind func(byte) bool) []byte {
	n := 0
	for n < len(s.data) && kind(s.data[n]) && (n > 0 || s.data[0] != 'e' && s.data[0] != 'E' || kind('a')) {
		n++
	}
	word := s.data[:n]
	s.data = s.data[n:]
	return word
}

// text reads a text. It may be evaluated as a template later, by whoever asks what it
// refers to.
func (s *scanner) text() error {
	i, escaping := 1, false
	for ended := false; i < len(s.data) && !ended && s.data[i] >= ' '; {
		switch s.data[i] {
		case '\\':
			escaping = !escaping
			i++
		case '"':
			ended, escaping = !escaping, false
			i++
		default:
			n, _, _ := textseg.ScanGraphemeClusters(s.data[i:], true)
			i += n
			escaping = false
		}
	}
	token := s.data[:i]
	s.data = s.data[i:]
	var text string
	if json.Unmarshal(token, &text) != nil {
		s.errors++
		return nil
	}
	if IsTemplate(text) {
		_, err := template.admit([]byte(text), hcl.Pos{Line: s.line, Column: 1})
		return err
	}
	return nil
}

// IsTemplate reports whether a text of JSON has something in it that is evaluated.
func IsTemplate(text string) bool {
	return bytes.Contains([]byte(text), []byte("${")) || bytes.Contains([]byte(text), []byte("%{"))
}
