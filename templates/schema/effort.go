package schema

import (
	"errors"
	patterns "regexp/syntax"
)

// Limits on what it takes to check values. A schema and a value that are both
// within their bounds can be endless together: alternatives for each item of a
// list, an expression that runs through a long text.
const (
	maxEffort        = 500_000 // schemas that are looked at, and what takes as long
	maxEffortDepth   = 5_000   // of schemas in one another, with the references followed
	maxPatternsSize  = 500_000 // instructions of all regular expressions of a schema
	PatternStep      = 200     // instructions of an expression on a character that take a step
	comparisonsAStep = 4       // with values of an enum, and the like
)

const tooLarge = "fewer items, or shorter texts, or a schema with fewer alternatives"

// effort counts what it takes to check a value, before that is done: who checks
// cannot be stopped. It counts too much rather than too little.
type effort struct {
	schema *Schema
	types  int // patterns of instance types
	left   int
}

// affordable reports whether it takes a bounded time to check a value. What is
// wrong with each of many alternatives of each of many items takes its room, too.
func (s *Checker) affordable(schema, value any) bool {
	e := effort{schema: s.Schema, left: maxEffort}
	if s.types != nil {
		e.types = len(s.types.globs)
	}
	e.check(schema, value, 0)
	return e.left >= 0
}

func (e *effort) check(schema, value any, depth int) {
	e.left--
	m, ok := schema.(map[string]any)
	if !ok || e.left < 0 {
		return
	}
	if depth > maxEffortDepth {
		e.left = -1
		return
	}
	for _, word := range []string{"enum", "required"} {
		list, _ := m[word].([]any)
		e.left -= len(list) / comparisonsAStep
	}
	if ref, ok := m["$ref"].(string); ok {
		target, _ := Pointer(e.schema.Doc, ref)
		e.check(target, value, depth+1)
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[word].([]any)
		for _, item := range list {
			e.check(item, value, depth+1)
		}
	}
	for _, word := range []string{"not", "if", "then", "else"} {
		if inner, ok := m[word]; ok {
			e.check(inner, value, depth+1)
		}
	}
	switch value := value.(type) {
	case string:
		e.text(m, value)
	case []any:
		e.list(m, value, depth)
	case map[string]any:
		e.mapping(m, value, depth)
	}
}

func (e *effort) text(schema map[string]any, value string) {
	if pattern, ok := schema["pattern"].(string); ok {
		e.match(pattern, value)
	}
	if schema["format"] == InstanceType {
		e.left -= e.types / comparisonsAStep
	}
}

func (e *effort) match(pattern, text string) {
	e.left -= e.schema.patterns[pattern] * len(text) / PatternStep
}

func (e *effort) list(schema map[string]any, value []any, depth int) {
	first, _ := schema["prefixItems"].([]any)
	for i, item := range value {
		if e.left < 0 {
			return
		}
		if i < len(first) {
			e.check(first[i], item, depth+1)
		}
		for _, word := range []string{"items", "contains", "unevaluatedItems"} {
			if inner, ok := schema[word]; ok {
				e.check(inner, item, depth+1)
			}
		}
	}
}

func (e *effort) mapping(schema map[string]any, value map[string]any, depth int) {
	properties, _ := schema["properties"].(map[string]any)
	byPattern, _ := schema["patternProperties"].(map[string]any)
	dependent, _ := schema["dependentSchemas"].(map[string]any)
	e.left -= len(properties) / comparisonsAStep
	for name, item := range value {
		if e.left < 0 {
			return
		}
		property, known := properties[name]
		if known {
			e.check(property, item, depth+1)
		}
		for pattern, inner := range byPattern {
			e.match(pattern, name)
			e.check(inner, item, depth+1)
		}
		for _, word := range []string{"additionalProperties", "unevaluatedProperties"} {
			if inner, ok := schema[word]; ok && !known {
				e.check(inner, item, depth+1)
			}
		}
		if inner, ok := schema["propertyNames"]; ok {
			e.check(inner, name, depth+1)
		}
		if inner, ok := dependent[name]; ok {
			e.check(inner, value, depth+1)
		}
	}
}

// measurePatterns notes how large the regular expressions of a schema are, and
// refuses those that are too large together: a few characters can stand for
// thousands of instructions.
func (s *Schema) measurePatterns(doc any) error {
	left := maxPatternsSize
	var walk func(v any)
	measure := func(pattern string) {
		size, known := s.patterns[pattern]
		if !known {
			size = PatternSize(pattern)
			s.patterns[pattern] = size
		}
		left -= size
	}
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if pattern, ok := v["pattern"].(string); ok && left > 0 {
				measure(pattern)
			}
			byPattern, _ := v["patternProperties"].(map[string]any)
			for pattern := range byPattern {
				if left > 0 {
					measure(pattern)
				}
			}
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(doc)
	if left <= 0 {
		return errors.New("its patterns are too large: fewer {n} and shorter ones")
	}
	return nil
}

// PatternSize returns how many instructions a regular expression has; zero if it
// is not one.
func PatternSize(pattern string) int {
	parsed, err := patterns.Parse(pattern, patterns.Perl)
	if err != nil {
		return 0
	}
	program, err := patterns.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}
