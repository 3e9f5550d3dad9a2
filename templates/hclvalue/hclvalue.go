package hclvalue

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/templates/wording"
)

// reference is what may be in ${ }: a name, and attributes and indices of it. It has no
// function, operator or string, so that its text is HCL for exactly this and nothing
// else.
var reference = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*|\[[0-9]{1,9}\])*$`)

// Part is a piece of a text: literal, or a reference.
type Part struct {
	Literal string
	Words   []string // var, node_count: those of the reference; nil for a literal
	Text    string   // the reference as it is written
}

// parseParts splits a text at its references. "$${" is a literal "${".
func parseParts(s string) ([]Part, error) {
	var parts []Part
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, Part{Literal: literal.String()})
			literal.Reset()
		}
	}
	for s != "" {
		switch {
		case strings.HasPrefix(s, "$${"):
			literal.WriteString("${")
			s = s[3:]
		case strings.HasPrefix(s, "${"):
			inner, rest, found := strings.Cut(s[2:], "}")
			inner = strings.TrimSpace(inner)
			if !found || !reference.MatchString(inner) {
				return nil, fmt.Errorf("%q is not a reference", wording.Clip("${"+inner+"}"))
			}
			flush()
			words := strings.FieldsFunc(inner, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
			parts = append(parts, Part{Words: words, Text: inner})
			s = rest
		default:
			literal.WriteByte(s[0])
			s = s[1:]
		}
	}
	flush()
	return parts, nil
}

// hclText is a reference in the root module: cluster.x is a local there.
func (p Part) hclText() string {
	if p.Words[0] == "cluster" {
		return "local." + p.Text
	}
	return p.Text
}

// Parse returns a value of a template document with its texts parsed: []Part for each. What is
// wrong with a text is reported to bad.
func Parse(v any, bad func(error)) any {
	switch v := v.(type) {
	case string:
		parts, err := parseParts(v)
		if err != nil {
			bad(err)
		}
		return parts
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Parse(item, bad)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out[key] = Parse(v[key], bad)
		}
		return out
	}
	return v
}

// References calls visit with each reference in a parsed value, in the order of keys.
func References(v any, visit func(Part)) {
	switch v := v.(type) {
	case []Part:
		for _, p := range v {
			if p.Words != nil {
				visit(p)
			}
		}
	case []any:
		for _, item := range v {
			References(item, visit)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			References(v[key], visit)
		}
	}
}

// Tokens renders a parsed value, or one whose texts are all literal, so that the engine reads
// exactly that.
func Tokens(v any) hclwrite.Tokens {
	switch v := v.(type) {
	case []Part:
		if len(v) == 1 && v[0].Words != nil { // keeps its type
			return Raw(hclsyntax.TokenIdent, v[0].hclText())
		}
		return quoted(v)
	case string:
		return quoted([]Part{{Literal: v}})
	case []any:
		items := make([]hclwrite.Tokens, len(v))
		for i, item := range v {
			items[i] = Tokens(item)
		}
		return hclwrite.TokensForTuple(items)
	case map[string]any:
		attrs := make([]hclwrite.ObjectAttrTokens, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			attrs = append(attrs, hclwrite.ObjectAttrTokens{Name: Tokens(key), Value: Tokens(v[key])})
		}
		return hclwrite.TokensForObject(attrs)
	}
	return hclwrite.TokensForValue(Scalar(v))
}

// Scalar is a number or a bool as a value of HCL; null for whatever else.
func Scalar(v any) cty.Value {
	switch v := v.(type) {
	case bool:
		return cty.BoolVal(v)
	case int:
		return cty.NumberIntVal(int64(v))
	case int64:
		return cty.NumberIntVal(v)
	case uint64:
		return cty.NumberUIntVal(v)
	case float64:
		// By its shortest text, as JSON has it: the engine reads 0.1, not the
		// nearest binary fraction.
		if n, err := cty.ParseNumberVal(strconv.FormatFloat(v, 'g', -1, 64)); err == nil {
			return n
		}
	case json.Number:
		if n, err := cty.ParseNumberVal(v.String()); err == nil {
			return n
		}
	}
	return cty.NullVal(cty.DynamicPseudoType)
}

// Raw is one token of that text, which is not escaped.
func Raw(kind hclsyntax.TokenType, text string) hclwrite.Tokens {
	return hclwrite.Tokens{{Type: kind, Bytes: []byte(text)}}
}

func quoted(parts []Part) hclwrite.Tokens {
	var b strings.Builder
	for i, p := range parts {
		if p.Words != nil {
			b.WriteString("${" + p.hclText() + "}")
			continue
		}
		escape(&b, p.Literal, i+1 < len(parts))
	}
	out := Raw(hclsyntax.TokenOQuote, `"`)
	if b.Len() > 0 {
		out = append(out, Raw(hclsyntax.TokenQuotedLit, b.String())...)
	}
	return append(out, Raw(hclsyntax.TokenCQuote, `"`)...)
}

// escape writes a literal so that the engine reads it as it is. more says that
// a reference follows.
func escape(b *strings.Builder, s string, more bool) {
	for s != "" {
		run := len(s) - len(strings.TrimLeft(s, "$%"))
		rest := s[run:]
		opens := strings.HasPrefix(rest, "{") || (rest == "" && more)
		switch {
		case run == 0:
			r := []rune(s[:runeLen(s)])[0]
			escapeRune(b, r)
			s = s[runeLen(s):]
			continue
		case !opens:
			b.WriteString(s[:run])
		case run == 1 && rest != "":
			b.WriteString(s[:1] + s[:1]) // "$${" is a literal "${"
		default:
			// How a longer run before a brace is read depends on its length: keep
			// it away from the brace.
			b.WriteString(`${"` + s[:run] + `"}`)
		}
		s = rest
	}
}

func runeLen(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

func escapeRune(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == '"' || r == '\\':
		b.WriteByte('\\')
		b.WriteRune(r)
	case unicode.IsPrint(r):
		b.WriteRune(r)
	case r < 0x10000:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}
