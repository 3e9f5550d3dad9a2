package schema

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Schema is what a template says of its variables. It is immutable and safe for
// concurrent use.
type Schema struct {
	Doc        map[string]any // as it was written
	Properties map[string]any
	Required   []string
	Open       bool              // variables that are not among the properties are allowed
	Secrets    map[string]bool   // variables whose values are references
	Defaults   map[string]any    // of variables, those of secrets aside
	Shapes     map[string]*Shape // of variables
	Names      []string          // of variables, sorted
	patterns   map[string]int    // sizes of regular expressions

	SecretDefaults map[string]any // references, by variable
}

// Declared are the variables that the root module declares. Others, which an
// open schema allows, are of use to rules only: the engine warns about them in
// every plan.
func (s *Schema) Declared(variables map[string]any) map[string]any {
	if !s.Open {
		return variables
	}
	out := maps.Clone(variables)
	maps.DeleteFunc(out, func(name string, _ any) bool { return s.Properties[name] == nil })
	return out
}

const schemaURL = "holdfast:///variables"

// New reads what is declared, whether or not it can be compiled.
func New(doc map[string]any) *Schema {
	s := &Schema{
		Doc: doc, Properties: map[string]any{}, Secrets: map[string]bool{},
		Defaults: map[string]any{}, SecretDefaults: map[string]any{}, Shapes: map[string]*Shape{}, patterns: map[string]int{},
	}
	if properties, ok := doc["properties"].(map[string]any); ok {
		s.Properties = properties
	}
	s.Names = slices.Sorted(maps.Keys(s.Properties))
	s.Required = RequiredOf(doc)
	additional, said := doc["additionalProperties"]
	_, patterns := doc["patternProperties"]
	s.Open = patterns || said && additional != false
	shapes := newShaper(doc)
	for _, name := range s.Names {
		s.Shapes[name] = shapes.shape(s.Properties[name])
		property, _ := s.Properties[name].(map[string]any)
		if mark, _ := property["writeOnly"].(bool); mark {
			s.Secrets[name] = true
			if ref := property["default"]; ref != nil {
				s.SecretDefaults[name] = ref
			}
		} else if fallback, ok := property["default"]; ok {
			s.Defaults[name] = fallback
		}
	}
	return s
}

// compileSchema compiles a JSON Schema 2020-12 for a provider that allows these
// instance types. References stay inside it, and what it costs to follow them is
// bounded. A secret variable is not checked: its value is elsewhere.
func compileSchema(s *Schema, types *instanceTypes) (*jsonschema.Compiler, error) {
	doc := Rewrite(s.Doc, nil, func(at []string, schema map[string]any) any {
		if len(at) == 2 && at[0] == "properties" && s.Secrets[at[1]] {
			return map[string]any{}
		}
		if format, ok := schema["format"].(string); ok && format != InstanceType {
			delete(schema, "format") // an annotation, in this version of JSON Schema
		}
		return schema
	})
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	if types != nil {
		compiler.AssertFormat()
		compiler.RegisterFormat(&jsonschema.Format{Name: InstanceType, Validate: types.validate})
	}
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return compiler, nil
}

// Compile returns a schema that checks variables for a provider that allows
// instance types of these patterns; without any it allows all.
func (s *Schema) Compile(provider string, patterns []string) (*Checker, error) {
	var types *instanceTypes
	if len(patterns) > 0 {
		types = newInstanceTypes(provider, patterns)
	}
	if err := checkSchema(s.Doc); err != nil {
		return nil, err
	}
	if err := s.measurePatterns(s.Doc); err != nil {
		return nil, err
	}
	compiler, err := compileSchema(s, types)
	if err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, schemaError(err)
	}
	return &Checker{Schema: s, whole: compiled, types: types, compiler: compiler}, nil
}

// Checker is a schema with what one provider allows.
type Checker struct {
	*Schema
	whole    *jsonschema.Schema
	types    *instanceTypes
	compiler *jsonschema.Compiler // until Seal: see Variable
}

// Seal gives back what Variable needs, which is larger than the rest, once the template
// is read.
func (s *Checker) Seal() { s.compiler = nil }

// instanceTypes are what a provider allows as values of format: instance-type.
type instanceTypes struct {
	provider string
	patterns []string        // as they were written
	exact    map[string]bool // those without wildcards
	globs    []string
}

