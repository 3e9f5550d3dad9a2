package decode

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
)

// lineEnds are the characters that end a line in YAML 1.1, and in no editor.
const lineEnds = "\u0085\u2028\u2029"

// oddLines returns where each line of a file begins as the parser counts them; nil if editors
// count them alike.
func oddLines(data []byte) []place {
	if !bytes.ContainsAny(data, lineEnds) {
		return nil
	}
	return lineBegins(data)
}

// relocate gives the nodes of a document the lines and columns that editors show, where lines
// of its file are odd.
func relocate(root *yaml.Node, begins []place) {
	if begins == nil {
		return
	}
	eachNode(root, func(n *yaml.Node) {
		if n.Line >= 1 && n.Line <= len(begins) {
			begin := begins[n.Line-1]
			n.Line, n.Column = begin.line, n.Column+begin.column
		}
	})
}

// place is where editors show something: the line from 1, and how many characters of it
// come before.
type place struct{ line, column int }

// lineBegins returns where each line begins as the parser counts them, from 1.
func lineBegins(data []byte) []place {
	begins := []place{{1, 0}}
	at := place{1, 0}
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == '\n':
			at = place{at.line + 1, 0}
			begins = append(begins, at)
		case r == '\r' && !bytes.HasPrefix(rest[size:], []byte("\n")):
			at = place{at.line + 1, 0}
			begins = append(begins, at)
		case bytes.ContainsRune([]byte(lineEnds), r):
			at.column++
			begins = append(begins, at)
		default:
			at.column++
		}
		rest = rest[size:]
	}
	return begins
}

// eachNode calls do with a node and all below it, once each.
func eachNode(n *yaml.Node, do func(*yaml.Node)) {
	do(n)
	for _, below := range n.Content {
		eachNode(below, do)
	}
}

// foreignAlias is the fault of an alias of something in another document, nil if there
// is none: each document is separate.
func foreignAlias(path string, root *yaml.Node) *holdfast.Fault {
	var aliases []*yaml.Node
	eachNode(root, func(n *yaml.Node) {
		if n.Kind == yaml.AliasNode {
			aliases = append(aliases, n)
		}
	})
	if len(aliases) == 0 {
		return nil
	}
	own := make(map[*yaml.Node]bool)
	eachNode(root, func(n *yaml.Node) { own[n] = true })
	for _, n := range aliases {
		if !own[n.Alias] {
			return &holdfast.Fault{
				File: path, Line: n.Line, Column: n.Column,
				Message: "an alias (*) of something in another document", Hint: "write the value here",
			}
		}
	}
	return nil
}

var (
	placeholder = regexp.MustCompile(`^[ \t]*(?:[^#"'\n]*[:-][ \t]+)?\{\{`)
	noBreak     = regexp.MustCompile(`^[ \t]*[^#"'\n]*[:-][\x{a0}\x{202f}\x{2007}]`)
)

// likelyCause moves a syntax fault to the line that most likely causes it: parsers
// notice later.
func likelyCause(fault *holdfast.Fault, data []byte) {
	if bytes.ContainsAny(data, lineEnds) && endsLine(fault, data) {
		return
	}
	line := 0
	for text := range bytes.Lines(data) {
		if line++; fault.Line > 0 && line > fault.Line {
			return
		}
		switch {
		case placeholder.Match(text):
			fault.Message, fault.Hint = "file is not valid YAML: {{ begins a placeholder of a template engine", placeholderHint
			fault.Line, fault.Column = line, utf8.RuneCount(text[:bytes.Index(text, []byte("{{"))])+1
			return
		case noBreak.Match(text):
			before := noBreak.FindIndex(text)[1]
			_, size := utf8.DecodeLastRune(text[:before])
			fault.Message, fault.Hint = "file is not valid YAML: a no-break space instead of a space", "write an ordinary space"
			fault.Line, fault.Column = line, utf8.RuneCount(text[:before-size])+1
			return
		}
	}
}

// endsLine gives a syntax fault the line that editors show, and reports whether it is
// that a character ended a line, which no editor shows.
func endsLine(fault *holdfast.Fault, data []byte) bool {
	begins := lineBegins(data)
	told := min(fault.Line, len(begins))
	if told < 1 {
		return false
	}
	at := begins[told-1]
	fault.Line = at.line
	if at.column == 0 || !strings.Contains(fault.Message, "could not find expected ':'") {
		return false
	}
	fault.Message, fault.Hint = "file is not valid YAML: an invisible character ends the line here", "remove it, or write it as an escape in double quotes"
	fault.Column = at.column
	return true
}

const placeholderHint = "files are not rendered as Go or Helm templates: write the value, or put a text that begins with {{ in quotes"
