package decode

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Reader collects the faults of one document.
type Reader struct {
	File    string          // what all faults name
	Cluster string          // the name of the cluster that the document is of; empty: none, or not readable
	Faults  holdfast.Faults // in the order in which they were found, MaxFaults at most
}

// Add reports something at a node, at the file alone if that is nil. The hint may be
// empty.
func (r *Reader) Add(at *yaml.Node, message, hint string) {
	fault := holdfast.Fault{File: r.File, Cluster: r.Cluster, Message: message, Hint: hint}
	if at != nil {
		fault.Line, fault.Column = at.Line, at.Column
	}
	r.Put(fault)
}

// Put adds a fault, on one line and shortened. Those beyond MaxFaults are dropped.
func (r *Reader) Put(fault holdfast.Fault) {
	const most = 500 // names of keys can have any length
	fault.Message, fault.Hint = wording.Visible(fault.Message), wording.Visible(fault.Hint)
	if len(fault.Message) > most {
		fault.Message = strings.ToValidUTF8(fault.Message[:most], "") + "…"
	}
	if len(fault.Hint) > most {
		fault.Hint = strings.ToValidUTF8(fault.Hint[:most], "") + "…"
	}
	if len(r.Faults) < MaxFaults {
		r.Faults = append(r.Faults, fault)
	}
}

// Object reads a mapping key by key; what was not asked for is a fault in Done.
// A nil mapping reads as empty.
type Object struct {
	reader *Reader
	path   string     // such as "spec.template"; empty for the document
	Node   *yaml.Node // nil: absent, null or no mapping
	above  *yaml.Node // what node is or would be in
	bad    bool       // there is something else than a mapping, and that was reported
	known  []string
}

// Object returns the mapping at a node, which is at a path such as "spec.template".
// Anything else that was written there is a fault.
func (r *Reader) Object(n *yaml.Node, path string) *Object {
	o := &Object{reader: r, path: path, above: n}
	switch {
	case n == nil || n.Tag == "!!null":
	case n.Kind != yaml.MappingNode:
		r.Add(n, fmt.Sprintf("%s must be a mapping, not %s", o.Label(""), Describe(n)), "")
		o.bad = true
	default:
		o.Node = n
	}
	return o
}

// Label is how a fault names a key of the mapping, such as "spec.template.name"; the
// mapping itself where the key is empty.
func (o *Object) Label(key string) string {
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

// Get returns the value of key, nil if it is absent or null.
func (o *Object) Get(key string) *yaml.Node {
	if !slices.Contains(o.known, key) {
		o.known = append(o.known, key)
	}
	_, value := o.Find(key)
	if value != nil && value.Tag == "!!null" {
		return nil
	}
	return value
}

// Find returns a key and its value as they were written, nil if they were not; it does
// not count as asking for the key.
func (o *Object) Find(key string) (k, v *yaml.Node) {
	if o.Node == nil {
		return nil, nil
	}
	return Lookup(o.Node, key)
}

// Lookup returns a key of a mapping and its value, nil if it is absent.
func Lookup(mapping *yaml.Node, key string) (k, v *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// Has reports whether key is there with a value.
func (o *Object) Has(key string) bool {
	_, value := o.Find(key)
	return value != nil && value.Tag != "!!null"
}

// Child returns the mapping at a key, an empty one if it is absent.
func (o *Object) Child(key string) *Object {
	c := o.reader.Object(o.Get(key), o.Label(key))
	c.above = o.Node
	return c
}

// Text returns text, "" if it is absent.
func (o *Object) Text(key string) string {
	s, _ := o.textOf(o.Get(key), o.Label(key))
	return s
}

// Required is Text for a key that must be there.
func (o *Object) Required(key string) string {
	n := o.Get(key)
	if n == nil {
		o.Missing(key)
		return ""
	}
	s, ok := o.textOf(n, o.Label(key))
	if ok && s == "" {
		o.reader.Add(n, o.Label(key)+" is empty", "")
	}
	return s
}

// Missing reports that a key is absent which must be there.
func (o *Object) Missing(key string) {
	at := o.Node
	if at == nil {
		at = o.above
	}
	if !o.bad {
		o.reader.Add(at, o.absence(key), "")
	}
}

func (o *Object) absence(key string) string { return o.Label(key) + " is missing" }

// found takes back that a key is missing.
func (o *Object) found(key string) {
	o.reader.Faults = slices.DeleteFunc(o.reader.Faults, func(f holdfast.Fault) bool {
		return f.Line == o.Node.Line && f.Column == o.Node.Column && f.Message == o.absence(key)
	})
}

func (o *Object) textOf(n *yaml.Node, label string) (string, bool) {
	switch {
	case n == nil:
		return "", false
	case n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp"):
		return n.Value, true
	case n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float" || n.Tag == "!!bool"):
		hint := fmt.Sprintf("put it in quotes: %q", n.Value)
		if n.Tag != "!!bool" && strings.HasSuffix(label, ".duration") {
			hint = fmt.Sprintf("%[1]sh? Write a duration such as %[1]sh or %[1]sm", n.Value)
		}
		o.reader.Add(n, fmt.Sprintf("%s must be text, not %s", label, Describe(n)), hint)
	default:
		o.reader.Add(n, fmt.Sprintf("%s must be text, not %s", label, Describe(n)), "")
	}
	return "", false
}

// Bool returns fallback if the key is absent.
func (o *Object) Bool(key string, fallback bool) bool {
	n := o.Get(key)
	if n == nil {
		return fallback
	}
	var b bool
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&b) != nil {
		o.reader.Add(n, fmt.Sprintf("%s must be true or false, not %s", o.Label(key), Describe(n)), "")
		return fallback
	}
	return b
}

// Items returns the values of a sequence.
func (o *Object) Items(key string) []*yaml.Node {
	n := o.Get(key)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		hint := ""
		if n.Kind == yaml.ScalarNode {
			hint = fmt.Sprintf("write %s: [%s]", key, wording.Clip(n.Value))
		}
		o.reader.Add(n, fmt.Sprintf("%s must be a list, not %s", o.Label(key), Describe(n)), hint)
		return nil
	}
	return n.Content
}

