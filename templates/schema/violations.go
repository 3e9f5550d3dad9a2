package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

const maxViolations = 100 // that are reported about one document

// Violation is one way in which variables do not fit.
type Violation struct {
	Path    []string // of the value, from the variables' root
	Key     bool     // it is about the key, not the value
	Message string
	Hint    string
	missing []string // what the template requires, and the message ends with
	meant   string   // the variable that an unknown one probably is; empty: none

	conditional bool // other variables decide whether this one is refused
}

// Validate returns all violations, in order of their paths. variables are those
// that are not secret; given are the secret ones that are there.
func (s *Checker) Validate(variables map[string]any, given []string) []Violation {
	var out []Violation
	var meant []string // by names that are misspelt
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if _, ok := s.Properties[name]; !ok && !s.Open {
			meant = append(meant, nearest.Of(name, s.Names))
			out = append(out, Violation{
				Path: []string{name}, Key: true, meant: nearest.Of(name, s.Names),
				Message: fmt.Sprintf("unknown variable %q", wording.Clip(name)),
				Hint:    wording.DidYouMean(name, s.Names),
			})
		}
	}
	if len(given) > 0 {
		variables = maps.Clone(variables)
		for _, name := range given {
			variables[name] = "" // it is there; what it is, nobody knows
		}
	}
	for _, v := range s.violations(s.whole, variables) {
		if v.without(meant) {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b Violation) int { return comparePaths(a.Path, b.Path) })
	out = slices.CompactFunc(out, Violation.equal)
	return out[:min(len(out), maxViolations)]
}

// without leaves out what is missing because its name is misspelt, which is reported
// already. It reports whether anything is left.
func (v *Violation) without(meant []string) bool {
	if len(v.missing) == 0 || len(v.Path) > 0 {
		return true
	}
	left := slices.DeleteFunc(slices.Clone(v.missing), func(name string) bool { return slices.Contains(meant, name) })
	v.Message = strings.TrimSuffix(v.Message, strings.Join(v.missing, ", ")) + strings.Join(left, ", ")
	v.missing = left
	return len(left) > 0
}

func (s *Checker) violations(compiled *jsonschema.Schema, value any) []Violation {
	if !s.affordable(s.Doc, value) {
		return []Violation{{Message: "spec.variables are too large for the template's schema", Hint: tooLarge}}
	}
	err := compiled.Validate(value)
	var verr *jsonschema.ValidationError
	if errors.As(err, &verr) {
		return s.flatten(verr)
	} else if err != nil {
		return []Violation{{Message: "variables cannot be checked: " + err.Error()}}
	}
	return nil
}

// words says what is wrong at a leaf.
func (s *Checker) words(e *jsonschema.ValidationError) []Violation {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return []Violation{s.alternatives(e)}
	case *kind.PropertyNames:
		at := append(slices.Clone(e.InstanceLocation), k.Property)
		hint := ""
		for _, cause := range e.Causes {
			for _, v := range s.flatten(cause) {
				hint = v.Hint
			}
		}
		return []Violation{{
			Path: at, Key: true,
			Message: fmt.Sprintf("%s has the key %q, which is not allowed", label(e.InstanceLocation), wording.Clip(k.Property)), Hint: hint,
		}}
	}
	return s.leaf(e)
}

