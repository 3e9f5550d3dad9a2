package boundedhcl

import (
	"bytes"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// place is what a token can be part of.
type place int

const (
	inBody      place = iota // arguments and blocks, each in its own lines
	inLine                   // the one argument of a block in one line
	inArgument               // the expression of an argument, to the end of the line
	alone                    // an expression alone
	inParens                 // (
	inCall                   // the arguments of a function
	inTuple                  // [
	inIndex                  // what is between brackets after an expression
	inObject                 // {
	inLoop                   // [for and {for
	inTemplate               // a text, quoted or not
	inSequence               // ${
	inDirective              // %{if and %{for
)

// level is a bracket or a text that is not closed yet, or what is around all of them.
type level struct {
	place   place
	ends    hclsyntax.TokenType // what closes it
	operand bool                // an expression begins here, or continues after an operator
	fresh   bool                // nothing was read yet of an argument, an item or a key
	splat   bool                // ".*" and what comes after it
	asked   int                 // conditionals whose colon is to come
	links   int                 // operators of the expression: each is a level within the others

	part  part        // of a loop or of an object
	keyed bool        // the loop has keys
	open  []directive // of a template
}

// part is where in a loop, or in an item of an object, an expression is.
type part int

const (
	first part = iota // what the loop goes through; the key of an item
	value             // what it makes; the value of an item
	condition
)

// directive is one of a template that is to be ended.
type directive struct{ loop, otherwise bool }

// grammar follows the tokens of a text as the parser does, without calling itself. For
// code that follows the language the depth of its levels is that of the parser; where
// code does not, the parser continues in ways that are not followed here.
type grammar struct {
	tokens hclsyntax.Tokens
	at     int
	levels []level
	depth  int // of levels, of links and of directives
	wrong  bool
}

func newGrammar(l language, tokens hclsyntax.Tokens) *grammar {
	g := &grammar{tokens: tokens}
	switch l {
	case expression:
		g.push(level{place: alone, ends: hclsyntax.TokenEOF})
	case template:
		g.push(level{place: inTemplate, ends: hclsyntax.TokenEOF})
	default:
		g.push(level{place: inBody, ends: hclsyntax.TokenEOF})
	}
	return g
}

// follow goes through all tokens. The line is that of the first one that the grammar does
// not expect, zero if there is none. The error says that code is nested too deeply.
func (g *grammar) follow() (line int, err error) {
	for len(g.levels) > 0 && !g.wrong {
		top := &g.levels[len(g.levels)-1]
		switch top.place {
		case inBody:
			g.body(top)
		case inLine:
			g.line()
		case inTemplate:
			g.template(top)
		default:
			g.expression(top)
		}
		if g.depth > MaxDepth {
			return 0, &Excess{Line: g.peek().Range.Start.Line, What: deep}
		}
	}
	if g.wrong {
		return max(1, g.peek().Range.Start.Line), nil
	}
	return 0, nil
}

func (g *grammar) push(l level) {
	l.operand, l.fresh = true, true
	g.levels = append(g.levels, l)
	g.depth++
}

func (g *grammar) pop() {
	top := g.levels[len(g.levels)-1]
	g.depth -= 1 + top.links + len(top.open)
	g.levels = g.levels[:len(g.levels)-1]
}

func (g *grammar) link(top *level) {
	top.links++
	g.depth++
}

// again begins another expression of a level, which the one before is not part of.
func (g *grammar) again(top *level) {
	g.depth -= top.links
	top.links, top.operand, top.fresh, top.splat = 0, true, true, false
}

func (g *grammar) fail() { g.wrong = true }

// lines reports whether a newline ends something.
func (g *grammar) lines() bool {
	if len(g.levels) == 0 {
		return true
	}
	switch g.levels[len(g.levels)-1].place {
	case inBody, inLine, inArgument, inObject:
		return true
	default:
		return false
	}
}

// find returns where the next token is. A comment to the end of its line is a newline,
// others are nothing.
func (g *grammar) find(lines bool) (int, hclsyntax.TokenType) {
	for i := g.at; i < len(g.tokens); i++ {
		token := g.tokens[i]
		switch {
		case token.Type == hclsyntax.TokenComment && bytes.HasSuffix(token.Bytes, []byte("\n")), token.Type == hclsyntax.TokenNewline:
			if lines {
				return i, hclsyntax.TokenNewline
			}
		case token.Type != hclsyntax.TokenComment:
			return i, token.Type
		}
	}
	return len(g.tokens) - 1, hclsyntax.TokenEOF
}

func (g *grammar) peek() hclsyntax.Token {
	i, kind := g.find(g.lines())
	token := g.tokens[i]
	token.Type = kind
	return token
}

func (g *grammar) next() hclsyntax.Token {
	i, kind := g.find(g.lines())
	token := g.tokens[i]
	token.Type = kind
	g.at = min(i+1, len(g.tokens)-1)
	return token
}

// accept reads the next token if it is of a type.
func (g *grammar) accept(t hclsyntax.TokenType) bool {
	if g.peek().Type != t {
		return false
	}
	g.next()
	return true
}

// expect reads a token that there must be.
func (g *grammar) expect(t hclsyntax.TokenType) {
	if !g.accept(t) {
		g.fail()
	}
}

// word reads the next token if it is that word.
func (g *grammar) word(text string) bool {
	if !isWord(g.peek(), text) {
		return false
	}
	g.next()
	return true
}

func isWord(token hclsyntax.Token, text string) bool {
	return token.Type == hclsyntax.TokenIdent && string(token.Bytes) == text
}

// body reads one argument, or the head of a block.
func (g *grammar) body(top *level) {
	token := g.next()
	switch token.Type {
	case hclsyntax.TokenNewline:
		return
	case top.ends:
		if g.pop(); token.Type == hclsyntax.TokenCBrace {
			g.endOfLine()
		}
		return
	case hclsyntax.TokenIdent:
	default:
		g.fail()
		return
	}
	if g.accept(hclsyntax.TokenEqual) {
		g.push(level{place: inArgument, ends: hclsyntax.TokenNewline})
		return
	}
	for !g.wrong {
		switch token := g.next(); token.Type {
		case hclsyntax.TokenIdent:
		case hclsyntax.TokenOQuote:
			for g.accept(hclsyntax.TokenQuotedLit) {
			}
			g.expect(hclsyntax.TokenCQuote)
		case hclsyntax.TokenOBrace:
			if next := g.peek().Type; next == hclsyntax.TokenNewline || next == hclsyntax.TokenCBrace {
				g.push(level{place: inBody, ends: hclsyntax.TokenCBrace})
			} else {
				g.push(level{place: inLine, ends: hclsyntax.TokenCBrace})
			}
			return
		default:
			g.fail()
		}
	}
}

// line reads the argument of a block in one line.
func (g *grammar) line() {
	g.expect(hclsyntax.TokenIdent)
	g.expect(hclsyntax.TokenEqual)
	if !g.wrong {
		g.push(level{place: inArgument, ends: hclsyntax.TokenCBrace})
	}
}

func (g *grammar) endOfLine() {
	if t := g.peek().Type; t != hclsyntax.TokenNewline && t != hclsyntax.TokenEOF {
		g.fail()
	}
}

// template reads one part of a text.
func (g *grammar) template(top *level) {
	switch token := g.next(); token.Type {
	case hclsyntax.TokenStringLit:
	case hclsyntax.TokenQuotedLit:
		if badEscapes(token.Bytes) > 0 {
			g.fail()
		}
	case hclsyntax.TokenTemplateInterp:
		g.push(level{place: inSequence, ends: hclsyntax.TokenTemplateSeqEnd})
	case hclsyntax.TokenTemplateControl:
		g.directive(top)
	case top.ends:
		if len(top.open) > 0 {
			g.fail()
		}
		g.pop()
	default:
		g.fail()
	}
}

// directive reads the start of one, or one that has no expression. They nest although each
// has its brackets closed: what is between %{if} and %{endif} is part of a conditional.
func (g *grammar) directive(top *level) {
	// Within its brackets newlines mean nothing, as in a template.
	last := len(top.open) - 1
	switch token := g.next(); {
	case isWord(token, "if"):
		top.open = append(top.open, directive{})
		g.depth++
		g.push(level{place: inDirective, ends: hclsyntax.TokenTemplateSeqEnd})
	case isWord(token, "for"):
		top.open = append(top.open, directive{loop: true})
		g.depth++
		if g.names(); !g.wrong {
			g.push(level{place: inDirective, ends: hclsyntax.TokenTemplateSeqEnd})
		}
	case last >= 0 && isWord(token, "else") && !top.open[last].loop && !top.open[last].otherwise:
		top.open[last].otherwise = true
		g.expect(hclsyntax.TokenTemplateSeqEnd)
	case last >= 0 && (isWord(token, "endif") && !top.open[last].loop || isWord(token, "endfor") && top.open[last].loop):
		top.open = top.open[:last]
		g.depth--
		g.expect(hclsyntax.TokenTemplateSeqEnd)
	default:
		g.fail()
	}
}

// names reads those of a loop, and the word after them.
func (g *grammar) names() {
	g.expect(hclsyntax.TokenIdent)
	if g.accept(hclsyntax.TokenComma) {
		g.expect(hclsyntax.TokenIdent)
	}
	if !g.word("in") {
		g.fail()
	}
}
