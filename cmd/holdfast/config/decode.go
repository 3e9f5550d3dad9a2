package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/nearest"
)

// decoder reads a YAML document into a Config and remembers where each key is, so that
// later checks can point there.
type decoder struct {
	file   string
	faults holdfast.Faults
	where  map[string]*yaml.Node // by path, such as repositories[0].url
}

func (d *decoder) add(at *yaml.Node, path, message, hint string) {
	fault := holdfast.Fault{File: d.file, Message: message, Hint: hint}
	if path != "" {
		fault.Message = path + ": " + message
	}
	if at != nil {
		fault.Line, fault.Column = at.Line, at.Column
	}
	d.faults = append(d.faults, fault)
}

var durationType = reflect.TypeFor[time.Duration]()

// decode sets v from node, faults for what does not fit.
func (d *decoder) decode(node *yaml.Node, path string, v reflect.Value) {
	if node.Kind == yaml.AliasNode {
		d.add(node, path, "aliases are not supported here", "write the value out")
		return
	}
	d.where[path] = node
	switch {
	case v.Type() == durationType:
		d.duration(node, path, v)
	case v.Type() == sizeType:
		d.size(node, path, v)
	case v.Kind() == reflect.Struct:
		d.structure(node, path, v)
	case v.Kind() == reflect.Slice:
		d.sequence(node, path, v)
	case v.Kind() == reflect.Map:
		d.mapping(node, path, v)
	default:
		d.scalar(node, path, v)
	}
}

func (d *decoder) structure(node *yaml.Node, path string, v reflect.Value) {
	if !d.is(node, path, yaml.MappingNode, "a mapping") {
		return
	}
	fields := fieldsOf(v.Type())
	for key, value := range d.pairs(node, path) {
		i, ok := fields[key.Value]
		if !ok {
			d.add(key, path, fmt.Sprintf("unknown key %q", key.Value), suggest(key.Value, fields))
			continue
		}
		if value.Tag != "!!null" {
			d.decode(value, join(path, key.Value), v.FieldByIndex(i))
		}
	}
}

func (d *decoder) mapping(node *yaml.Node, path string, v reflect.Value) {
	if !d.is(node, path, yaml.MappingNode, "a mapping") {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for key, value := range d.pairs(node, path) {
		elem := reflect.New(v.Type().Elem()).Elem()
		d.decode(value, join(path, key.Value), elem)
		v.SetMapIndex(reflect.ValueOf(key.Value), elem)
	}
}

// pairs yields keys and values of a mapping; a key that comes twice is a fault.
func (d *decoder) pairs(node *yaml.Node, path string) func(func(k, v *yaml.Node) bool) {
	return func(yield func(k, v *yaml.Node) bool) {
		seen := make(map[string]bool)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			if seen[key.Value] {
				d.add(key, path, fmt.Sprintf("key %q is given twice", key.Value), "")
				continue
			}
			seen[key.Value] = true
			if !yield(key, node.Content[i+1]) {
				return
			}
		}
	}
}

func (d *decoder) sequence(node *yaml.Node, path string, v reflect.Value) {
	if !d.is(node, path, yaml.SequenceNode, "a list") {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(node.Content), len(node.Content)))
	for i, item := range node.Content {
		elem := v.Index(i)
		setDefaults(elem)
		d.decode(item, fmt.Sprintf("%s[%d]", path, i), elem)
	}
}

func (d *decoder) duration(node *yaml.Node, path string, v reflect.Value) {
	if !d.is(node, path, yaml.ScalarNode, "a duration such as 30s or 5m") {
		return
	}
	parsed, err := time.ParseDuration(node.Value)
	if err != nil || parsed < 0 {
		d.add(node, path, fmt.Sprintf("%q is not a duration", node.Value), "such as 30s, 5m or 2h")
		return
	}
	v.SetInt(int64(parsed))
}

func (d *decoder) scalar(node *yaml.Node, path string, v reflect.Value) {
	if !d.is(node, path, yaml.ScalarNode, "a single value") {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if node.Tag != "!!str" {
			d.add(node, path, fmt.Sprintf("%s must be text", node.Value), fmt.Sprintf("put it in quotes: %q", node.Value))
			return
		}
		v.SetString(node.Value)
	case reflect.Bool:
		if node.Tag != "!!bool" {
			d.add(node, path, fmt.Sprintf("%q must be true or false", node.Value), "")
			return
		}
		v.SetBool(node.Value == "true" || node.Value == "True" || node.Value == "TRUE")
	case reflect.Float64:
		n, err := strconv.ParseFloat(node.Value, 64)
		if node.Tag != "!!int" && node.Tag != "!!float" || err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			d.add(node, path, fmt.Sprintf("%q must be a number", node.Value), "")
			return
		}
		v.SetFloat(n)
	default:
		n, err := strconv.ParseInt(node.Value, 10, 64)
		if node.Tag != "!!int" || err != nil || v.OverflowInt(n) || n > math.MaxInt32 && v.Kind() == reflect.Int {
			d.add(node, path, fmt.Sprintf("%q must be a whole number", node.Value), "")
			return
		}
		v.SetInt(n)
	}
}

func (d *decoder) is(node *yaml.Node, path string, kind yaml.Kind, word string) bool {
	if node.Kind != kind {
		d.add(node, path, "must be "+word, "")
	}
	return node.Kind == kind
}

func fieldsOf(t reflect.Type) map[string][]int {
	fields := make(map[string][]int, t.NumField())
	for _, field := range reflect.VisibleFields(t) { // those of embedded structs, too
		if key := field.Tag.Get("yaml"); key != "" {
			fields[key] = field.Index
		}
	}
	return fields
}

// setDefaults fills in the default tags of v and of the structs in it.
func setDefaults(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		field, tag := v.Field(i), v.Type().Field(i).Tag
		if field.Kind() == reflect.Struct {
			setDefaults(field)
			continue
		}
		text, ok := tag.Lookup("default")
		if !ok {
			continue
		}
		if field.Kind() == reflect.String {
			field.SetString(text)
			continue
		}
		var node yaml.Node
		d := &decoder{where: make(map[string]*yaml.Node)}
		if err := yaml.Unmarshal([]byte(text), &node); err != nil || len(node.Content) != 1 {
			panic("config: bad default tag " + text) // a mistake in this package, found by its first test
		}
		d.decode(node.Content[0], "", field)
		if len(d.faults) > 0 {
			panic("config: bad default tag " + text)
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// suggest names the known key that is nearest to word, if one is near.
func suggest(word string, fields map[string][]int) string {
	if best := nearest.Of(word, sortedKeys(fields)); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return fmt.Sprintf("known here: %v", sortedKeys(fields))
}

func sortedKeys(fields map[string][]int) []string {
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