// alternatives is what is wrong with a value that fits none of anyOf or oneOf,
// or several of oneOf.
func (s *Checker) alternatives(e *jsonschema.ValidationError) Violation {
	v := Violation{Path: e.InstanceLocation, Message: label(e.InstanceLocation) + " fits none of the alternatives"}
	one, isOne := e.ErrorKind.(*kind.OneOf)
	several := isOne && len(one.Subschemas) > 0
	if several {
		v.Message = label(e.InstanceLocation) + " fits more than one of the alternatives"
	}
	var ways []string
	keyword := "anyOf"
	if isOne {
		keyword = "oneOf"
	}
	at, _ := s.written(e.SchemaURL).(map[string]any)
	list, _ := at[keyword].([]any)
	for _, item := range list {
		way, _ := item.(map[string]any)
		var fields []string
		required, _ := way["required"].([]any)
		for _, field := range required {
			fields = append(fields, plainValue(field))
		}
		if len(fields) == 0 || len(way) > 1 {
			ways = nil
			break
		}
		ways = append(ways, wording.Listed(fields))
	}
	switch {
	case ways != nil && several:
		v.Hint = "give one of these and not the other: " + strings.Join(ways, "; or ")
	case ways != nil:
		v.Hint = "give " + strings.Join(ways, "; or ")
	default:
		const most = 4
		for _, cause := range e.Causes {
			for _, inner := range s.flatten(cause) {
				word := inner.Message
				if strings.Contains(word, " is ") && inner.Hint != "" {
					word += ", " + inner.Hint // the message alone says no more than the value
				}
				if !slices.Contains(ways, word) && len(ways) < most {
					ways = append(ways, word)
				}
			}
			if len(ways) == most {
				break
			}
		}
		v.Hint = strings.Join(ways, "; or ")
	}
	return v
}

// written returns the schema at a location as it was written, nil if it is not
// there.
func (s *Checker) written(location string) any {
	fragment, ok := strings.CutPrefix(location, schemaURL)
	if !ok {
		return nil
	}
	if decoded, err := url.PathUnescape(fragment); err == nil {
		fragment = decoded
	}
	if fragment == "" {
		fragment = "#"
	}
	found, _ := Pointer(s.Doc, fragment)
	return found
}

func label(path []string) string {
	if len(path) == 0 {
		return "spec.variables"
	}
	return "variable " + strings.Join(path, ".")
}

func quotedValue(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "a value"
	}
	return wording.Clip(string(text))
}

// leaf says what is wrong at one place.
func (s *Checker) leaf(e *jsonschema.ValidationError) []Violation {
	v := Violation{Path: e.InstanceLocation}
	name := label(e.InstanceLocation)
	say := func(format string, args ...any) { v.Message = name + " " + fmt.Sprintf(format, args...) }
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		return s.additional(e, k.Properties)
	case *kind.Type:
		say("must be %s, not %s", wording.Article(k.Want), k.Got)
		v.Hint = typeHint(k)
	case *kind.Enum:
		say("is %s", s.quoted(e, k.Got))
		v.Hint = enumHint(k)
	case *kind.Const:
		say("is %s", s.quoted(e, k.Got))
		v.Hint = "the only one is " + plainValue(k.Want)
	case *kind.Format:
		say("is %s: not allowed for %s", s.quoted(e, k.Got), s.types.provider)
		word, _ := k.Got.(string)
		v.Hint = s.types.hint(word)
	case *kind.Required:
		say("has no %s", strings.Join(k.Missing, ", "))
		v.Hint, v.missing = "the template requires it", k.Missing
	case *kind.DependentRequired:
		say("has %s and no %s", k.Prop, strings.Join(k.Missing, ", "))
		v.Hint = "the template requires one with the other"
	case *kind.Pattern:
		say("is %s", s.quoted(e, k.Got))
		v.Hint = s.patternHint(e, k)
	case *kind.FalseSchema:
		if at := e.InstanceLocation; len(at) == 1 && !s.Open && s.Properties[at[0]] == nil {
			return nil // reported as an unknown variable already
		}
		say("is not allowed here")
		v.Key = true
	case *kind.Not:
		v.Message, v.Hint = s.not(e, name)
	default:
		if words := limitWords(e.ErrorKind); words != "" {
			say("%s", words)
		} else {
			v.Message = name + ": " + wording.Clip(e.ErrorKind.LocalizedString(printer()))
		}
	}
	if when := s.condition(e.SchemaURL); when != "" {
		v.Hint = strings.TrimPrefix(v.Hint+" "+when, " ")
	}
	return []Violation{v}
}

