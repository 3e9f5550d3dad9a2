package diff

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/schema"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// variables compares the schemas of the variables, with references replaced by
// what they refer to.
func (d *differ) variables() {
	was, now := inlineSchema(d.from.Schema), inlineSchema(d.to.Schema)
	before, after := propertiesOf(was), propertiesOf(now)
	for _, name := range either(before, after) {
		about := "variable " + name
		_, had := before[name]
		property, has := after[name]
		switch {
		case !has:
			d.add(about, "is gone", true)
			continue
		case !had:
			d.newVariable(about, name, property, isOpen(was))
			continue
		}
		d.required(about, name)
		d.schema(about, schemaMap(before[name]), schemaMap(property))
	}
	switch open, opened := isOpen(was), isOpen(now); {
	case open && !opened:
		d.add("variables", "that are not declared are now refused", true)
	case !open && opened:
		d.add("variables", "that are not declared are now allowed", false)
	}
	for _, s := range []map[string]any{was, now} {
		for _, key := range []string{"properties", "required", "type", "description", "title", "default", "additionalProperties"} {
			delete(s, key) // reported above, or of no account for the whole
		}
	}
	d.schema("variables", was, now)
}

// isOpen reports whether variables that are not declared are allowed, with the
// restrictions of schema.open.
func isOpen(schema map[string]any) bool {
	additional, said := schema["additionalProperties"]
	_, patterns := schema["patternProperties"]
	return patterns || said && additional != false
}

func (d *differ) newVariable(about, name string, property any, wasOpen bool) {
	what := "is new, and optional"
	if fallback, ok := schemaMap(property)["default"]; ok {
		what = "is new, by default " + wording.JSON(fallback)
	}
	switch {
	case slices.Contains(d.to.Required, name) && !d.provided(name):
		d.add(about, "is new, and required", true)
	case wasOpen:
		d.add(about, "is now declared: any value was allowed before", true)
	default:
		d.add(about, what, false)
	}
}

// required compares whether a variable must be written.
func (d *differ) required(about, name string) {
	was := slices.Contains(d.from.Required, name)
	now := slices.Contains(d.to.Required, name)
	switch {
	case now && !was:
		d.add(about, "is now required", !d.provided(name))
	case was && !now:
		d.add(about, "is now optional", false)
	case now && filledIn(d.from.Schema, name) && !d.provided(name):
		d.add(about, "must now be set: it no longer has a default", true)
	}
}

// provided reports whether a variable that is required has a value without being
// written in a document of any provider that there was before.
func (d *differ) provided(name string) bool {
	if filledIn(d.to.Schema, name) {
		return true
	}
	known, before := 0, providersOf(d.from)
	for _, p := range d.to.Providers {
		if before[p.Name] == nil {
			continue
		}
		known++
		if _, ok := p.Defaults[name]; !ok {
			return false
		}
	}
	return known > 0
}

// filledIn reports whether the schema's default of a variable is there before the
// schema is asked: to JSON Schema a default is a note, and what is required must be
// written. The default place of a secret always applies.
func filledIn(schema map[string]any, name string) bool {
	property := schemaMap(propertiesOf(schema)[name])
	_, ok := property["default"]
	return ok && property["writeOnly"] == true
}

func propertiesOf(schema map[string]any) map[string]any {
	properties, _ := schema["properties"].(map[string]any)
	return properties
}

// schemaMap is a schema as a mapping: true is the empty one.
func schemaMap(schema any) map[string]any {
	switch s := schema.(type) {
	case map[string]any:
		return s
	case bool:
		if !s {
			return map[string]any{"not": map[string]any{}}
		}
	}
	return map[string]any{}
}

