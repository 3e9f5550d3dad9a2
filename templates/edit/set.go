package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// change is one key that is set, or removed.
type change struct {
	path  []string
	value *yaml.Node // nil: it is removed
}

// Set changes keys below a top-level key of a document, each given as "path.of.keys=value".
// A value is YAML (JSON is written as YAML); an empty one removes the key. Where that says the same as writing the
// whole document, only the lines of these keys change.
func Set(document []byte, under string, changes []string) ([]byte, error) {
	if len(changes) == 0 {
		return document, nil
	}
	var root yaml.Node
	written := document
	if hasCarriageReturns(written) {
		document = endedAs([]byte("\n"), written)
	}
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, holdfast.Faults{{File: "document", Message: "it is not valid YAML: " + err.Error()}}
	}
	if root.Kind != yaml.DocumentNode || root.Content[0].Kind != yaml.MappingNode {
		return nil, holdfast.Faults{{File: "document", Message: "it is not a mapping"}}
	}
	spliced, whole := document, true
	for _, text := range changes {
		c, err := read(under, text)
		if err != nil {
			return nil, err
		}
		if err := c.apply(root.Content[0]); err != nil {
			return nil, err
		}
		if whole {
			spliced, whole = c.splice(spliced)
		}
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	if whole && meansTheSame(spliced, b.Bytes()) {
		return endedAs(written, spliced), nil
	}
	var meant, said any
	if root.Decode(&meant) != nil || yaml.Unmarshal(b.Bytes(), &said) != nil || !reflect.DeepEqual(meant, said) {
		return nil, holdfast.Faults{{
			File: "set", Message: "the document cannot be written with this change",
			Hint: "edit it by hand: other keys may refer to what it takes away, such as an anchor",
		}}
	}
	return endedAs(written, b.Bytes()), nil
}

// meansTheSame reports whether two texts are the same as data.
func meansTheSame(a, b []byte) bool {
	var x, y any
	return yaml.Unmarshal(a, &x) == nil && yaml.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// read takes apart what somebody wants to be set.
func read(under, text string) (change, error) {
	keys, value, ok := strings.Cut(text, "=")
	if !ok || keys == "" || strings.Contains("."+keys+".", "..") {
		return change{}, fault(text, "write path.of.keys=value, such as job.namespace=runs")
	}
	c := change{path: append([]string{under}, strings.Split(keys, ".")...)}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(value), &node); err != nil {
		return change{}, fault(keys, "its value is not valid YAML: put a text in quotes")
	}
	if node.Kind == 0 && strings.TrimSpace(value) != "" || !IsOne([]byte(value)) {
		return change{}, fault(keys, "its value is a comment, or several documents: put a text in quotes")
	}
	if node.Kind != 0 {
		c.value = node.Content[0]
		if json.Valid([]byte(value)) {
			plain(c.value)
		}
	}
	return c, nil
}

// word is a text that nobody takes for anything else without quotes, as far as notAWord allows.
var (
	word     = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_./-]*|[0-9]+\.[0-9]+\.[0-9]+)$`)
	notAWord = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)
)

// plain has what is JSON written as people write YAML.
func plain(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || word.MatchString(n.Value) && !notAWord.MatchString(n.Value) {
		n.Style = 0
	}
	for _, c := range n.Content {
		plain(c)
	}
}

func fault(what, hint string) error {
	return holdfast.Faults{{File: "set", Message: fmt.Sprintf("%q cannot be set", wording.Clip(what)), Hint: hint}}
}

// apply makes a change in a tree.
func (c change) apply(root *yaml.Node) error {
	at, last := root, len(c.path)-1
	for _, key := range c.path[:last] {
		if at = child(at, key); at.Kind != yaml.MappingNode {
			return fault(strings.Join(c.path[1:], "."), fmt.Sprintf("%s is not a mapping", key))
		}
	}
	if c.value == nil {
		drop(at, c.path[last])
		return nil
	}
	value := child(at, c.path[last])
	comment := value.LineComment
	*value = *c.value
	value.LineComment = comment
	return nil
}

// child is the value of a key, a new mapping if it is absent, null or empty: what comes into
// it is written in lines.
func child(mapping *yaml.Node, key string) *yaml.Node {
	_, value := decode.Lookup(mapping, key)
	if value == nil {
		value = &yaml.Node{Kind: yaml.MappingNode}
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
	} else if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
		*value = yaml.Node{Kind: yaml.MappingNode}
	} else if value.Kind == yaml.MappingNode && len(value.Content) == 0 {
		value.Style = 0
	}
	return value
}

func drop(mapping *yaml.Node, key string) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content = append(mapping.Content[:i:i], mapping.Content[i+2:]...)
			return
		}
	}
}