func newInstanceTypes(provider string, patterns []string) *instanceTypes {
	if len(patterns) == 0 {
		return nil
	}
	t := &instanceTypes{provider: provider, patterns: patterns, exact: map[string]bool{}}
	for _, pattern := range patterns {
		if strings.ContainsAny(pattern, `*?[\`) {
			t.globs = append(t.globs, pattern)
		} else {
			t.exact[pattern] = true
		}
	}
	return t
}

func (t *instanceTypes) allows(word string) bool {
	return t.exact[word] || slices.ContainsFunc(t.globs, func(glob string) bool {
		ok, err := path.Match(glob, word)
		return ok && err == nil
	})
}

func (t *instanceTypes) validate(v any) error {
	if word, ok := v.(string); ok && !t.allows(word) {
		return errors.New("not allowed")
	}
	return nil
}

// hint says what is allowed instead of word: names as they were written, which is an
// author's order, then those that represent families.
func (t *instanceTypes) hint(word string) string {
	names := slices.DeleteFunc(slices.Clone(t.patterns), func(pattern string) bool { return !t.exact[pattern] })
	allowed := wording.OneInOrder(slices.Concat(names, t.globs))
	if near := nearest.Of(word, t.patterns); near != "" {
		return fmt.Sprintf("did you mean %q? %s", near, allowed)
	}
	return allowed
}

// Fault is what makes a schema one that cannot be used.
type Fault struct {
	Path []string // of what is wrong, from the schema
	text string
}

// Error says what is wrong, and where in the schema.
func (e *Fault) Error() string { return e.text }

func schemaError(err error) error {
	var invalid *jsonschema.SchemaValidationError
	if !errors.As(err, &invalid) {
		return errors.New(strings.ReplaceAll(err.Error(), schemaURL, ""))
	}
	var verr *jsonschema.ValidationError
	if !errors.As(invalid.Err, &verr) {
		return errors.New("it is not valid")
	}
	leaf := verr
	for len(leaf.Causes) > 0 {
		leaf = leaf.Causes[0]
	}
	return &Fault{
		Path: leaf.InstanceLocation,
		text: fmt.Sprintf("at /%s: %s", strings.Join(leaf.InstanceLocation, "/"), leaf.ErrorKind.LocalizedString(printer())),
	}
}

func printer() *message.Printer { return message.NewPrinter(language.English) }

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %q: a variable schema refers to nothing outside itself", wording.Clip(url))
}

// schemaCheck counts the steps of validating a value against a schema,
// following its references: a chain of them that doubles at every link is small
// to write and endless to check.
type schemaCheck struct {
	doc  map[string]any
	cost map[string]int // of what a reference points to; -1 while it is counted
}

func checkSchema(doc map[string]any) error {
	c := &schemaCheck{doc: doc, cost: map[string]int{"#": -1}}
	cost, err := c.count(doc)
	if err == nil && cost > MaxSchemaSteps {
		err = errors.New("it takes too many steps to check: fewer $ref, allOf, anyOf")
	}
	return err
}

func (c *schemaCheck) count(v any) (int, error) {
	total := 1
	add := func(child any) error {
		n, err := c.count(child)
		total = min(total+n, MaxSchemaSteps+1)
		return err
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := add(item); err != nil {
				return 0, err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := checkKeyword(key, v[key]); err != nil {
				return 0, err
			}
			if ref, ok := v[key].(string); ok && key == "$ref" {
				n, err := c.follow(ref)
				if err != nil {
					return 0, err
				}
				total = min(total+n, MaxSchemaSteps+1)
			}
			if key == "default" || key == "enum" || key == "const" || key == "examples" {
				continue // values, not schemas
			}
			if err := add(v[key]); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

func checkKeyword(key string, value any) error {
	text, isText := value.(string)
	switch {
	case key == "$schema" && text != "https://json-schema.org/draft/2020-12/schema":
		return fmt.Errorf("$schema %q: only https://json-schema.org/draft/2020-12/schema is known", wording.Clip(text))
	case isText && slices.Contains([]string{"$id", "$anchor", "$dynamicRef", "$dynamicAnchor"}, key):
		return fmt.Errorf("%s is not supported: use $defs and $ref", key)
	case key == "pattern" && len(text) > maxPattern:
		return fmt.Errorf("a pattern has %d characters, more than %d", len(text), maxPattern)
	}
	if patterns, ok := value.(map[string]any); ok && key == "patternProperties" {
		for pattern := range patterns {
			if len(pattern) > maxPattern {
				return fmt.Errorf("a pattern has %d characters, more than %d", len(pattern), maxPattern)
			}
		}
	}
	return nil
}

func (c *schemaCheck) follow(ref string) (int, error) {
	if !strings.HasPrefix(ref, "#") || (ref != "#" && !strings.HasPrefix(ref, "#/")) {
		return 0, fmt.Errorf(`$ref %q: only references such as "#/$defs/name" are followed`, wording.Clip(ref))
	}
	switch cost, known := c.cost[ref]; {
	case cost == -1: // recursive: as deep as the value, which is bounded
		return 1, nil
	case known:
		return cost, nil
	}
	at, ok := Pointer(c.doc, ref)
	if !ok {
		return 0, fmt.Errorf("$ref %q points to nothing", wording.Clip(ref))
	}
	c.cost[ref] = -1
	cost, err := c.count(at)
	c.cost[ref] = cost
	return cost, err
}

// InstanceType is the format of variables that name an instance type of a provider.
const InstanceType = "instance-type"

// HasFormat reports whether a format is anywhere in a schema.
func HasFormat(schema any, format string) bool {
	switch v := schema.(type) {
	case map[string]any:
		if v["format"] == format {
			return true
		}
		for _, below := range v {
			if HasFormat(below, format) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return HasFormat(item, format) })
	}
	return false
}

// MaxSchemaSteps bounds a schema of variables once its references are followed.
const MaxSchemaSteps = 100_000

const maxPattern = 1_000 // bytes of a regular expression in a schema
