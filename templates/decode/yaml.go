package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Parse returns the roots of the documents in data up to the first syntax
// error, which is the fault. Aliases are left as they are; see Expand.
func Parse(path string, data []byte) (roots []*yaml.Node, fault *holdfast.Fault) {
	if len(data) > maxFileBytes {
		return nil, &holdfast.Fault{
			File:    path,
			Message: fmt.Sprintf("file has %d bytes, more than the %d that are read", len(data), maxFileBytes),
			Hint:    "split it into several files",
		}
	}
	if !utf8.Valid(data) {
		return nil, notUTF8(path, data)
	}
	// The parser is third-party code and its input is untrusted: a bug in it must not
	// end the process.
	defer func() {
		if r := recover(); r != nil {
			fault = &holdfast.Fault{File: path, Message: fmt.Sprintf("file is not valid YAML: %v", r)}
		}
	}()
	decoder, begins := yaml.NewDecoder(bytes.NewReader(data)), oddLines(data)
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		switch {
		case errors.Is(err, io.EOF):
			return roots, nil
		case err != nil:
			return roots, syntaxFault(path, data, err)
		case len(roots) == maxDocuments:
			return roots, &holdfast.Fault{
				File: path, Line: node.Line,
				Message: fmt.Sprintf("file has more than %d documents", maxDocuments),
				Hint:    "split it into several files",
			}
		}
		if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
			root := node.Content[0]
			relocate(root, begins)
			if foreign := foreignAlias(path, root); foreign != nil {
				return roots, foreign
			}
			roots = append(roots, root)
		}
	}
}

func notUTF8(path string, data []byte) *holdfast.Fault {
	line, column := 1, 1
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			break
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		rest = rest[size:]
	}
	return &holdfast.Fault{
		File: path, Line: line, Column: column,
		Message: "file is not UTF-8 text", Hint: "save it as UTF-8",
	}
}

var parserError = regexp.MustCompile(`^did not find expected (<|'[-,]|key|node content)`)

var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)

var syntaxError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

func syntaxFault(path string, data []byte, err error) *holdfast.Fault {
	fault := &holdfast.Fault{File: path, Message: "file is not valid YAML: " + err.Error()}
	message := err.Error()
	if m := syntaxError.FindStringSubmatch(message); m != nil {
		fault.Message = "file is not valid YAML: " + m[2]
		if line, err := strconv.Atoi(m[1]); err == nil {
			if parserError.MatchString(m[2]) {
				line = lineOfError(data, message, line+1) // the parser, unlike the scanner, counts from zero
			}
			fault.Line = min(line, bytes.Count(data, []byte("\n"))+1)
		}
		if name := unknownAnchor.FindStringSubmatch(m[2]); name != nil {
			// Not by its name: what begins with * may be a password.
			fault.Message = "file is not valid YAML: an alias (*) of something that is not there"
			fault.Hint = "put a text that begins with * in quotes"
			fault.Line, fault.Column = placeAt(data, bytes.Index(data, []byte("*"+name[1])))
		}
		switch {
		case strings.Contains(m[2], "control characters are not allowed"):
			fault.Line, fault.Column = placeAt(data, bytes.IndexFunc(data, isControl))
			fault.Hint = `write it as an escape between double quotes, such as "\x1b"`
		case strings.Contains(m[2], "incompatible YAML document"):
			fault.Line, fault.Column = placeAt(data, bytes.Index(data, []byte("%YAML")))
			fault.Hint = "remove the line %YAML"
		case strings.Contains(m[2], "expected alphabetic or numeric character"):
			fault.Hint = "put a text that begins with * or & in quotes"
		case strings.Contains(m[2], "expected ',' or '}'"):
			fault.Hint = "between { and }, put a text that has [, ], { or } in quotes"
		case strings.Contains(m[2], "mapping values are not allowed"):
			fault.Hint = "put a text that has a colon in quotes, or indent this line as the one before"
		case strings.Contains(m[2], "did not find expected key"):
			fault.Hint = "indent this line as the other keys of its mapping"
			if quoteEnds.Match(lineAt(data, fault.Line)) {
				fault.Hint = `a text in quotes ends before this line does: between ' and ' write '' for ', between " and " write \" for "`
			}
		case strings.Contains(m[2], "unexpected end of stream"):
			openQuote(fault, data)
		}
	}
	likelyCause(fault, data)
	line := 0
	for text := range bytes.Lines(data) {
		line++
		indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if i := bytes.IndexByte(indent, '\t'); i >= 0 && len(bytes.TrimSpace(text)) > 0 {
			fault.Line, fault.Column = line, i+1
			fault.Message = "file is not valid YAML: a tab indents this line"
			fault.Hint = "indent with spaces"
			break
		}
	}
	return fault
}