// quoted is a value in a message. That of a variable which is not declared is in
// none where there are secrets: it may be one whose name was misspelled.
func (s *Checker) quoted(e *jsonschema.ValidationError, v any) string {
	if at := e.InstanceLocation; len(s.Secrets) > 0 && (len(at) == 0 || s.Properties[at[0]] == nil) {
		return "not what it can be"
	}
	return quotedValue(v)
}

// limitWords says which limit a value does not keep.
func limitWords(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return fmt.Sprintf("must be at least %s, not %s", ratText(k.Want), ratText(k.Got))
	case *kind.Maximum:
		return fmt.Sprintf("must be at most %s, not %s", ratText(k.Want), ratText(k.Got))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("must be more than %s, not %s", ratText(k.Want), ratText(k.Got))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("must be less than %s, not %s", ratText(k.Want), ratText(k.Got))
	case *kind.MultipleOf:
		return fmt.Sprintf("must be a multiple of %s, not %s", ratText(k.Want), ratText(k.Got))
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %s, not %d", wording.Count(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s, not %d", wording.Count(k.Want, "character"), k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s, not %d", wording.Count(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s, not %d", wording.Count(k.Want, "item"), k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %s, not %d", wording.Count(k.Want, "key"), k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %s, not %d", wording.Count(k.Want, "key"), k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("has the same item twice, at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "has no item of the kind that the template requires"
	case *kind.MinContains:
		return fmt.Sprintf("must have at least %s of the kind that the template requires, not %d", wording.Count(k.Want, "item"), len(k.Got))
	case *kind.MaxContains:
		return fmt.Sprintf("must have at most %s of the kind that the template limits, not %d", wording.Count(k.Want, "item"), len(k.Got))
	}
	return ""
}

