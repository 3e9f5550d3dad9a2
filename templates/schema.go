package templates

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/holdfast-dev/holdfast"
)

// schema is what a template says of its variables. It is safe for concurrent
// use.
type schema struct {
	compiled   *jsonschema.Schema // nil accepts nothing
	properties map[string]any
	required   []string
	open       bool // variables that are not among the properties are allowed
}

const schemaURL = "holdfast:///variables"

// compileSchema compiles a JSON Schema 2020-12. References stay inside it, and
// what it costs to follow them is bounded.
func compileSchema(doc map[string]any) (*schema, error) {
	s := &schema{properties: map[string]any{}}
	if err := checkSchema(doc); err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, schemaError(err)
	}
	s.compiled = compiled
	if properties, ok := doc["properties"].(map[string]any); ok {
		s.properties = properties
	}
	if required, ok := doc["required"].([]any); ok {
		for _, name := range required {
			if name, ok := name.(string); ok {
				s.required = append(s.required, name)
			}
		}
	}
	additional, said := doc["additionalProperties"]
	_, patterns := doc["patternProperties"]
	s.open = patterns || said && additional != false
	return s, nil
}

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
	return fmt.Errorf("at /%s: %s", strings.Join(leaf.InstanceLocation, "/"), leaf.ErrorKind.LocalizedString(printer()))
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
	var at any = c.doc
	for word := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		word = strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
		switch v := at.(type) {
		case map[string]any:
			at = v[word]
		case []any:
			i, err := strconv.Atoi(word)
			if err != nil || i < 0 || i >= len(v) {
				return 0, fmt.Errorf("$ref %q points to nothing", clip(ref))
			}
			at = v[i]
		default:
			at = nil
		}
		if at == nil {
			return 0, fmt.Errorf("$ref %q points to nothing", clip(ref))
		}
	}
	c.cost[ref] = -1
	cost, err := c.count(at)
	c.cost[ref] = cost
	return cost, err
}

// violation is one way in which variables do not fit.
type violation struct {
	path    []string // of the value, from the variables' root
	key     bool     // it is about the key, not the value
	message string
	hint    string
}

// validate returns all violations, in order of their paths.
func (s *schema) validate(variables map[string]any) []violation {
	var out []violation
	names := slices.Sorted(maps.Keys(s.properties))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if _, ok := s.properties[name]; !ok && !s.open {
			out = append(out, violation{
				path: []string{name}, key: true,
				message: fmt.Sprintf("unknown variable %q", clip(name)),
				hint:    didYouMean(name, names),
			})
		}
	}
	if s.compiled == nil {
		return out
	}
	err := s.compiled.Validate(variables)
	var verr *jsonschema.ValidationError
	if errors.As(err, &verr) {
		out = append(out, s.flatten(verr, variables)...)
	} else if err != nil {
		out = append(out, violation{message: "variables cannot be checked: " + err.Error()})
	}
	slices.SortStableFunc(out, func(a, b violation) int { return slices.Compare(a.path, b.path) })
	return slices.CompactFunc(out, func(a, b violation) bool {
		return slices.Equal(a.path, b.path) && a.message == b.message
	})
}

// flatten returns the leaves of a tree of errors. Alternatives of which none
// fits are one violation: each of them by itself would be a wrong word.
func (s *schema) flatten(e *jsonschema.ValidationError, variables map[string]any) []violation {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		var ways []string
		for _, cause := range e.Causes {
			for _, v := range s.flatten(cause, variables) {
				if !slices.Contains(ways, v.message) {
					ways = append(ways, v.message)
				}
			}
		}
		return []violation{{
			path:    e.InstanceLocation,
			message: label(e.InstanceLocation) + " fits none of the alternatives",
			hint:    strings.Join(ways[:min(len(ways), 4)], "; or "),
		}}
	}
	if len(e.Causes) > 0 {
		var out []violation
		for _, cause := range e.Causes {
			out = append(out, s.flatten(cause, variables)...)
		}
		return out
	}
	return s.leaf(e)
}

func label(path []string) string {
	if len(path) == 0 {
		return "spec.variables"
	}
	return "variable " + strings.Join(path, ".")
}