// lineOfError returns the line that the parser cannot go past: of an error in a mapping or
// a list it says where that begins. No line before has the same error.
func lineOfError(data []byte, message string, begin int) int {
	ends := []int{0}
	for text := range bytes.Lines(data) {
		ends = append(ends, ends[len(ends)-1]+len(text))
	}
	line := sort.Search(len(ends), func(n int) bool {
		decoder := yaml.NewDecoder(bytes.NewReader(data[:ends[n]]))
		for {
			var node yaml.Node
			if err := decoder.Decode(&node); err != nil {
				return err.Error() == message
			}
		}
	})
	if line == len(ends) {
		return begin
	}
	return line
}

// lineAt returns a line of data without its end; none: nothing.
func lineAt(data []byte, line int) []byte {
	for text := range bytes.Lines(data) {
		if line--; line == 0 {
			return bytes.TrimRight(text, "\r\n")
		}
	}
	return nil
}

// openQuote says where the quote begins that is not closed: the parser says only in which
// line it was when it began to look for it.
func openQuote(fault *holdfast.Fault, data []byte) {
	text := lineAt(data, fault.Line)
	at := quoteBegins.FindSubmatchIndex(text)
	if at == nil {
		return
	}
	quote := text[at[2]]
	fault.Column = utf8.RuneCount(text[:at[2]]) + 1
	fault.Message = fmt.Sprintf("file is not valid YAML: the text that begins here with %c is not closed", quote)
	fault.Hint = fmt.Sprintf("close it with %c", quote)
}

// quoteEnds is a text in quotes with something after it.
var quoteEnds = regexp.MustCompile(`[:,\-\[{]\s+(?:'(?:[^']|'')*'|"(?:[^"\\]|\\.)*")[ \t]*[^\s,\]}:#'"]`)

// quoteBegins is where a value or a key in quotes begins that is not closed on its line.
var quoteBegins = regexp.MustCompile(`(?:^|[:\-,\[{(][ \t]*|^[ \t]+)(["'])[^"']*$`)

// placeAt returns the line and column of an offset in data, in characters;
// zeros if it is negative.
func placeAt(data []byte, at int) (line, column int) {
	if at < 0 {
		return 0, 0
	}
	begin := bytes.LastIndexByte(data[:at], '\n') + 1
	return bytes.Count(data[:at], []byte("\n")) + 1, utf8.RuneCount(data[begin:at]) + 1
}

// isControl reports whether YAML does not allow a character.
func isControl(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r <= 0x9f && r != 0x85 || r == 0xfffe || r == 0xffff
}

// ScalarOf returns the text of a top-level key without expanding anything.
func ScalarOf(root *yaml.Node, key string) (string, *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		return "", nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != key {
			continue
		}
		value := root.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if value.Kind == yaml.ScalarNode {
			return value.Value, value
		}
	}
	return "", nil
}

// NameOf returns metadata.name without expanding anything, "" if there is none.
func NameOf(root *yaml.Node) string {
	for i := 0; root.Kind == yaml.MappingNode && i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "metadata" {
			name, _ := ScalarOf(root.Content[i+1], "name")
			return name
		}
	}
	return ""
}

// expander copies a YAML tree with aliases and merge keys replaced by what they
// stand for. It stops at maxNodes: a few lines of aliases can stand for
// billions of nodes.
type expander struct {
	reader *Reader
	left   int
	active map[*yaml.Node]bool // anchors being expanded, to notice those that contain themselves
	full   bool
}