// schema compares what two schemas allow, from the outside in.
func (d *differ) schema(about string, was, now map[string]any) {
	secret, secretNow := was["writeOnly"] == true, now["writeOnly"] == true
	if secret != secretNow {
		d.add(about, map[bool]string{
			true:  "is now secret: documents must refer to it, not contain it",
			false: "is no longer secret: a document says its value",
		}[secretNow], true)
		return
	}
	d.annotations(about, was, now)
	if secret {
		return // its value is unknown, and is not checked
	}
	d.types(about, was, now)
	d.enums(about, was, now)
	for _, l := range limits() {
		d.limit(about, l, was, now)
	}
	d.patterns(about, was, now)
	d.objects(about, was, now)
	d.conditions(about, was, now)
}

func (d *differ) annotations(about string, was, now map[string]any) {
	before, had := was["default"]
	after, has := now["default"]
	switch {
	case had && !has:
		d.add(about, "no longer has a default; it was "+wording.JSON(before), false)
	case has && !had:
		d.add(about, "now defaults to "+wording.JSON(after), false)
	case wording.Canonical(before) != wording.Canonical(after):
		d.add(about, fmt.Sprintf("now defaults to %s, not %s", wording.JSON(after), wording.JSON(before)), false)
	}
	if was["description"] != now["description"] {
		d.add(about, "has a new description", false)
	}
}

func typesOf(schema map[string]any) []string {
	switch t := schema["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, item := range t {
			if s, ok := item.(string); ok {
				out = append(out, s)
			}
		}
		slices.Sort(out)
		return out
	}
	return nil
}

func (d *differ) types(about string, was, now map[string]any) {
	before, after := typesOf(was), typesOf(now)
	takes := func(types []string, t string) bool {
		return len(types) == 0 || slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number")
	}
	refused := slices.ContainsFunc(before, func(t string) bool { return !takes(after, t) })
	more := slices.ContainsFunc(after, func(t string) bool { return !takes(before, t) })
	switch {
	case slices.Equal(before, after):
	case len(after) == 0:
		d.add(about, "may now be of any type", false)
	case len(before) == 0:
		d.add(about, "must now be "+wording.Article(after), true)
	case refused:
		d.add(about, fmt.Sprintf("must now be %s, not %s", wording.Article(after), wording.Article(before)), true)
	case more:
		d.add(about, fmt.Sprintf("may now be %s, not only %s", wording.Article(after), wording.Article(before)), false)
	}
}

func (d *differ) enums(about string, was, now map[string]any) {
	list := func(schema map[string]any) ([]string, bool) {
		values, ok := schema["enum"].([]any)
		if fixed, is := schema["const"]; is {
			values, ok = []any{fixed}, true
		}
		out := make([]string, len(values))
		for i, v := range values {
			out[i] = wording.Canonical(v)
		}
		return out, ok
	}
	before, had := list(was)
	after, has := list(now)
	switch {
	case !had && !has:
	case !has:
		d.add(about, "may now have other values than "+wording.Clip(some(before)), false)
	case !had:
		d.add(about, "now allows only "+wording.Clip(some(after)), true)
	default:
		if gone := without(before, after); len(gone) > 0 {
			d.add(about, "no longer allows "+wording.Clip(some(gone)), true)
		}
		if more := without(after, before); len(more) > 0 {
			d.add(about, "allows "+wording.Clip(some(more))+", too", false)
		}
	}
}

// schemaLimit is a keyword that bounds a value from one side.
type schemaLimit struct {
	keyword string
	lower   bool   // a greater number allows less
	words   string // with the number
}

func limits() []schemaLimit {
	return []schemaLimit{
		{"minimum", true, "must be at least %s"},
		{"exclusiveMinimum", true, "must be more than %s"},
		{"maximum", false, "allows at most %s"},
		{"exclusiveMaximum", false, "must be less than %s"},
		{"minLength", true, "needs at least %s characters"},
		{"maxLength", false, "allows at most %s characters"},
		{"minItems", true, "needs at least %s items"},
		{"maxItems", false, "allows at most %s items"},
		{"minProperties", true, "needs at least %s entries"},
		{"maxProperties", false, "allows at most %s entries"},
		{"minContains", true, "needs at least %s items of a kind"},
		{"maxContains", false, "allows at most %s items of a kind"},
	}
}

