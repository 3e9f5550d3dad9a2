package templates

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// shape is what a schema says of the type of a value, as far as types can say
// it. It is immutable.
type shape struct {
	kind     shapeKind
	items    *shape            // of a list, or the values of a mapping; never nil for these
	fields   map[string]*shape // of an object
	required []string          // of an object
	closed   bool              // an object that has no other fields
}

type shapeKind int

const (
	shapeAny shapeKind = iota
	shapeString
	shapeInteger
	shapeNumber
	shapeBool
	shapeList
	shapeMapping // any keys, values of one shape
	shapeObject  // known keys
)

// words names a value of the shape: "a string", "true or false".
func (s *shape) words() string {
	switch s.kind {
	case shapeString:
		return "a string"
	case shapeInteger, shapeNumber:
		return "a number"
	case shapeBool:
		return "true or false"
	case shapeList:
		return "a list"
	case shapeMapping, shapeObject:
		return "a mapping"
	case shapeAny:
	}
	return "anything"
}

// at returns the shape of what a reference such as node_pools[0].name reaches
// from a value, and what is not there. It knows no more where the schema does
// not say.
func (s *shape) at(words []string) (reached *shape, missing string, known []string) {
	for _, word := range words {
		_, err := strconv.Atoi(word)
		switch {
		case s.kind == shapeList && err == nil, s.kind == shapeMapping && err != nil:
			s = s.items
		case s.kind == shapeObject && s.fields[word] != nil:
			s = s.fields[word]
		case s.kind == shapeObject && s.closed:
			return nil, word, slices.Sorted(maps.Keys(s.fields))
		default:
			return &shape{}, "", nil
		}
	}
	return s, "", nil
}

// engineType is the engine's type for a value of the shape; any where the
// schema says more than the engine's types can, or less. It refuses nothing
// that the schema accepts, and changes nothing: an object type would add the
// fields that are left out as null, and a list of any would make all items
// alike.
func (s *shape) engineType() string {
	switch s.kind {
	case shapeString:
		return "string"
	case shapeInteger, shapeNumber:
		return "number"
	case shapeBool:
		return "bool"
	case shapeList:
		if inner := s.items.engineType(); inner != "any" {
			return "list(" + inner + ")"
		}
	case shapeMapping:
		if inner := s.items.engineType(); inner != "any" {
			return "map(" + inner + ")"
		}
	case shapeAny, shapeObject:
	}
	return "any"
}

// shaper makes shapes of the schemas in one document.
type shaper struct {
	doc  map[string]any
	refs map[string]*shape // what references point to
}

func newShaper(doc map[string]any) *shaper { return &shaper{doc: doc, refs: map[string]*shape{}} }

// shape returns the shape that a schema gives to values. A list or a mapping
// that holds itself is anything: no type says that.
func (m *shaper) shape(schema any) *shape {
	property, _ := schema.(map[string]any)
	if property == nil {
		return &shape{}
	}
	if ref, ok := property["$ref"].(string); ok && property["type"] == nil {
		return m.follow(ref)
	}
	switch kindOf(property) {
	case "string":
		return &shape{kind: shapeString}
	case "integer":
		return &shape{kind: shapeInteger}
	case "number":
		return &shape{kind: shapeNumber}
	case "boolean":
		return &shape{kind: shapeBool}
	case "array":
		items := &shape{}
		if property["prefixItems"] == nil {
			items = m.shape(property["items"])
		}
		return &shape{kind: shapeList, items: items}
	case "object":
		return m.object(property)
	}
	return &shape{}
}

func (m *shaper) follow(ref string) *shape {
	if known := m.refs[ref]; known != nil {
		return known
	}
	m.refs[ref] = &shape{} // while it is made: one that holds itself
	target, _ := pointer(m.doc, ref)
	m.refs[ref] = m.shape(target)
	return m.refs[ref]
}

func (m *shaper) object(property map[string]any) *shape {
	fields, _ := property["properties"].(map[string]any)
	additional, said := property["additionalProperties"]
	patterns := property["patternProperties"] != nil
	if len(fields) == 0 && !patterns && said && additional != false {
		return &shape{kind: shapeMapping, items: m.shape(additional)}
	}
	s := &shape{kind: shapeObject, fields: map[string]*shape{}, closed: said && additional == false && !patterns}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		s.fields[name] = m.shape(fields[name])
	}
	s.required = requiredOf(property)
	return s
}

// kindOf returns the only type, besides null, that a schema allows; empty if
// there are several. The values of an enum say it, too.
func kindOf(property map[string]any) string {
	switch t := property["type"].(type) {
	case string:
		return t
	case []any:
		var kinds []string
		for _, item := range t {
			if word, ok := item.(string); ok && word != "null" {
				kinds = append(kinds, word)
			}
		}
		if len(kinds) == 1 {
			return kinds[0]
		}
		return ""
	}
	values, _ := property["enum"].([]any)
	if value, ok := property["const"]; ok {
		values = []any{value}
	}
	kind := ""
	for _, value := range values {
		this := ""
		switch value.(type) {
		case string:
			this = "string"
		case bool:
			this = "boolean"
		case int64, uint64:
			this = "integer"
		}
		if this == "" || kind != "" && kind != this {
			return ""
		}
		kind = this
	}
	return kind
}

// rewriteSchema returns a copy of a schema in which edit has changed each schema
// that is inside, the innermost first. Values such as defaults are no schemas.
// path leads to a schema from the document.
func rewriteSchema(v any, path []string, edit func(path []string, schema map[string]any) any) any {
	schema, ok := v.(map[string]any)
	if !ok {
		return v // true, false, or what the compiler refuses
	}
	out := maps.Clone(schema)
	below := func(child any, words ...string) any {
		return rewriteSchema(child, append(slices.Clone(path), words...), edit)
	}
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		switch child := schema[key].(type) {
		case map[string]any:
			switch {
			case holdsSchemas(key):
				copied := maps.Clone(child)
				for _, name := range slices.Sorted(maps.Keys(child)) {
					copied[name] = below(child[name], key, name)
				}
				out[key] = copied
			case isSchema(key):
				out[key] = below(child, key)
			}
		case []any:
			if !listsSchemas(key) {
				continue
			}
			copied := slices.Clone(child)
			for i := range copied {
				copied[i] = below(copied[i], key, strconv.Itoa(i))
			}
			out[key] = copied
		}
	}
	return edit(path, out)
}

// holdsSchemas reports whether a keyword's value has schemas by name.
func holdsSchemas(keyword string) bool {
	return slices.Contains([]string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}, keyword)
}

// isSchema reports whether a keyword's value is a schema.
func isSchema(keyword string) bool {
	return slices.Contains([]string{
		"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema",
	}, keyword)
}

// listsSchemas reports whether a keyword's value is a list of schemas.
func listsSchemas(keyword string) bool {
	return slices.Contains([]string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}, keyword)
}

// listed joins words for people: "a, b and c".
func listed(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return fmt.Sprintf("%s and %s", strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}