// Strings returns a list of texts, with the node of each.
func (o *Object) Strings(key string) (values []string, nodes []*yaml.Node) {
	for i, item := range o.Items(key) {
		if s, ok := o.Entry(item, fmt.Sprintf("%s[%d]", o.Label(key), i)); ok {
			values, nodes = append(values, s), append(nodes, item)
		}
	}
	return values, nodes
}

// Entry returns the text that an entry of a list is.
func (o *Object) Entry(item *yaml.Node, label string) (string, bool) {
	s, ok := o.textOf(item, label)
	if !ok && item.Tag == "!!null" {
		o.reader.Add(item, label+" is empty", "")
	}
	return s, ok
}

// Choice returns text that must be one of allowed, "" if it is absent.
func (o *Object) Choice(key string, allowed ...string) string {
	n := o.Get(key)
	s, ok := o.textOf(n, o.Label(key))
	if ok && !slices.Contains(allowed, s) {
		o.reader.Add(n, fmt.Sprintf("%s is %q", o.Label(key), wording.Clip(s)), wording.DidYouMean(s, allowed))
		return ""
	}
	return s
}

// Done reports the keys that nobody asked for, and returns the known keys that these
// probably misspell. One that is misspelt is the cause of its absence, which is not
// reported then.
func (o *Object) Done() (misspelt []string) {
	if o.Node == nil {
		return nil
	}
	for i := 0; i+1 < len(o.Node.Content); i += 2 {
		key := o.Node.Content[i]
		if !slices.Contains(o.known, key.Value) {
			if meant := nearest.Of(key.Value, o.known); meant != "" {
				o.found(meant)
				misspelt = append(misspelt, meant)
			}
			o.reader.Add(key, fmt.Sprintf("unknown key %q in %s", wording.Clip(key.Value), o.Label("")), wording.DidYouMean(key.Value, o.known))
		}
	}
	return misspelt
}

// Describe names what somebody wrote instead of what was wanted.
func Describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	case n.Tag == "!!int" || n.Tag == "!!float":
		return "the number " + wording.Clip(n.Value)
	case n.Tag == "!!bool":
		return "the boolean " + n.Value
	}
	if n.Kind == yaml.ScalarNode && n.Tag != "!!str" && n.Tag != "!!timestamp" {
		return "a value with a tag"
	}
	return fmt.Sprintf("the text %q", wording.Clip(n.Value))
}

// tagUnsupported says that a value has a tag, but not which: what begins with ! may be
// a password.
const tagUnsupported = "a tag is not supported"

// MaxDigits bounds integers, as they are written.
const MaxDigits = 100

var (
	largeNumber = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$` +
		`|^[-+]?0(x[0-9a-fA-F_]+|o[0-7_]+|b[01_]+)$`) // of more than 64 bits
	octalNumber = regexp.MustCompile(`^[-+]?0[0-9_]+$`)
	nonzero     = regexp.MustCompile(`^[-+.0_]*[1-9]`)
)

var wholeNumber = regexp.MustCompile(`^[-+]?[0-9]+$`)

// Value converts YAML to what JSON knows: nil, bool, string, int64, uint64,
// float64, json.Number (an integer that fits none of them), []any and
// map[string]any. Keys are taken as they are written: 8080 is "8080", and no is
// "no". No fault repeats a value: it may be a secret that somebody wrote there,
// and passwords do begin with ! and *.
func (r *Reader) Value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = r.Value(n.Content[i+1])
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			out = append(out, r.Value(item))
		}
		return out
	default:
		return r.scalar(n)
	}
}

func (r *Reader) scalar(n *yaml.Node) any {
	var v any
	switch n.Tag {
	case "!!null":
		return nil
	case "!!str", "!!timestamp": // a date is the text that was written
		if n.Style == 0 && largeNumber.MatchString(n.Value) { // otherwise it would silently be a text
			r.Add(n, "this is not a number that can be used: it is too large", "put a text in quotes")
			return nil
		}
		return n.Value
	case "!!bool", "!!int", "!!float":
		if octalNumber.MatchString(n.Value) {
			r.Add(n, "a number that begins with 0 is octal to some and not to others",
				"write it without the 0, with 0o for an octal one, or in quotes as a text")
			return nil
		}
		if err := n.Decode(&v); err != nil {
			r.Add(n, "this is not "+aTag(n.Tag), "")
			return nil
		}
	default:
		r.Add(n, tagUnsupported, "write a plain value, and a text that begins with ! in quotes")
		return nil
	}
	switch v := v.(type) {
	case int:
		return int64(v)
	case float64:
		if wholeNumber.MatchString(n.Value) && len(n.Value) <= MaxDigits {
			return json.Number(strings.TrimPrefix(n.Value, "+"))
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			r.Add(n, "this is not a number that can be used", "")
			return nil
		}
		if v == 0 && nonzero.MatchString(n.Value) {
			r.Add(n, "this is not a number that can be used: it is too small", "write 0, or put a text in quotes")
			return nil
		}
	}
	return v
}

// aTag is a tag of YAML with its article: "an int", "a float".
func aTag(tag string) string {
	name := strings.TrimPrefix(tag, "!!")
	if strings.HasPrefix(name, "int") {
		return "an " + name
	}
	return "a " + name
}
