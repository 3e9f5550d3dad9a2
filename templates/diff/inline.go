package diff

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/templates/schema"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// inlineSchema copies a schema with its references replaced by what they refer
// to; one that is inside of what it refers to stays. compileSchema has bounded
// how much that can be.
func inlineSchema(doc map[string]any) map[string]any {
	i := &inliner{doc: doc, left: 10 * schema.MaxSchemaSteps, active: map[string]bool{}}
	return schemaMap(i.inline(doc, false))
}

type inliner struct {
	doc    map[string]any
	left   int // of the steps that may be taken
	active map[string]bool
}

// inline copies v; names says that v maps names to schemas.
func (i *inliner) inline(v any, names bool) any {
	if i.left--; i.left < 0 {
		return v
	}
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for at, item := range v {
			out[at] = i.inline(item, false)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch {
			case !names && key == "$defs" && len(i.active) == 0: // kept where it is referred to
			case !names && isValueKeyword(key):
				out[key] = v[key]
			default:
				below := !names && slices.Contains([]string{"properties", "patternProperties", "dependentSchemas", "$defs"}, key)
				out[key] = i.inline(v[key], below)
			}
		}
		if ref, ok := v["$ref"].(string); ok && !names {
			return i.follow(ref, out)
		}
		return out
	}
	return v
}

// follow puts what ref refers to next to what else the schema says.
func (i *inliner) follow(ref string, rest map[string]any) any {
	target, ok := schema.Pointer(i.doc, ref)
	if !ok || i.active[ref] {
		return rest
	}
	i.active[ref] = true
	defer delete(i.active, ref)
	found := schemaMap(i.inline(target, false))
	delete(rest, "$ref")
	for key, v := range rest {
		if other, both := found[key]; both && wording.Canonical(other) != wording.Canonical(v) && !slices.Contains(annotationKeywords(), key) {
			all, _ := rest["allOf"].([]any)
			rest["allOf"] = append(slices.Clone(all), found) // both hold
			return rest
		}
	}
	out := maps.Clone(found)
	maps.Copy(out, rest)
	return out
}
