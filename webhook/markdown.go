package webhook

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxMarkdown is how long a comment with commands may be, in bytes. Markdown can
// be written that takes time by the square of its length.
const maxMarkdown = 16 << 10

// markdown makes the HTML that a code host shows of a comment: raw HTML goes
// through, as it decides what a reader sees.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM, extension.Footnote),
	goldmark.WithRendererOptions(html.WithUnsafe()),
)

// ownLines returns the lines of a comment that a reader takes for the writer's own
// words: those of paragraphs that are nested in nothing else. A comment is rendered and
// read as a browser does it, and everything that is not such a line is left out,
// whatever it is called: quotes, code, lists, tables, headings, details, titles of
// links, HTML comments. A line may have code in it, as the name of a cluster is often
// written; any other markup makes it none.
func ownLines(body string) []string {
	var page bytes.Buffer
	if err := markdown.Convert([]byte(body), &page); err != nil {
		return nil
	}
	context := &nethtml.Node{Type: nethtml.ElementNode, Data: "div", DataAtom: atom.Div}
	nodes, err := nethtml.ParseFragment(&page, context)
	if err != nil {
		return nil
	}
	source := sourceLines(body)
	var lines []string
	for _, node := range nodes {
		if node.Type != nethtml.ElementNode || node.DataAtom != atom.P {
			continue
		}
		for _, line := range paragraphLines(node) {
			// What looks like a command and was written in another way, such as
			// with a backslash before it, was not meant as one.
			if !isTrigger(line) || source[plainly(line)] {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// paragraphLines returns the lines of a paragraph without those that have other
// markup in them than code, or that begin in code.
func paragraphLines(p *nethtml.Node) []string {
	var lines []string
	var line strings.Builder
	own := true
	end := func() {
		if own {
			lines = append(lines, line.String())
		}
		line.Reset()
		own = true
	}
	for node := p.FirstChild; node != nil; node = node.NextSibling {
		switch {
		case node.Type == nethtml.TextNode:
			// Text between two of these is a formula on GitHub, over lines, too;
			// a comment that is not closed is not one for a parser, and for people.
			if strings.Contains(node.Data, "$$") || strings.Contains(node.Data, "<!--") {
				return lines
			}
			before, after, more := strings.Cut(node.Data, "\n")
			for line.WriteString(before); more; line.WriteString(before) {
				end()
				before, after, more = strings.Cut(after, "\n")
			}
		case node.DataAtom == atom.Code && isText(node.FirstChild):
			own = own && strings.TrimSpace(line.String()) != "" && !strings.Contains(node.FirstChild.Data, "\n")
			line.WriteString("`" + node.FirstChild.Data + "`")
		case node.DataAtom == atom.Br: // a line feed follows
		default:
			own = false
		}
	}
	end()
	return lines
}

// isText reports whether a node is text, and the only child of its parent.
func isText(node *nethtml.Node) bool {
	return node != nil && node.Type == nethtml.TextNode && node.NextSibling == nil
}

// sourceLines returns the lines of a comment's source that begin as commands do.
func sourceLines(body string) map[string]bool {
	lines := make(map[string]bool)
	for line := range strings.Lines(body) {
		if isTrigger(line) {
			lines[plainly(line)] = true
		}
	}
	return lines
}

// plainly is a line without what code is marked with and with single spaces.
func plainly(line string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(line, "`", "")), " ")
}
