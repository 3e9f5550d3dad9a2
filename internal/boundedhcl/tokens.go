package boundedhcl

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// language is what a text is written in.
type language int

const (
	config language = iota
	expression
	template
)

type lexer func(src []byte, filename string, start hcl.Pos) (hclsyntax.Tokens, hcl.Diagnostics)

func (l language) lexer() lexer {
	switch l {
	case expression:
		return hclsyntax.LexExpression
	case template:
		return hclsyntax.LexTemplate
	default:
		return hclsyntax.LexConfig
	}
}

// lex returns the tokens of a text, unless there are too many. The scanner holds all of
// them at once: it is given the start of the text first, and more of it as far as that can
// only have as many tokens as are allowed. What is not large is lexed once.
func (l language) lex(src []byte, start hcl.Pos) (hclsyntax.Tokens, error) {
	for size := max(MaxTokens/3, large); ; {
		size = min(size, len(src))
		tokens, _ := l.lexer()(src[:size], "", start)
		switch {
		case len(tokens) > MaxTokens:
			return nil, &Excess{Line: tokens[MaxTokens].Range.Start.Line, What: many}
		case size == len(src):
			return tokens, nil
		}
		size += max(MaxTokens-len(tokens), MaxTokens/10)
	}
}

// admit returns why a text is not parsed, and how many tokens it has.
func (l language) admit(src []byte, start hcl.Pos) (int, error) {
	tokens, err := l.lex(src, start)
	if err != nil {
		return 0, err
	}
	if err := checkTokens(tokens); err != nil {
		return 0, err
	}
	g := newGrammar(l, tokens)
	line, err := g.follow()
	if err != nil {
		return 0, err
	}
	if line > 0 && nestable(tokens) > maxBlind {
		return 0, blindly(tokens, line)
	}
	return len(tokens), nil
}

// checkTokens looks at each token alone.
func checkTokens(tokens hclsyntax.Tokens) error {
	errors, lines, size, copied := 0, 0, 0, 0
	for i, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenNumberLit:
			if !numberFits(token.Bytes) {
				return &Excess{Line: token.Range.Start.Line, What: long}
			}
			if i > 0 && tokens[i-1].Type == hclsyntax.TokenDot && bytes.IndexByte(token.Bytes, '.') >= 0 {
				errors++
			}
		case hclsyntax.TokenQuotedLit:
			errors += badEscapes(token.Bytes)
			lines, size = lines+1, size+len(token.Bytes)
			copied += size + 16*lines
		case hclsyntax.TokenStringLit:
			lines, size = lines+1, size+len(token.Bytes)
			copied += size + 16*lines
		case hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp:
			lines, size = 0, 0
		case hclsyntax.TokenInvalid, hclsyntax.TokenBadUTF8, hclsyntax.TokenQuotedNewline:
			errors++
		default: // neither a number nor a text
		}
		switch {
		case errors > maxErrors:
			return &Excess{Line: token.Range.Start.Line, What: mistaken}
		case copied > maxCopied:
			return &Excess{Line: token.Range.Start.Line, What: joined}
		}
	}
	return nil
}

// badEscapes counts what follows a backslash and means nothing.
func badEscapes(text []byte) (n int) {
	for i := bytes.IndexByte(text, '\\'); i >= 0 && i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		digits := 0
		switch {
		case i == len(text):
			n++
		case text[i] == 'u':
			digits = 4
		case text[i] == 'U':
			digits = 8
		case bytes.IndexByte([]byte(`nrt"\`), text[i]) < 0:
			n++
		}
		if digits > 0 && !isRune(text[min(i+1, len(text)):min(i+1+digits, len(text))], digits) {
			n++
		}
	}
	return n
}

// isRune reports whether digits are the number of a character.
func isRune(digits []byte, n int) bool {
	number, err := strconv.ParseUint(string(digits), 16, 32)
	return len(digits) == n && err == nil && number <= unicode.MaxRune && utf8.ValidRune(rune(number))
}

// nestable counts the tokens that can nest what follows, whatever ends it.
func nestable(tokens hclsyntax.Tokens) (n int) {
	for _, token := range tokens {
		if opens(token.Type) || operators[token.Type] || token.Type == hclsyntax.TokenBang || token.Type == hclsyntax.TokenQuestion || token.Type == hclsyntax.TokenDoubleColon {
			n++
		}
	}
	return n
}

// blindly says why code is not parsed that does not follow the grammar. Where it is
// nested deeply, that is why.
func blindly(tokens hclsyntax.Tokens, line int) error {
	depth := 0
	for _, token := range tokens {
		switch {
		case opens(token.Type):
			depth++
		case closes(token.Type):
			depth = max(0, depth-1)
		}
		if depth > MaxDepth {
			return &Excess{Line: token.Range.Start.Line, What: deep}
		}
	}
	return &Excess{Line: line, What: broken}
}

func opens(t hclsyntax.TokenType) bool {
	switch t {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
		hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		return true
	default:
		return false
	}
}

func closes(t hclsyntax.TokenType) bool {
	switch t {
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
		hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
		return true
	default:
		return false
	}
}

// operators are those between two expressions.
var operators = map[hclsyntax.TokenType]bool{ //nolint:gochecknoglobals // a constant set
	hclsyntax.TokenPlus: true, hclsyntax.TokenMinus: true, hclsyntax.TokenStar: true, hclsyntax.TokenSlash: true,
	hclsyntax.TokenPercent: true, hclsyntax.TokenEqualOp: true, hclsyntax.TokenNotEqual: true,
	hclsyntax.TokenLessThan: true, hclsyntax.TokenLessThanEq: true, hclsyntax.TokenGreaterThan: true,
	hclsyntax.TokenGreaterThanEq: true, hclsyntax.TokenAnd: true, hclsyntax.TokenOr: true,
}
