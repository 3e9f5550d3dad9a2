package templates

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
)

// reader collects the faults of one document.
type reader struct {
	file    string
	cluster string
	faults  holdfast.Faults
}

func (r *reader) add(at *yaml.Node, message, hint string) {
	fault := holdfast.Fault{File: r.file, Cluster: r.cluster, Message: message, Hint: hint}
	if at != nil {
		fault.Line, fault.Column = at.Line, at.Column
	}
	r.put(fault)
}

func (r *reader) put(fault holdfast.Fault) {
	const most = 500 // names of keys are as long as their writer likes
	fault.Message, fault.Hint = visible(fault.Message), visible(fault.Hint)
	if len(fault.Message) > most {
		fault.Message = strings.ToValidUTF8(fault.Message[:most], "") + "…"
	}
	if len(fault.Hint) > most {
		fault.Hint = strings.ToValidUTF8(fault.Hint[:most], "") + "…"
	}
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, fault)
	}
}

// object reads a mapping key by key; what was not asked for is a fault in done.
// A nil mapping reads as empty.
type object struct {
	r     *reader
	path  string // such as "spec.template"; empty for the document
	node  *yaml.Node
	above *yaml.Node // what node is or would be in
	bad   bool       // there is something else than a mapping, and that was told
	known []string
}

func (r *reader) object(n *yaml.Node, path string) *object {
	o := &object{r: r, path: path, above: n}
	switch {
	case n == nil || n.Tag == "!!null":
	case n.Kind != yaml.MappingNode:
		r.add(n, fmt.Sprintf("%s must be a mapping, not %s", o.label(""), describe(n)), "")
		o.bad = true
	default:
		o.node = n
	}
	return o
}

func (o *object) label(key string) string {
	switch {
	case o.path == "" && key == "":
		return "the document"
	case o.path == "":
		return key
	case key == "":
		return o.path
	}
	return o.path + "." + key
}

// get returns the value of key, nil if it is absent or null.
func (o *object) get(key string) *yaml.Node {
	o.known = append(o.known, key)
	_, value := o.find(key)
	if value != nil && value.Tag == "!!null" {
		return nil
	}
	return value
}

func (o *object) find(key string) (k, v *yaml.Node) {
	if o.node == nil {
		return nil, nil
	}
	return lookup(o.node, key)
}

func lookup(mapping *yaml.Node, key string) (k, v *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// has reports whether key is there with a value.
func (o *object) has(key string) bool {
	_, value := o.find(key)
	return value != nil && value.Tag != "!!null"
}

func (o *object) child(key string) *object {
	c := o.r.object(o.get(key), o.label(key))
	c.above = o.node
	return c
}

// str returns text, "" if it is absent.
func (o *object) str(key string) string {
	s, _ := o.text(o.get(key), o.label(key))
	return s
}

// required is str for a key that must be there.
func (o *object) required(key string) string {
	n := o.get(key)
	if n == nil {
		o.missing(key)
		return ""
	}
	s, ok := o.text(n, o.label(key))
	if ok && s == "" {
		o.r.add(n, o.label(key)+" is empty", "")
	}
	return s
}

func (o *object) missing(key string) {
	at := o.node
	if at == nil {
		at = o.above
	}
	if !o.bad {
		o.r.add(at, o.label(key)+" is missing", "")
	}
}

func (o *object) text(n *yaml.Node, label string) (string, bool) {
	switch {
	case n == nil:
		return "", false
	case n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp"):
		return n.Value, true
	case n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float" || n.Tag == "!!bool"):
		o.r.add(n, fmt.Sprintf("%s must be text, not %s", label, describe(n)), fmt.Sprintf("put it in quotes: %q", n.Value))
	default:
		o.r.add(n, fmt.Sprintf("%s must be text, not %s", label, describe(n)), "")
	}
	return "", false
}

// boolean returns fallback if the key is absent.
func (o *object) boolean(key string, fallback bool) bool {
	n := o.get(key)
	if n == nil {
		return fallback
	}
	var b bool
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&b) != nil {
		o.r.add(n, fmt.Sprintf("%s must be true or false, not %s", o.label(key), describe(n)), "")
		return fallback
	}
	return b
}

// items returns the values of a sequence.
func (o *object) items(key string) []*yaml.Node {
	n := o.get(key)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		hint := ""
		if n.Kind == yaml.ScalarNode {
			hint = fmt.Sprintf("write %s: [%s]", key, clip(n.Value))
		}
		o.r.add(n, fmt.Sprintf("%s must be a list, not %s", o.label(key), describe(n)), hint)
		return nil
	}
	return n.Content
}

// strings returns a list of texts, with the node of each.
func (o *object) strings(key string) (values []string, nodes []*yaml.Node) {
	for i, item := range o.items(key) {
		if s, ok := o.text(item, fmt.Sprintf("%s[%d]", o.label(key), i)); ok {
			values, nodes = append(values, s), append(nodes, item)
		} else if item.Tag == "!!null" {
			o.r.add(item, fmt.Sprintf("%s[%d] is empty", o.label(key), i), "")
		}
	}
	return values, nodes
}

// choice returns text that must be one of allowed, "" if it is absent.
func (o *object) choice(key string, allowed ...string) string {
	n := o.get(key)
	s, ok := o.text(n, o.label(key))
	if ok && !slices.Contains(allowed, s) {
		o.r.add(n, fmt.Sprintf("%s is %q", o.label(key), clip(s)), didYouMean(s, allowed))
		return ""
	}
	return s
}

// done tells of the keys that nobody asked for.
func (o *object) done() {
	if o.node == nil {
		return
	}
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		key := o.node.Content[i]
		if !slices.Contains(o.known, key.Value) {
			o.r.add(key, fmt.Sprintf("unknown key %q in %s", clip(key.Value), o.label("")), didYouMean(key.Value, o.known))
		}
	}
}

// describe names what somebody wrote instead of what was wanted.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	case n.Tag == "!!int" || n.Tag == "!!float":
		return "the number " + clip(n.Value)
	case n.Tag == "!!bool":
		return "the boolean " + n.Value
	}
	return fmt.Sprintf("the text %q", clip(n.Value))
}

const maxDigits = 100 // of an integer

var wholeNumber = regexp.MustCompile(`^[-+]?[0-9]+$`)

// value converts YAML to what JSON knows: nil, bool, string, int64, uint64,
// float64, json.Number (an integer that fits none of them), []any and
// map[string]any. Keys are taken as they are written: 8080 is "8080", and no is
// "no". No fault repeats a value: it may be a secret that somebody wrote there,
// and passwords do begin with ! and *.
func (r *reader) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = r.value(n.Content[i+1])
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			out = append(out, r.value(item))
		}
		return out
	default:
		return r.scalar(n)
	}
}

func (r *reader) scalar(n *yaml.Node) any {
	var v any
	switch n.Tag {
	case "!!null":
		return nil
	case "!!str", "!!timestamp": // a date is the text that was written
		return n.Value
	case "!!bool", "!!int", "!!float":
		if err := n.Decode(&v); err != nil {
			r.add(n, "this is no "+strings.TrimPrefix(n.Tag, "!!"), "")
			return nil
		}
	default:
		r.add(n, "a tag is not supported", "write a plain value, and a text that begins with ! in quotes")
		return nil
	}
	switch v := v.(type) {
	case int:
		return int64(v)
	case float64:
		if wholeNumber.MatchString(n.Value) && len(n.Value) <= maxDigits {
			return json.Number(strings.TrimPrefix(n.Value, "+"))
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			r.add(n, "this is not a number that can be used", "")
			return nil
		}
	}
	return v
}
