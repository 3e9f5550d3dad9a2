package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Context is what policies know besides the plan, as input.holdfast.
type Context = protocol.PolicyContext

// Input is what policies are given: the plan, as `show -json` of an engine says it, and next
// to that, as input.holdfast, a Context and the resource changes by type. One with values that
// are not shown is for one evaluation at a time.
type Input struct {
	value  ast.Value
	hidden bool // a part of it is not shown
	reads  *int // how often one of these was asked for
}

// ReadInput reads a plan, as `show -json` of an engine prints it.
func ReadInput(plan io.Reader, about Context) (Input, error) {
	dec := json.NewDecoder(plan)
	dec.UseNumber()
	var content map[string]any
	if err := dec.Decode(&content); err != nil {
		return Input{}, fmt.Errorf("read plan: %w", err)
	}
	if content == nil {
		return Input{}, errors.New("read plan: it is null")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Input{}, errors.New("read plan: there is something after its end")
	}
	return newInput(content, about)
}

// newInput converts the plan once: what is in two places of the input is one value.
func newInput(plan map[string]any, about Context) (Input, error) {
	text, err := json.Marshal(about)
	if err != nil {
		return Input{}, fmt.Errorf("describe cluster: %w", err)
	}
	in := Input{reads: new(int)}
	ours, err := in.convert(json.RawMessage(text))
	if err != nil {
		return Input{}, err
	}
	root := ast.NewObject()
	var secret []string
	for key, value := range plan {
		if key == settingsKey {
			continue // what is ours cannot come from a plan
		}
		if holds(value) {
			secret = append(secret, key)
		}
		converted, err := in.convert(value)
		if err != nil {
			return Input{}, err
		}
		root.Insert(ast.StringTerm(key), ast.NewTerm(converted))
	}
	object, ok := ours.(ast.Object)
	if !ok {
		return Input{}, errors.New("describe cluster: it is not an object")
	}
	object.Insert(ast.StringTerm("by_type"), ast.NewTerm(byType(root)))
	root.Insert(ast.StringTerm(settingsKey), ast.NewTerm(object))
	in.value = root
	if len(secret) > 0 {
		in.hidden, in.value = true, guard(root, secret, in.reads)
	}
	return in, nil
}

// byType are the resource changes of a plan, by the type of resource: a policy that goes
// through those of one type needs not look at all.
func byType(root ast.Object) ast.Object {
	groups := map[string][]*ast.Term{}
	if changes := root.Get(ast.StringTerm("resource_changes")); changes != nil {
		if list, ok := changes.Value.(*ast.Array); ok {
			list.Foreach(func(change *ast.Term) {
				object, ok := change.Value.(ast.Object)
				if !ok {
					return
				}
				if name := object.Get(ast.StringTerm("type")); name != nil {
					if text, ok := name.Value.(ast.String); ok {
						groups[string(text)] = append(groups[string(text)], change)
					}
				}
			})
		}
	}
	out := ast.NewObject()
	for _, name := range sortedKeys(groups) {
		out.Insert(ast.StringTerm(name), ast.ArrayTerm(groups[name]...))
	}
	return out
}

// convert makes a value of what a JSON decoder returns. Objects with hidden values become
// such that note who asks for these.
func (in *Input) convert(x any) (ast.Value, error) {
	switch v := x.(type) {
	case json.RawMessage:
		var content any
		if err := json.Unmarshal(v, &content); err != nil {
			return nil, fmt.Errorf("describe cluster: %w", err)
		}
		return in.convert(content)
	case map[string]any:
		pairs := make([][2]*ast.Term, 0, len(v))
		var secret []string
		for key, value := range v {
			if holds(value) {
				secret = append(secret, key)
			}
			converted, err := in.convert(value)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, [2]*ast.Term{ast.StringTerm(key), ast.NewTerm(converted)})
		}
		object := ast.NewObject(pairs...)
		if len(secret) == 0 {
			return object, nil
		}
		in.hidden = true
		return guard(object, secret, in.reads), nil
	case []any:
		terms := make([]*ast.Term, len(v))
		for i, value := range v {
			converted, err := in.convert(value)
			if err != nil {
				return nil, err
			}
			terms[i] = ast.NewTerm(converted)
		}
		return ast.NewArray(terms...), nil
	case Hidden:
		return ast.String(holdfast.SensitiveValue), nil
	default:
		value, err := ast.InterfaceToValue(x)
		if err != nil {
			return nil, fmt.Errorf("read plan: %w", err)
		}
		return value, nil
	}
}

// holds reports whether a value is hidden, or a list is with a hidden value in it. Objects
// note for themselves what is hidden in them.
func holds(x any) bool {
	switch v := x.(type) {
	case Hidden:
		return true
	case []any:
		for _, item := range v {
			if holds(item) {
				return true
			}
		}
	}
	return false
}
