package edit

import (
	"bytes"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// splice makes a change in a text, in the lines of its key alone; ok reports that it could.
// What comes of it has to be compared with the change of the tree: a text in several lines
// has an end that the tree does not tell.
func (c change) splice(text []byte) (_ []byte, ok bool) {
	var root yaml.Node
	if yaml.Unmarshal(text, &root) != nil || root.Kind != yaml.DocumentNode {
		return nil, false
	}
	mapping := root.Content[0]
	last := len(c.path) - 1
	for _, key := range c.path[:last] {
		i := indexOf(mapping, key)
		if i < 0 {
			return nil, false
		}
		mapping = mapping.Content[i+1]
	}
	if mapping.Kind != yaml.MappingNode || mapping.Style&yaml.FlowStyle != 0 || len(mapping.Content) == 0 {
		return nil, false
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	first, end, comment := endOf(mapping)+1, endOf(mapping)+1, "" // behind the last one
	if i := indexOf(mapping, c.path[last]); i >= 0 {
		was := mapping.Content[i+1]
		first, end, comment = mapping.Content[i].Line, endOf(was)+1, was.LineComment
		if c.value == nil {
			first = aboveComment(lines, mapping.Content[i])
		}
	} else if c.value == nil {
		return text, true
	}
	entry := c.lines(mapping.Content[0].Column-1, comment)
	if c.value != nil && entry == nil {
		return nil, false
	}
	if end-1 > len(lines) || c.value == nil && len(mapping.Content) == 2 {
		return nil, false
	}
	before := slices.Clone(lines[:first-1])
	if n := len(before); n > 0 && !bytes.HasSuffix(before[n-1], []byte("\n")) {
		before[n-1] = append(bytes.Clone(before[n-1]), '\n')
	}
	return bytes.Join(slices.Concat(before, entry, lines[min(end-1, len(lines)):]), nil), true
}

// lines are the key with its value as they are written at an indentation, with a comment
// behind it; nil if it is removed, or cannot be written.
func (c change) lines(indent int, comment string) [][]byte {
	if c.value == nil {
		return nil
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	value := *c.value
	value.LineComment = comment
	entry := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: c.path[len(c.path)-1]}, &value}}
	if encoder.Encode(entry) != nil || encoder.Close() != nil {
		return nil
	}
	var out [][]byte
	for line := range bytes.Lines(b.Bytes()) {
		if len(bytes.TrimSpace(line)) > 0 {
			line = append([]byte(strings.Repeat(" ", indent)), line...)
		}
		out = append(out, line)
	}
	return out
}

// aboveComment is the line of a key, or of the comment above that is about it.
func aboveComment(lines [][]byte, key *yaml.Node) int {
	first := key.Line
	if key.HeadComment == "" {
		return first
	}
	// One that is written deeper is of the key before.
	comment := append(bytes.Repeat([]byte(" "), key.Column-1), '#')
	for first > 1 && bytes.HasPrefix(lines[first-2], comment) {
		first--
	}
	return first
}

// indexOf is where a mapping has a key; -1 if it has not.
func indexOf(mapping *yaml.Node, key string) int {
	for i := 0; mapping.Kind == yaml.MappingNode && i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// endOf is the last line that a value begins something in. A text of several lines may end
// later.
func endOf(n *yaml.Node) int {
	end := n.Line
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		end += strings.Count(strings.TrimRight(n.Value, "\n"), "\n") + 1
	}
	for _, c := range n.Content {
		end = max(end, endOf(c))
	}
	return end
}
