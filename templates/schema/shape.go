package schema

import (
	"maps"
	"slices"
	"strconv"
)

// Shape is what a schema says of the type of a value, as far as types can say
// it. It is immutable.
type Shape struct {
	Kind     Kind
	Items    *Shape            // of a list, or the values of a mapping; never nil for these
	Fields   map[string]*Shape // of an object
	required []string          // of an object
	Closed   bool              // an object that has no other fields
}

// Kind is what values of a shape are.
type Kind int

// The kinds of values. A schema that does not say gives Any.
const (
	Any Kind = iota
	String
	Integer
	Number
	Bool
	List
	Mapping // any keys, values of one shape
	Object  // known keys
)

// Words names a value of the shape: "a string", "true or false".
func (s *Shape) Words() string {
	switch s.Kind {
	case String:
		return "a string"
	case Integer, Number:
		return "a number"
	case Bool:
		return "true or false"
	case List:
		return "a list"
	case Mapping, Object:
		return "a mapping"
	case Any:
	}
	return "anything"
}

// At returns the shape of what a reference such as node_pools[0].name reaches
// from a value, and what is not there. It knows no more where the schema does
// not say.
func (s *Shape) At(words []string) (reached *Shape, missing string, known []string) {
	for _, word := range words {
		_, err := strconv.Atoi(word)
		switch {
		case s.Kind == List && err == nil, s.Kind == Mapping && err != nil:
			s = s.Items
		case s.Kind == Object && s.Fields[word] != nil:
			s = s.Fields[word]
		case s.Kind == Object && s.Closed:
			return nil, word, slices.Sorted(maps.Keys(s.Fields))
		default:
			return &Shape{}, "", nil
		}
	}
	return s, "", nil
}

// EngineType is the engine's type for a value of the shape; any where the
// schema says more than the engine's types can, or less. It refuses nothing
// that the schema accepts, and changes nothing: an object type would add the
// fields that are left out as null, and a list of any would make all items
// alike.
func (s *Shape) EngineType() string {
	switch s.Kind {
	case String:
		return "string"
	case Integer, Number:
		return "number"
	case Bool:
		return "bool"
	case List:
		if inner := s.Items.EngineType(); inner != "any" {
			return "list(" + inner + ")"
		}
	case Mapping:
		if inner := s.Items.EngineType(); inner != "any" {
			return "map(" + inner + ")"
		}
	case Any, Object:
	}
	return "any"
}

// shaper makes shapes of the schemas in one document.
type shaper struct {
	doc  map[string]any
	refs map[string]*Shape // what references point to
}

func newShaper(doc map[string]any) *shaper { return &shaper{doc: doc, refs: map[string]*Shape{}} }

// shape returns the shape that a schema gives to values. A list or a mapping
// that holds itself is anything: no type says that.
func (m *shaper) shape(schema any) *Shape {
	property, _ := schema.(map[string]any)
	if property == nil {
		return &Shape{}
	}
	if ref, ok := property["$ref"].(string); ok && property["type"] == nil {
		return m.follow(ref)
	}
	switch kindOf(property) {
	case "string":
		return &Shape{Kind: String}
	case "integer":
		return &Shape{Kind: Integer}
	case "number":
		return &Shape{Kind: Number}
	case "boolean":
		return &Shape{Kind: Bool}
	case "array":
		items := &Shape{}
		if property["prefixItems"] == nil {
			items = m.shape(property["items"])
		}
		return &Shape{Kind: List, Items: items}
	case "object":
		return m.object(property)
	}
	return &Shape{}
}

func (m *shaper) follow(ref string) *Shape {
	if known := m.refs[ref]; known != nil {
		return known
	}
	m.refs[ref] = &Shape{} // while it is made: one that holds itself
	target, _ := Pointer(m.doc, ref)
	m.refs[ref] = m.shape(target)
	return m.refs[ref]
}

func (m *shaper) object(property map[string]any) *Shape {
	fields, _ := property["properties"].(map[string]any)
	additional, said := property["additionalProperties"]
	patterns := property["patternProperties"] != nil
	if len(fields) == 0 && !patterns && said && additional != false {
		return &Shape{Kind: Mapping, Items: m.shape(additional)}
	}
	s := &Shape{Kind: Object, Fields: map[string]*Shape{}, Closed: said && additional == false && !patterns}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		s.Fields[name] = m.shape(fields[name])
	}
	s.required = RequiredOf(property)
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

// Rewrite returns a copy of a schema in which edit has changed each schema
// that is inside, the innermost first. Values such as defaults are not schemas.
// path leads to a schema from the document.
func Rewrite(v any, path []string, edit func(path []string, schema map[string]any) any) any {
	schema, ok := v.(map[string]any)
	if !ok {
		return v // true, false, or what the compiler refuses
	}
	out := maps.Clone(schema)
	below := func(child any, words ...string) any {
		return Rewrite(child, append(slices.Clone(path), words...), edit)
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

// RequiredOf returns the names that a schema requires.
func RequiredOf(schema map[string]any) []string {
	list, _ := schema["required"].([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OfWhole reports whether the schema at a path is held against the variables as a whole.
func OfWhole(at []string) bool {
	for i := 0; i < len(at); i++ {
		switch at[i] {
		case "if", "then", "else", "not":
		case "allOf", "anyOf", "oneOf", "dependentSchemas":
			i++ // and an index or a name
		default:
			return false
		}
	}
	return true
}
