package boundedhcl

import (
	"bytes"
	"regexp"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// expression reads one token of an expression, or what is between two.
func (g *grammar) expression(top *level) {
	switch {
	case top.fresh && g.empty(top):
	case top.operand:
		g.operand(top)
	case !g.operator(top):
		if top.asked > 0 {
			g.fail()
			return
		}
		g.after(top)
	}
}

// empty reads what can be in place of an expression: the end of a list.
func (g *grammar) empty(top *level) bool {
	switch next := g.peek().Type; {
	case top.place == inObject && top.part == first && next == hclsyntax.TokenNewline:
		g.next()
	case top.place == inObject && top.part == first && next == top.ends,
		(top.place == inTuple || top.place == inCall) && next == top.ends:
		g.next()
		g.pop()
	default:
		top.fresh = false
		return false
	}
	return true
}

// operand reads a term, or the bracket that one begins with.
func (g *grammar) operand(top *level) {
	top.operand, top.splat = false, false
	switch token := g.next(); token.Type {
	case hclsyntax.TokenNumberLit:
		g.number(token)
	case hclsyntax.TokenIdent:
		g.call(top)
	case hclsyntax.TokenMinus, hclsyntax.TokenBang:
		top.operand = true
		g.link(top)
	case hclsyntax.TokenOParen:
		g.push(level{place: inParens, ends: hclsyntax.TokenCParen})
	case hclsyntax.TokenOBrack:
		g.collection(inTuple, hclsyntax.TokenCBrack)
	case hclsyntax.TokenOBrace:
		g.collection(inObject, hclsyntax.TokenCBrace)
	case hclsyntax.TokenOQuote:
		g.push(level{place: inTemplate, ends: hclsyntax.TokenCQuote})
	case hclsyntax.TokenOHeredoc:
		g.push(level{place: inTemplate, ends: hclsyntax.TokenCHeredoc})
	default:
		g.fail()
	}
}

// number takes a token that the scanner calls a number, and that need not be one: 1.2.3.
func (g *grammar) number(token hclsyntax.Token) {
	if !isNumber.Match(token.Bytes) {
		g.fail()
	}
}

var isNumber = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// call reads what can follow a name that makes it one of a function.
func (g *grammar) call(top *level) {
	for !g.wrong && g.accept(hclsyntax.TokenDoubleColon) {
		g.link(top) // the parser copies the name for each
		g.expect(hclsyntax.TokenIdent)
		if t := g.peek().Type; t != hclsyntax.TokenDoubleColon && t != hclsyntax.TokenOParen {
			g.fail()
		}
	}
	if !g.wrong && g.accept(hclsyntax.TokenOParen) {
		g.push(level{place: inCall, ends: hclsyntax.TokenCParen})
	}
}

// collection reads the start of a list or an object, or of a loop that makes one.
func (g *grammar) collection(written place, ends hclsyntax.TokenType) {
	i, kind := g.find(false)
	if kind != hclsyntax.TokenIdent || string(g.tokens[i].Bytes) != "for" {
		g.push(level{place: written, ends: ends})
		return
	}
	g.push(level{place: inLoop, ends: ends})
	g.next()
	g.names()
}

// operator reads what joins a term with another, or takes something of it. It reports
// false if there is no such thing: the expression has ended.
func (g *grammar) operator(top *level) bool {
	switch token := g.peek(); {
	case operators[token.Type]:
		top.operand = true
		g.link(top)
	case token.Type == hclsyntax.TokenQuestion:
		top.operand = true
		top.asked++
		g.link(top)
	case token.Type == hclsyntax.TokenColon && top.asked > 0:
		top.operand = true
		top.asked--
	case token.Type == hclsyntax.TokenDot:
		g.next()
		g.attribute(top)
		return true
	case token.Type == hclsyntax.TokenOBrack:
		g.next()
		g.index(top)
		return true
	default:
		return false
	}
	g.next()
	return true
}

// attribute reads what comes after a dot.
func (g *grammar) attribute(top *level) {
	switch token := g.next(); {
	case token.Type == hclsyntax.TokenIdent:
	case token.Type == hclsyntax.TokenNumberLit && bytes.IndexByte(token.Bytes, '.') < 0:
		g.number(token)
	case token.Type == hclsyntax.TokenStar && !top.splat:
		top.splat = true
		g.link(top)
	default:
		g.fail()
	}
}

// index reads what comes after a bracket that follows an expression. A number is not a level
// within others: the parser keeps all of them in one list.
func (g *grammar) index(top *level) {
	top.splat = false
	from := g.at
	for _, t := range []hclsyntax.TokenType{hclsyntax.TokenStar, hclsyntax.TokenNumberLit} {
		token := g.peek()
		if g.accept(t) && g.accept(hclsyntax.TokenCBrack) {
			if t == hclsyntax.TokenStar {
				g.link(top)
			} else {
				g.number(token)
			}
			return
		}
		g.at = from
	}
	g.link(top)
	g.push(level{place: inIndex, ends: hclsyntax.TokenCBrack})
}

// after reads what follows an expression where it is.
func (g *grammar) after(top *level) {
	switch top.place {
	case inCall, inTuple:
		g.item(top)
	case inObject:
		g.pair(top)
	case inLoop:
		g.loop(top)
	case inArgument:
		g.argument(top)
	default: // inParens, inIndex, inSequence, inDirective, alone
		g.expect(top.ends)
		g.pop()
	}
}

// argument ends one of a body.
func (g *grammar) argument(top *level) {
	if top.ends == hclsyntax.TokenNewline {
		g.endOfLine()
		g.pop()
		return
	}
	g.expect(top.ends)
	g.pop() // the argument
	g.pop() // the block in one line
	g.endOfLine()
}

// item reads what follows one of a list, or of the arguments of a function.
func (g *grammar) item(top *level) {
	switch {
	case g.accept(hclsyntax.TokenComma):
		g.again(top)
		return
	case top.place == inCall:
		g.accept(hclsyntax.TokenEllipsis)
	}
	g.expect(top.ends)
	g.pop()
}

// pair reads what follows a key or a value of an object.
func (g *grammar) pair(top *level) {
	switch next := g.next().Type; {
	case top.part == first && (next == hclsyntax.TokenEqual || next == hclsyntax.TokenColon):
		g.again(top)
		top.part = value
	case top.part == value && (next == hclsyntax.TokenComma || next == hclsyntax.TokenNewline):
		g.again(top)
		top.part = first
	case top.part == value && next == top.ends:
		g.pop()
	default:
		g.fail()
	}
}

// loop reads what follows one of the expressions of a loop.
func (g *grammar) loop(top *level) {
	object := top.ends == hclsyntax.TokenCBrace
	switch {
	case top.part == first:
		g.expect(hclsyntax.TokenColon)
		g.again(top)
		top.part = value
		return
	case top.part == value && object && !top.keyed:
		g.expect(hclsyntax.TokenFatArrow)
		g.again(top)
		top.keyed = true
		return
	case top.part == value:
		if object {
			g.accept(hclsyntax.TokenEllipsis)
		}
		if g.word("if") {
			g.again(top)
			top.part = condition
			return
		}
	}
	g.expect(top.ends)
	g.pop()
}
