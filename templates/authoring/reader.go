package authoring

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/nearest"
)

// maxNodes bounds the values of a file once its aliases are replaced.
const maxNodes = 100_000

// reader collects the faults of one file.
type reader struct {
	file   string
	left   int  // values that may still be copied by expand
	full   bool // they were too many
	faults holdfast.Faults
}

func (r *reader) add(at *yaml.Node, message, hint string) {
	const most = 100
	if len(r.faults) < most {
		r.faults = append(r.faults, holdfast.Fault{File: r.file, Line: at.Line, Column: at.Column, Message: message, Hint: hint})
	}
}

// expand copies a tree of values without aliases, comments and block styles: in flow
// style a mapping is elsewhere than its first key.
func (r *reader) expand(n *yaml.Node, depth int) *yaml.Node {
	r.left--
	if !r.full && (r.left < 0 || depth > 100) {
		r.full = true
		r.add(n, "file has too many values, or is nested too deeply, once its aliases are replaced", "use fewer aliases (*name)")
	}
	if r.full {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line, Column: n.Column}
	}
	if n.Kind == yaml.AliasNode {
		out := r.expand(n.Alias, depth+1)
		out.Line, out.Column = n.Line, n.Column
		return out
	}
	out := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Line: n.Line, Column: n.Column}
	if n.Kind == yaml.ScalarNode {
		out.Style = n.Style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle)
	} else {
		out.Style = yaml.FlowStyle
	}
	for _, below := range n.Content {
		out.Content = append(out.Content, r.expand(below, depth+1))
	}
	return out
}

// keys calls the function of each key of a mapping; a key that has none is a
// fault.
func (r *reader) keys(n *yaml.Node, label string, known map[string]func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.add(n, fmt.Sprintf("%s must be a mapping, not %s", label, describe(n)), "")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read := known[key.Value]
		switch {
		case read == nil:
			names := make([]string, 0, len(known))
			for name := range known {
				names = append(names, name)
			}
			r.add(key, fmt.Sprintf("unknown key %q in %s", clip(key.Value), label), suggest(key.Value, names))
		case seen[key.Value]:
			r.add(key, fmt.Sprintf("key %q is given twice", key.Value), "remove one")
		default:
			read(key, value)
		}
		seen[key.Value] = true
	}
}

// text returns text that is not empty.
func (r *reader) text(n *yaml.Node, label string) string {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		r.add(n, fmt.Sprintf("%s must be text, not %s", label, describe(n)), "")
		return ""
	case n.Tag != "!!str":
		r.add(n, fmt.Sprintf("%s must be text, not %s", label, describe(n)), fmt.Sprintf("put it in quotes: %q", n.Value))
		return ""
	case strings.TrimSpace(n.Value) == "":
		r.add(n, label+" is empty", "")
	}
	return n.Value
}

// items returns the values of a list.
func (r *reader) items(n *yaml.Node, label string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.add(n, fmt.Sprintf("%s must be a list, not %s", label, describe(n)), "")
		return nil
	}
	return n.Content
}

func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	case n.Tag == "!!str":
		return fmt.Sprintf("the text %q", clip(n.Value))
	}
	return clip(n.Value)
}

// suggest is the hint for a word that is not one of candidates.
func suggest(word string, candidates []string) string {
	if near := nearest.Of(word, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	slices.Sort(candidates)
	return "one of " + strings.Join(candidates, ", ")
}

// clip shortens what people wrote to what fits into a message.
func clip(s string) string {
	const most = 120
	s = strings.ToValidUTF8(s, "?")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// at returns the value at a dotted path below n, and the path as far as it is
// there.
func at(n *yaml.Node, dotted string) (*yaml.Node, string) {
	var found []string
	for word := range strings.SplitSeq(dotted, ".") {
		next := below(n, word)
		if next == nil {
			break
		}
		n, found = next, append(found, word)
	}
	return n, strings.Join(found, ".")
}

func below(n *yaml.Node, word string) *yaml.Node {
	if n.Kind == yaml.SequenceNode {
		i, err := strconv.Atoi(word)
		if err != nil || i < 0 || i >= len(n.Content) {
			return nil
		}
		return n.Content[i]
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == word {
			return n.Content[i+1]
		}
	}
	return nil
}

// pathAt returns the dotted path of the key or value at a position
// below n, "" if there is none.
func pathAt(n *yaml.Node, line, column int) string {
	var search func(n *yaml.Node, words []string) (string, bool)
	search = func(n *yaml.Node, words []string) (string, bool) {
		if n.Line == line && n.Column == column && len(words) > 0 {
			return strings.Join(words, "."), true
		}
		for i, item := range n.Content {
			word, value := strconv.Itoa(i), item
			if n.Kind == yaml.MappingNode {
				if i%2 == 0 {
					continue
				}
				key := n.Content[i-1]
				word = key.Value
				if key.Line == line && key.Column == column {
					return strings.Join(append(slices.Clone(words), word), "."), true
				}
			}
			if found, ok := search(value, append(slices.Clone(words), word)); ok {
				return found, true
			}
		}
		return "", false
	}
	found, _ := search(n, nil)
	return found
}

// inside reports whether p is a path that stays inside of the folder that it
// starts from.
func inside(p string) bool {
	clean := path.Clean(p)
	return p != "" && !path.IsAbs(p) && clean != "." && clean != ".." && !strings.HasPrefix(clean, "../") && !strings.ContainsAny(p, "\\\x00")
}
