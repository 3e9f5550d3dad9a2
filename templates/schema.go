package templates

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

	"github.com/holdfast-dev/holdfast"
)

// schema is what a template says of its variables. It is immutable and safe for
// concurrent use.
type schema struct {
	doc        map[string]any // as it was written
	properties map[string]any
	required   []string
	open       bool              // variables that are not among the properties are allowed
	secrets    map[string]bool   // variables whose values are references
	defaults   map[string]any    // of variables, those of secrets aside
	shapes     map[string]*shape // of variables
	names      []string          // of variables, sorted
	patterns   map[string]int    // sizes of regular expressions

	secretDefaults map[string]any // references, by variable
}

// declared are the variables that the root module declares. Others, which an
// open schema allows, are of use to rules only: the engine warns about them in
// every plan.
func (s *schema) declared(variables map[string]any) map[string]any {
	if !s.open {
		return variables
	}
	out := maps.Clone(variables)
	maps.DeleteFunc(out, func(name string, _ any) bool { return s.properties[name] == nil })
	return out
}

const schemaURL = "holdfast:///variables"

// newSchema reads what is declared, whether or not it can be compiled.
func newSchema(doc map[string]any) *schema {
	s := &schema{
		doc: doc, properties: map[string]any{}, secrets: map[string]bool{},
		defaults: map[string]any{}, secretDefaults: map[string]any{}, shapes: map[string]*shape{}, patterns: map[string]int{},
	}
	if properties, ok := doc["properties"].(map[string]any); ok {
		s.properties = properties
	}
	s.names = slices.Sorted(maps.Keys(s.properties))
	s.required = requiredOf(doc)
	additional, said := doc["additionalProperties"]
	_, patterns := doc["patternProperties"]
	s.open = patterns || said && additional != false
	shapes := newShaper(doc)
	for _, name := range s.names {
		s.shapes[name] = shapes.shape(s.properties[name])
		property, _ := s.properties[name].(map[string]any)
		if mark, _ := property["writeOnly"].(bool); mark {
			s.secrets[name] = true
			if ref := property["default"]; ref != nil {
				s.secretDefaults[name] = ref
			}
		} else if fallback, ok := property["default"]; ok {
			s.defaults[name] = fallback
		}
	}
	return s
}

// compileSchema compiles a JSON Schema 2020-12 for a provider that allows these
// instance types. References stay inside it, and what it costs to follow them
// is bounded. Of a secret variable nothing is checked: its value is elsewhere.
func compileSchema(s *schema, types *instanceTypes) (*jsonschema.Compiler, error) {
	doc := rewriteSchema(s.doc, nil, func(at []string, schema map[string]any) any {
		if len(at) == 2 && at[0] == "properties" && s.secrets[at[1]] {
			return map[string]any{}
		}
		if format, ok := schema["format"].(string); ok && format != formatOfInstanceTypes {
			delete(schema, "format") // an annotation, in this version of JSON Schema
		}
		return schema
	})
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	if types != nil {
		compiler.AssertFormat()
		compiler.RegisterFormat(&jsonschema.Format{Name: formatOfInstanceTypes, Validate: types.validate})
	}
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return compiler, nil
}

// compile returns a schema that checks variables for a provider that allows
// these instance types; nil allows any.
func (s *schema) compile(types *instanceTypes) (*providerSchema, error) {
	if err := checkSchema(s.doc); err != nil {
		return nil, err
	}
	if err := s.measurePatterns(s.doc); err != nil {
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
	return &providerSchema{schema: s, whole: compiled, types: types, compiler: compiler}, nil
}

func pointerWord(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

func unpointerWord(word string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
}

// providerSchema is a schema with what one provider allows.
type providerSchema struct {
	*schema
	whole    *jsonschema.Schema
	types    *instanceTypes
	compiler *jsonschema.Compiler // while the template is read: see variable
}

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

// hint says what is allowed instead of word: names as they were written, which
// is an author's order, then those that stand for families.
func (t *instanceTypes) hint(word string) string {
	names := slices.DeleteFunc(slices.Clone(t.patterns), func(pattern string) bool { return !t.exact[pattern] })
	allowed := oneInOrder(slices.Concat(names, t.globs))
	if near := holdfast.Nearest(word, t.patterns); near != "" {
		return fmt.Sprintf("did you mean %q? %s", near, allowed)
	}
	return allowed
}

// schemaFault is what makes a schema one that cannot be used.
type schemaFault struct {
	path []string // of what is wrong, from the schema
	text string
}

func (e *schemaFault) Error() string { return e.text }

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
	return &schemaFault{
		path: leaf.InstanceLocation,
		text: fmt.Sprintf("at /%s: %s", strings.Join(leaf.InstanceLocation, "/"), leaf.ErrorKind.LocalizedString(printer())),
	}
}

func printer() *message.Printer { return message.NewPrinter(language.English) }

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %q: a variable schema refers to nothing outside itself", clip(url))
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
	if err == nil && cost > maxSchemaSteps {
		err = errors.New("it takes too many steps to check: fewer $ref, allOf, anyOf")
	}
	return err
}

func (c *schemaCheck) count(v any) (int, error) {
	total := 1
	add := func(child any) error {
		n, err := c.count(child)
		total = min(total+n, maxSchemaSteps+1)
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
				total = min(total+n, maxSchemaSteps+1)
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
		return fmt.Errorf("$schema %q: only https://json-schema.org/draft/2020-12/schema is known", clip(text))
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
		return 0, fmt.Errorf(`$ref %q: only references such as "#/$defs/name" are followed`, clip(ref))
	}
	switch cost, known := c.cost[ref]; {
	case cost == -1: // recursive: as deep as the value, which is bounded
		return 1, nil
	case known:
		return cost, nil
	}
	at, ok := pointer(c.doc, ref)
	if !ok {
		return 0, fmt.Errorf("$ref %q points to nothing", clip(ref))
	}
	c.cost[ref] = -1
	cost, err := c.count(at)
	c.cost[ref] = cost
	return cost, err
}