// ratText writes a number as people do.
func ratText(r *big.Rat) string {
	if r.IsInt() {
		return wording.Clip(r.Num().String())
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func plainValue(v any) string {
	if word, ok := v.(string); ok {
		return wording.Clip(word)
	}
	return quotedValue(v)
}

func enumHint(k *kind.Enum) string {
	var allowed []string
	for _, v := range k.Want {
		allowed = append(allowed, plainValue(v))
	}
	hint := wording.OneOf(allowed)
	if word, ok := k.Got.(string); ok && nearest.Of(word, allowed) != "" && len(allowed) > 1 {
		hint = wording.DidYouMean(word, allowed) + " " + hint
	}
	return hint
}

// patternHint says what would match, by example where the template has one.
func (s *Checker) patternHint(e *jsonschema.ValidationError, k *kind.Pattern) string {
	property, _ := s.written(e.SchemaURL).(map[string]any)
	if examples, _ := property["examples"].([]any); len(examples) > 0 {
		return fmt.Sprintf("such as %s; it must match %s", plainValue(examples[0]), k.Want)
	}
	if description, _ := property["description"].(string); description != "" {
		return fmt.Sprintf("%s; it must match %s", strings.TrimSuffix(wording.Clip(strings.TrimSpace(description)), "."), k.Want)
	}
	if fallback, ok := property["default"].(string); ok {
		return fmt.Sprintf("such as %s; it must match %s", wording.Clip(fallback), k.Want)
	}
	return "it must match " + k.Want
}

// not says what a value must not be, where that is no more than keys which do
// not go together.
func (s *Checker) not(e *jsonschema.ValidationError, name string) (message, hint string) {
	at, _ := s.written(e.SchemaURL).(map[string]any)
	refused, _ := at["not"].(map[string]any)
	if fields := RequiredOf(refused); len(refused) == 1 && len(fields) > 0 {
		if len(fields) == 1 {
			return name + " has " + fields[0], "the template does not allow it here"
		}
		return name + " has " + wording.Listed(fields), "the template does not allow them together"
	}
	values, _ := refused["enum"].([]any)
	if value, ok := refused["const"]; ok {
		values = []any{value}
	}
	if len(values) > 0 && len(refused) == 1 {
		var words []string
		for _, value := range values {
			words = append(words, plainValue(value))
		}
		return name + " is one of the values that the template does not allow", "anything but " + wording.Listed(words)
	}
	if words := conditionWords(refused); words != "" {
		return name + " is not what the template allows: " + words, ""
	}
	return name + " is not what the template allows", ""
}

// condition says when a schema holds that is behind a then, an else or a
// dependentSchemas, as far as that is simple.
func (s *Checker) condition(location string) string {
	_, fragment, _ := strings.Cut(location, "#")
	words := strings.Split(fragment, "/")
	for i := len(words) - 1; i > 0; i-- {
		base := schemaURL + "#" + strings.Join(words[:i], "/")
		at, _ := s.written(base).(map[string]any)
		switch words[i] {
		case "then":
			test, _ := at["if"].(map[string]any)
			if text := conditionWords(test); text != "" {
				return "when " + text
			}
		case "else":
			test, _ := at["if"].(map[string]any)
			if text := conditionWords(test); text != "" {
				return "unless " + text
			}
		case "dependentSchemas":
			if i+1 < len(words) {
				name, _ := url.PathUnescape(words[i+1])
				return "when " + name + " is given"
			}
		}
	}
	return ""
}

// conditionWords says what a simple schema asks of an object: "tier is gold and
// size is given". It is empty if the schema is not simple.
func conditionWords(test map[string]any) string {
	var words []string
	said := map[string]bool{}
	properties, _ := test["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any)
		value, ok := property["const"]
		if values, _ := property["enum"].([]any); len(values) == 1 && !ok {
			value, ok = values[0], true
		}
		if !ok || len(property) > 1 {
			return ""
		}
		said[name] = true
		words = append(words, name+" is "+plainValue(value))
	}
	for _, name := range RequiredOf(test) {
		if !said[name] {
			words = append(words, name+" is given")
		}
	}
	for key := range test {
		if key != "properties" && key != "required" {
			return ""
		}
	}
	return wording.Listed(words)
}

func (s *Checker) additional(e *jsonschema.ValidationError, names []string) []Violation {
	path := e.InstanceLocation
	if len(path) == 0 && !s.Open {
		return nil // reported as unknown variables already
	}
	at, _ := s.written(e.SchemaURL).(map[string]any)
	known, _ := at["properties"].(map[string]any)
	var out []Violation
	for _, name := range names {
		out = append(out, Violation{
			Path: append(slices.Clone(path), name), Key: true,
			Message: fmt.Sprintf("%s has no %q", label(path), wording.Clip(name)),
			Hint:    wording.DidYouMean(name, slices.Sorted(maps.Keys(known))),
		})
	}
	return out
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

// Variable returns what is wrong with a variable's value alone. Only whoever
// reads the template may call it.
func (s *Checker) Variable(name string, value any) []Violation {
	if !s.affordable(s.Properties[name], value) {
		return []Violation{{Path: []string{name}, Message: label([]string{name}) + " is too large for its schema", Hint: tooLarge}}
	}
	compiled, err := s.compiler.Compile(schemaURL + "#/properties/" + url.PathEscape(pointerWord(name)))
	if err != nil {
		return nil // the whole could be compiled: there is no such variable
	}
	var located func(e *jsonschema.ValidationError)
	located = func(e *jsonschema.ValidationError) {
		e.InstanceLocation = append([]string{name}, e.InstanceLocation...)
		for _, cause := range e.Causes {
			located(cause)
		}
	}
	var wrong *jsonschema.ValidationError
	if err := compiled.Validate(value); errors.As(err, &wrong) {
		located(wrong)
		return s.flatten(wrong)
	} else if err != nil {
		return []Violation{{Path: []string{name}, Message: label([]string{name}) + " cannot be checked"}}
	}
	return nil
}