func (s *schema) leaf(e *jsonschema.ValidationError) []violation {
	name := label(e.InstanceLocation)
	secret := s.sensitive(e.InstanceLocation)
	got := func(v any) string {
		if secret {
			return "a sensitive value"
		}
		text, err := json.Marshal(v)
		if err != nil {
			return "a value"
		}
		return clip(string(text))
	}
	one := func(message, hint string) []violation {
		return []violation{{path: e.InstanceLocation, message: message, hint: hint}}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return one(fmt.Sprintf("%s must be %s, not %s", name, article(k.Want), k.Got), typeHint(k))
	case *kind.Enum:
		var allowed []string
		for _, v := range k.Want {
			allowed = append(allowed, fmt.Sprint(v))
		}
		hint := oneOf(allowed)
		if text, ok := k.Got.(string); ok && holdfast.Nearest(text, allowed) != "" {
			hint = didYouMean(text, allowed) + " " + hint
		}
		return one(fmt.Sprintf("%s is %s", name, got(k.Got)), hint)
	case *kind.Required:
		return one(fmt.Sprintf("%s has no %s", name, strings.Join(k.Missing, ", ")), "the template requires it")
	case *kind.DependentRequired:
		return one(fmt.Sprintf("%s has %s and no %s", name, k.Prop, strings.Join(k.Missing, ", ")), "the template requires one with the other")
	case *kind.AdditionalProperties:
		return s.additional(e.InstanceLocation, k.Properties)
	case *kind.Minimum:
		return one(fmt.Sprintf("%s must be at least %s, not %s", name, k.Want.RatString(), ratText(secret, k.Got.RatString())), "")
	case *kind.Maximum:
		return one(fmt.Sprintf("%s must be at most %s, not %s", name, k.Want.RatString(), ratText(secret, k.Got.RatString())), "")
	case *kind.Pattern:
		return one(fmt.Sprintf("%s is %s", name, got(k.Got)), "it must match "+k.Want)
	case *kind.FalseSchema:
		return one(name+" is not allowed here", "")
	}
	if secret {
		return one(name+" is not what the template allows", "")
	}
	return one(name+": "+clip(e.ErrorKind.LocalizedString(printer())), "")
}

func ratText(secret bool, text string) string {
	if secret {
		return "a sensitive value"
	}
	return text
}

func (s *schema) additional(path, names []string) []violation {
	if len(path) == 0 && !s.open {
		return nil // told as unknown variables already
	}
	var out []violation
	for _, name := range names {
		at := append(slices.Clone(path), name)
		out = append(out, violation{
			path: at, key: true,
			message: fmt.Sprintf("%s has no %q", label(path), clip(name)),
			hint:    didYouMean(name, slices.Collect(maps.Keys(s.fields(path)))),
		})
	}
	return out
}

// fields returns the properties of the schema at a path, as far as they are
// written there.
func (s *schema) fields(path []string) map[string]any {
	at := s.properties
	for _, word := range path {
		sub, _ := at[word].(map[string]any)
		at, _ = sub["properties"].(map[string]any)
	}
	return at
}

// sensitive reports whether the template marks the variable as writeOnly.
func (s *schema) sensitive(path []string) bool {
	if len(path) == 0 {
		return false
	}
	property, _ := s.properties[path[0]].(map[string]any)
	mark, _ := property["writeOnly"].(bool)
	return mark
}

func article(want []string) string {
	words := make([]string, len(want))
	for i, w := range want {
		switch w {
		case "integer", "array", "object":
			words[i] = "an " + w
		case "null":
			words[i] = w
		default:
			words[i] = "a " + w
		}
	}
	return strings.Join(words, " or ")
}

func typeHint(k *kind.Type) string {
	switch {
	case k.Got == "string" && slices.Contains(k.Want, "boolean"):
		return "write true or false, without quotes"
	case k.Got == "string" && (slices.Contains(k.Want, "integer") || slices.Contains(k.Want, "number")):
		return "write the number without quotes"
	case slices.Contains(k.Want, "string") && (k.Got == "number" || k.Got == "boolean"):
		return "put it in quotes"
	}
	return ""
}