// Expand returns a document with aliases and merge keys replaced by what they stand for.
// Keys that are there twice, or are not text, are faults; with any fault the result is
// unusable.
func (r *Reader) Expand(root *yaml.Node) *yaml.Node {
	e := &expander{reader: r, left: maxNodes, active: map[*yaml.Node]bool{}}
	return e.expand(root, 0)
}

func (e *expander) expand(n *yaml.Node, depth int) *yaml.Node {
	e.left--
	switch {
	case e.full:
	case e.left < 0:
		e.full = true
		e.reader.Add(n, fmt.Sprintf("document has more than %d values once its aliases are replaced", maxNodes),
			"use fewer aliases (*name)")
	case depth > maxDepth:
		e.full = true
		e.reader.Add(n, fmt.Sprintf("document is nested more than %d levels deep", maxDepth), "")
	}
	out := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Style: n.Style, Value: n.Value, Line: n.Line, Column: n.Column}
	if e.full {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line, Column: n.Column}
	}
	switch n.Kind {
	case yaml.AliasNode:
		return e.alias(n, depth)
	case yaml.SequenceNode:
		e.untagged(n, "!!seq")
		for _, item := range n.Content {
			out.Content = append(out.Content, e.expand(item, depth+1))
		}
	case yaml.MappingNode:
		e.untagged(n, "!!map")
		e.mapping(n, out, depth)
	default: // a scalar is what it is
	}
	return out
}

// untagged reports a list or mapping that has a tag: it asks for something else than
// what is written.
func (e *expander) untagged(n *yaml.Node, plain string) {
	if tag := n.ShortTag(); tag != plain && tag != "!" {
		e.reader.Add(n, tagUnsupported, "remove it")
	}
}

func (e *expander) alias(n *yaml.Node, depth int) *yaml.Node {
	if e.active[n.Alias] {
		e.full = true
		e.reader.Add(n, fmt.Sprintf("alias *%s contains itself", n.Value), "")
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line, Column: n.Column}
	}
	e.active[n.Alias] = true
	defer delete(e.active, n.Alias)
	out := e.expand(n.Alias, depth+1)
	out.Line, out.Column = n.Line, n.Column // people look where it is used
	return out
}

func (e *expander) mapping(n, out *yaml.Node, depth int) {
	seen := map[string]int{} // key → line
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content) && !e.full; i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Tag == "!!merge" {
			merged = append(merged, e.expand(n.Content[i+1], depth+1))
			continue
		}
		if key.Kind != yaml.ScalarNode || key.Tag == "!!null" {
			hint := ""
			if key.Kind == yaml.MappingNode && key.Style&yaml.FlowStyle != 0 {
				hint = placeholderHint
			}
			e.reader.Add(n.Content[i], "a key must be text", hint)
			continue
		}
		name := norm.NFC.String(key.Value) // as the engines take it
		if line, twice := seen[name]; twice {
			hint := "remove one"
			if depth == 0 && (name == "apiVersion" || name == "kind") {
				hint = "separate documents with a line ---"
			}
			e.reader.Add(n.Content[i], fmt.Sprintf("key %q is given twice, first in line %d", wording.Clip(key.Value), line), hint)
			continue
		}
		seen[name] = n.Content[i].Line
		out.Content = append(out.Content, e.expand(n.Content[i], depth+1), e.expand(n.Content[i+1], depth+1))
	}
	for _, source := range merged {
		e.merge(source, out, seen)
	}
}

// merge adds the keys of source ("<<: *source") that are not there yet.
func (e *expander) merge(source, out *yaml.Node, seen map[string]int) {
	switch {
	case e.full:
	case source.Kind == yaml.SequenceNode:
		for _, item := range source.Content {
			if item.Kind != yaml.MappingNode {
				e.reader.Add(item, "<< merges mappings only", "")
				continue
			}
			e.merge(item, out, seen)
		}
	case source.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(source.Content); i += 2 {
			key := source.Content[i]
			name := norm.NFC.String(key.Value)
			if _, ok := seen[name]; ok {
				continue
			}
			seen[name] = key.Line
			out.Content = append(out.Content, key, source.Content[i+1])
		}
	default:
		e.reader.Add(source, "<< merges mappings only", "")
	}
}
