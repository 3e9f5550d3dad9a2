package policy

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/holdfast-dev/holdfast"
)

// read makes results of what a policy answers: a text, an object with a text msg, or true, or
// several of these in a set or a list.
func (e *evaluation) read(r rule, answer *ast.Term) (results []holdfast.PolicyResult, err error) {
	var items []*ast.Term
	switch v := answer.Value.(type) {
	case ast.Set:
		items = v.Slice()
	case *ast.Array:
		v.Foreach(func(item *ast.Term) { items = append(items, item) })
	case ast.Boolean:
		if !v {
			return nil, nil
		}
		items = []*ast.Term{ast.StringTerm(titleOf(r))}
	default:
		items = []*ast.Term{answer}
	}
	for _, item := range items {
		result, err := e.resultOf(r, item.Value)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// titleOf says what a policy has against a plan that only says that it has something.
func titleOf(r rule) string {
	if r.Title != "" {
		return r.Title
	}
	return r.ID
}

// resultOf reads one answer.
func (e *evaluation) resultOf(r rule, answer ast.Value) (holdfast.PolicyResult, error) {
	result := holdfast.PolicyResult{Policy: r.ID, Severity: r.Severity, Link: r.Link}
	switch v := answer.(type) {
	case ast.String:
		result.Message = string(v)
	case ast.Object:
		result.Message = textAt(v, "msg", "message")
		result.Address = textAt(v, "address", "resource")
		if link := textAt(v, "link", "url"); link != "" {
			result.Link = link
		}
	default:
		return result, fmt.Errorf("it answers with %s", ast.ValueName(answer)+": want a text, or an object with a text msg")
	}
	if result.Message == "" {
		return result, fmt.Errorf("an answer of it has no text: want a text, or an object with a text msg")
	}
	result.Message = cut(result.Message, e.limits.Message)
	result.Address = cut(result.Address, e.limits.Message)
	result.Link = cut(result.Link, e.limits.Message)
	return result, nil
}

// textAt is the first text that an object has at one of the keys.
func textAt(object ast.Object, keys ...string) string {
	for _, key := range keys {
		if term := object.Get(ast.StringTerm(key)); term != nil {
			if text, ok := term.Value.(ast.String); ok && text != "" {
				return string(text)
			}
		}
	}
	return ""
}

// except takes back what the exceptions of the policy's package name: lists of names of rules
// without deny_ and the like, as conftest has it.
func (e *evaluation) except(ctx context.Context, r rule, results []holdfast.PolicyResult) error {
	answer, err := e.ask(ctx, r.exception)
	if err != nil || answer == nil {
		return err
	}
	lists, ok := answer.Value.(ast.Set)
	if !ok {
		return fmt.Errorf("its package's exception is %s, and not a set of lists with names of rules", ast.ValueName(answer.Value))
	}
	named := false
	lists.Foreach(func(list *ast.Term) {
		if names, ok := list.Value.(*ast.Array); ok {
			names.Foreach(func(name *ast.Term) { named = named || name.Value.Compare(ast.String(r.suffix)) == 0 })
		}
	})
	if !named {
		return nil
	}
	for i := range results {
		results[i].Severity, results[i].Excepted = holdfast.PolicyInfo, true
	}
	return nil
}

// cut shortens a text to a number of bytes, at the beginning of a character, and drops what is
// not text.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	end := most - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