func (d *differ) limit(about string, l schemaLimit, was, now map[string]any) {
	before, after := rational(was[l.keyword]), rational(now[l.keyword])
	switch {
	case before == nil && after == nil:
	case after == nil:
		d.add(about, "is free of the limit: "+fmt.Sprintf(l.words, wording.JSON(was[l.keyword])), false)
	case before == nil:
		d.add(about, sinceNow(fmt.Sprintf(l.words, wording.JSON(now[l.keyword]))), true)
	case before.Cmp(after) != 0:
		d.add(about, fmt.Sprintf(l.words, wording.JSON(now[l.keyword]))+", not "+wording.JSON(was[l.keyword]), (after.Cmp(before) > 0) == l.lower)
	}
}

// sinceNow says of a limit that it is new: "must now be at least 3", "now allows at most 3".
func sinceNow(words string) string {
	if rest, ok := strings.CutPrefix(words, "must "); ok {
		return "must now " + rest
	}
	return "now " + words
}

// rational is a number of a schema, nil if it is not one.
func rational(v any) *big.Rat {
	text := wording.Canonical(v)
	if v == nil || len(text) > decode.MaxDigits {
		return nil
	}
	// A number with a large exponent is short, and huge when written out.
	if f, err := strconv.ParseFloat(text, 64); err != nil || f > 1e30 || f < -1e30 {
		return nil
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return n
}

// patterns compares only what is certain to be the same.
func (d *differ) patterns(about string, was, now map[string]any) {
	before, had := was["pattern"].(string)
	after, has := now["pattern"].(string)
	switch {
	case before == after && had == has:
	case !has:
		d.add(about, "no longer has to match "+wording.Clip(before), false)
	case !had:
		d.add(about, "must now match "+wording.Clip(after), true)
	default:
		d.add(about, fmt.Sprintf("must match %s, not %s", wording.Clip(after), wording.Clip(before)), true)
	}
	if before, after := was["format"] == schema.InstanceType, now["format"] == schema.InstanceType; before && !after {
		d.add(about, "no longer has to be an instance type", false)
	} else if after && !before {
		limited := slices.ContainsFunc(d.to.Providers, func(p templates.ProviderBlueprint) bool { return len(p.InstanceTypes) > 0 })
		d.add(about, "must now be an instance type", limited)
	}
	step, stepNow := rational(was["multipleOf"]), rational(now["multipleOf"])
	switch {
	case stepNow == nil && step != nil:
		d.add(about, "no longer has to be a multiple of "+wording.JSON(was["multipleOf"]), false)
	case stepNow == nil || step != nil && step.Cmp(stepNow) == 0:
	default:
		wider := step != nil && stepNow.Sign() != 0 && new(big.Rat).Quo(step, stepNow).IsInt()
		d.add(about, "must now be a multiple of "+wording.JSON(now["multipleOf"]), !wider)
	}
	if unique, uniqueNow := was["uniqueItems"] == true, now["uniqueItems"] == true; uniqueNow && !unique {
		d.add(about, "may no longer have an item twice", true)
	} else if unique && !uniqueNow {
		d.add(about, "may now have an item twice", false)
	}
}

// objects compares the parts of lists and mappings.
func (d *differ) objects(about string, was, now map[string]any) {
	before, after := propertiesOf(was), propertiesOf(now)
	needed, neededNow := schema.RequiredOf(was), schema.RequiredOf(now)
	closedNow := now["additionalProperties"] == false
	for _, name := range either(before, after) {
		below := about + "." + name
		_, had := before[name]
		_, has := after[name]
		switch {
		case !has:
			d.add(below, "is gone", closedNow)
			continue
		case !had && slices.Contains(neededNow, name):
			d.add(below, "is new, and required", true)
			continue
		case !had:
			additional, said := was["additionalProperties"]
			d.add(below, "is new, and optional", said && additional != false)
			continue
		}
		d.schema(below, schemaMap(before[name]), schemaMap(after[name]))
	}
	for _, name := range without(neededNow, needed) {
		if _, isNew := after[name]; !isNew || before[name] != nil {
			d.add(about+"."+name, "is now required", true)
		}
	}
	for _, name := range without(needed, neededNow) {
		if _, has := after[name]; has {
			d.add(about+"."+name, "is now optional", false)
		}
	}
	d.parts(about, was, now)
}

// parts compares what applies to all items, and to all entries without their own name.
func (d *differ) parts(about string, was, now map[string]any) {
	switch closed, closedNow := was["additionalProperties"] == false, now["additionalProperties"] == false; {
	case closedNow && !closed:
		d.add(about, "now refuses entries that are not declared", true)
	case closed && !closedNow:
		d.add(about, "now allows entries that are not declared", false)
	case !closed && (was["additionalProperties"] != nil || now["additionalProperties"] != nil):
		d.schema(about+".*", schemaMap(was["additionalProperties"]), schemaMap(now["additionalProperties"]))
	}
	_, had := was["items"]
	_, has := now["items"]
	if had || has {
		d.schema(about+"[]", schemaMap(was["items"]), schemaMap(now["items"]))
	}
}

// conditions compares the keywords whose effect on documents nobody can tell by
// looking: that one is gone allows more, any other change may allow less.
func (d *differ) conditions(about string, was, now map[string]any) {
	have := "has"
	if about == "variables" {
		have = "have"
	}
	for _, c := range []struct {
		words    string
		anyway   bool // that it is gone may allow less, too
		keywords []string
	}{
		{words: "allOf", keywords: []string{"allOf"}},
		{words: "anyOf", keywords: []string{"anyOf"}},
		{words: "oneOf", keywords: []string{"oneOf"}},
		{words: "not", keywords: []string{"not"}},
		{words: "$ref", keywords: []string{"$ref"}}, // of a schema inside of what it refers to
		{words: "if/then/else", keywords: []string{"if", "then", "else"}},
		{words: "dependentRequired", keywords: []string{"dependentRequired"}},
		{words: "dependentSchemas", keywords: []string{"dependentSchemas"}},
		{words: "propertyNames", keywords: []string{"propertyNames"}},
		{words: "contains", keywords: []string{"contains"}},
		{words: "prefixItems", anyway: true, keywords: []string{"prefixItems"}},
		{words: "patternProperties", anyway: true, keywords: []string{"patternProperties"}},
		{words: "unevaluatedProperties", keywords: []string{"unevaluatedProperties"}},
		{words: "unevaluatedItems", keywords: []string{"unevaluatedItems"}},
	} {
		pick := func(schema map[string]any) (string, bool) {
			out := map[string]any{}
			for _, key := range c.keywords {
				if v, ok := schema[key]; ok {
					out[key] = plainSchema(key, v)
				}
			}
			return wording.Canonical(out), len(out) > 0
		}
		before, had := pick(was)
		after, has := pick(now)
		switch {
		case before == after:
		case !has:
			d.add(about, "no longer "+have+" a condition in "+c.words, c.anyway)
		case !had:
			d.add(about, have+" a new condition, in "+c.words, true)
		default:
			d.add(about, have+" a different condition in "+c.words, true)
		}
	}
}

// plainSchema is a keyword's value without what is there for people only.
func plainSchema(keyword string, v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plainSchema(keyword, item)
		}
		return out
	case map[string]any:
		names := slices.Contains([]string{"properties", "patternProperties", "dependentSchemas", "dependentRequired", "$defs"}, keyword)
		out := make(map[string]any, len(v))
		for key, value := range v {
			switch {
			case names:
				out[key] = plainSchema("", value)
			case slices.Contains(annotationKeywords(), key):
			case isValueKeyword(key):
				out[key] = value
			default:
				out[key] = plainSchema(key, value)
			}
		}
		return out
	}
	return v
}

func annotationKeywords() []string {
	return []string{"title", "description", "default", "examples", "deprecated", "readOnly", "$comment", "$defs"}
}

// isValueKeyword reports whether a keyword has values below it, not schemas.
func isValueKeyword(key string) bool {
	return slices.Contains([]string{"default", "enum", "const", "examples"}, key)
}
