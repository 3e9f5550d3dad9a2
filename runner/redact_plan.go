package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// RedactPlanJSON returns a plan JSON without what is under sensitive marks,
// what is named like a secret, and what r knows. The values under the marks are
// added to r, since they may stand elsewhere unmarked. A nil r knows nothing.
func RedactPlanJSON(raw []byte, r *Redactor) ([]byte, error) {
	doc, err := decodeAny(raw)
	if err != nil {
		return nil, fmt.Errorf("redact plan: %w", err)
	}
	if r == nil {
		r = NewRedactor(nil)
	}
	v := markVisitor{mask: true}
	v.plan(doc)
	r.Add(v.secrets...)
	out, err := marshalJSON(r.value(doc))
	if err != nil {
		return nil, fmt.Errorf("redact plan: %w", err)
	}
	return out, nil
}

// SecretsOf returns the values of 8 characters or more under the sensitive
// marks of a plan JSON, sorted; none if it cannot be read.
func SecretsOf(planJSON []byte) []string {
	doc, err := decodeAny(planJSON)
	if err != nil {
		return nil
	}
	var v markVisitor
	v.plan(doc)
	slices.Sort(v.secrets)
	return slices.Compact(v.secrets)
}

func decodeAny(raw []byte) (map[string]any, error) {
	var doc map[string]any
	if err := decodeNumbers(raw, &doc); err != nil {
		return nil, jsonError(err)
	}
	return doc, nil
}

// decodeNumbers decodes JSON and keeps numbers as they are written.
func decodeNumbers(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(into)
}

// markVisitor visits what is marked as sensitive in a plan JSON.
type markVisitor struct {
	mask    bool // replace it
	secrets []string
}

func (v *markVisitor) plan(doc map[string]any) {
	for _, list := range []string{"resource_changes", "resource_drift"} {
		for _, rc := range itemsOf(doc[list]) {
			v.change(fieldOf(rc, "change"))
		}
	}
	for _, deferred := range itemsOf(doc["deferred_changes"]) {
		v.change(fieldOf(fieldOf(deferred, "resource_change"), "change"))
	}
	for _, name := range sortedKeys(doc["output_changes"]) {
		v.change(fieldOf(doc["output_changes"], name))
	}
	for _, action := range itemsOf(doc["action_invocations"]) {
		v.marked(action, "config_values", fieldOf(action, "config_sensitive"))
	}
	v.values(doc["planned_values"])
	v.values(fieldOf(doc["prior_state"], "values"))
	variables := fieldOf(fieldOf(fieldOf(doc, "configuration"), "root_module"), "variables")
	for _, name := range sortedKeys(doc["variables"]) {
		if fieldOf(fieldOf(variables, name), "sensitive") == true || secretName(name) {
			v.marked(fieldOf(doc["variables"], name), "value", true)
		}
	}
	for _, name := range sortedKeys(variables) {
		if variable := fieldOf(variables, name); fieldOf(variable, "sensitive") == true || secretName(name) {
			v.marked(variable, "default", true)
		}
	}
}

func (v *markVisitor) change(change any) {
	v.marked(change, "before", fieldOf(change, "before_sensitive"))
	v.marked(change, "after", fieldOf(change, "after_sensitive"))
}

// values visits the outputs and, module by module, the resources of a state.
func (v *markVisitor) values(values any) {
	for _, name := range sortedKeys(fieldOf(values, "outputs")) {
		output := fieldOf(fieldOf(values, "outputs"), name)
		v.marked(output, "value", fieldOf(output, "sensitive") == true)
	}
	v.module(fieldOf(values, "root_module"))
}

func (v *markVisitor) module(module any) {
	for _, resource := range itemsOf(fieldOf(module, "resources")) {
		v.marked(resource, "values", fieldOf(resource, "sensitive_values"))
	}
	for _, child := range itemsOf(fieldOf(module, "child_modules")) {
		v.module(child)
	}
}

// marked collects, and masks, what marks say of parent[key].
func (v *markVisitor) marked(parent any, key string, marks any) {
	object, ok := parent.(map[string]any)
	if !ok || object[key] == nil || !isMarked(marks) {
		return
	}
	v.collect(object[key], marks)
	if v.mask {
		object[key] = maskMarked(object[key], marks)
	}
}

func (v *markVisitor) collect(value, marks any) {
	switch val := value.(type) {
	case string:
		if marks == true && len(val) >= minSecret {
			v.secrets = append(v.secrets, val)
		}
	case json.Number:
		if marks == true && len(val) >= minSecret {
			v.secrets = append(v.secrets, val.String())
		}
	case map[string]any:
		for key, child := range val {
			v.collect(child, marksBelow(marks, func() any { return fieldOf(marks, key) }))
		}
	case []any:
		for i, child := range val {
			v.collect(child, marksBelow(marks, func() any { return itemOf(marks, i) }))
		}
	}
}

func marksBelow(marks any, at func() any) any {
	if marks == true {
		return true
	}
	return at()
}

// maskMarked is masked without a look at names.
func maskMarked(value, marks any) any {
	if marks == true {
		if value == nil {
			return nil
		}
		return sensitiveValue
	}
	switch val := value.(type) {
	case map[string]any:
		for key, child := range val {
			val[key] = maskMarked(child, fieldOf(marks, key))
		}
	case []any:
		for i, child := range val {
			val[i] = maskMarked(child, itemOf(marks, i))
		}
	}
	return value
}

func itemsOf(value any) []any {
	list, _ := value.([]any)
	return list
}

func sortedKeys(value any) []string {
	m, _ := value.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

// warningsIn returns the warnings in what an engine printed, with or without
// its frames.
func warningsIn(text string) []holdfast.Diagnostic {
	var found []holdfast.Diagnostic
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		summary, ok := strings.CutPrefix(unframed(lines[i]), "Warning: ")
		if !ok {
			continue
		}
		d := holdfast.Diagnostic{Severity: "warning", Summary: strings.TrimSpace(summary)}
		var detail []string
		for i++; i < len(lines) && !endsDiagnostic(lines[i]); i++ {
			line := unframed(lines[i])
			switch trimmed := strings.TrimSpace(line); {
			case strings.HasPrefix(line, "  with ") && strings.HasSuffix(line, ","):
				d.Address = strings.TrimSuffix(strings.TrimPrefix(line, "  with "), ",")
			case strings.HasPrefix(line, "  on ") && strings.HasSuffix(line, ":") && d.File == "":
				_, _ = fmt.Sscanf(line, "  on %s line %d", &d.File, &d.Line)
			case trimmed == "" && len(detail) > 0:
				detail = append(detail, "")
			case strings.HasPrefix(line, " ") && len(detail) == 0: // the source that it is about
			case trimmed != "":
				detail = append(detail, line)
			}
		}
		i--
		d.Detail = strings.TrimSpace(strings.Join(detail, "\n"))
		found = append(found, d)
	}
	return found
}

func unframed(line string) string {
	line = strings.TrimRight(line, "\r")
	if rest, ok := strings.CutPrefix(line, "│ "); ok {
		return rest
	}
	return strings.TrimPrefix(line, "│")
}

func endsDiagnostic(line string) bool {
	plain := unframed(line)
	return strings.HasPrefix(line, "╵") || strings.HasPrefix(line, "────") || strings.HasPrefix(plain, "Warning: ") ||
		strings.HasPrefix(plain, "Error: ") || strings.HasPrefix(plain, "Saved the plan to:") ||
		strings.HasPrefix(plain, "Plan: ") || strings.HasPrefix(plain, "Releasing state lock")
}
