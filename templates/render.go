package templates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/hclvalue"
)

const (
	mainFile      = "main.tf"
	clusterFile   = "cluster.tf"
	providersFile = "providers.tf"
	backendFile   = "holdfast_backend.tf"
	variablesFile = rootmodule.VariablesFile
)

// renderMain makes variables, module calls and outputs. What a template says of
// its cluster is a local there, see renderCluster. With effect, it is no more
// than what can change a plan: without descriptions, and without the variables
// that nothing refers to.
func (t *Template) renderMain(on parts, effect bool) []byte {
	file := hclwrite.NewEmptyFile()
	out := blocks{body: file.Body()}
	used := map[string]bool{}
	on.references(func(ref hclvalue.Part) {
		if ref.Words[0] == "var" && len(ref.Words) > 1 {
			used[ref.Words[1]] = true
		}
	})
	for _, name := range t.schema.Names {
		if !effect || used[name] {
			t.renderVariable(out.add("variable", name), name, !effect)
		}
	}
	for _, call := range on.calls {
		renderCall(out.add("module", call.name), call)
	}
	for _, o := range on.outputs {
		inner := out.add("output", o.name)
		inner.SetAttributeRaw("value", hclvalue.Tokens(o.value))
		if o.description != "" && !effect {
			inner.SetAttributeRaw("description", hclvalue.Tokens(o.description))
		}
		if o.sensitive {
			inner.SetAttributeValue("sensitive", cty.True)
		}
	}
	return file.Bytes()
}

// blocks adds blocks to a body with an empty line between them.
type blocks struct {
	body  *hclwrite.Body
	begun bool
}

func (b *blocks) add(kind string, labels ...string) *hclwrite.Body {
	if b.begun {
		b.body.AppendNewline()
	}
	b.begun = true
	return b.body.AppendNewBlock(kind, labels).Body()
}

func renderCall(body *hclwrite.Body, call templateCall) {
	source := call.source
	if call.dir != "" {
		source = path.Join("..", modulesDir, call.dir) // ".." keeps it a local source
	}
	body.SetAttributeRaw("source", hclvalue.Tokens(source))
	if call.version != "" {
		body.SetAttributeRaw("version", hclvalue.Tokens(call.version))
	}
	for _, input := range sortedKeys(call.inputs) {
		body.SetAttributeRaw(input, hclvalue.Tokens(call.inputs[input]))
	}
	if len(call.dependsOn) > 0 {
		items := make([]hclwrite.Tokens, len(call.dependsOn))
		for i, name := range call.dependsOn {
			items[i] = hclwrite.TokensForTraversal(hcl.Traversal{hcl.TraverseRoot{Name: "module"}, hcl.TraverseAttr{Name: name}})
		}
		body.SetAttributeRaw("depends_on", hclwrite.TokensForTuple(items))
	}
}

func (t *Template) renderVariable(body *hclwrite.Body, name string, described bool) {
	property, _ := t.schema.Properties[name].(map[string]any)
	if description, ok := property["description"].(string); ok && described {
		body.SetAttributeRaw("description", hclvalue.Tokens(description))
	}
	body.SetAttributeRaw("type", hclvalue.Raw(hclsyntax.TokenIdent, t.schema.Shapes[name].EngineType()))
	_, referred := property["default"] // where a secret is, if it is one
	if fallback, ok := t.schema.Defaults[name]; ok {
		body.SetAttributeRaw("default", hclvalue.Tokens(fallback))
	} else if !slices.Contains(t.schema.Required, name) && !referred {
		body.SetAttributeRaw("default", hclvalue.Tokens(nil))
	}
	if t.schema.Secrets[name] {
		body.SetAttributeValue("sensitive", cty.True)
	}
}

// renderProviders makes the providers of the engine and their configuration;
// nil: there are none.
func renderProviders(configure []engineProvider) []byte {
	if len(configure) == 0 {
		return nil
	}
	configure = slices.SortedFunc(slices.Values(configure), func(a, b engineProvider) int { return strings.Compare(a.name, b.name) })
	file := hclwrite.NewEmptyFile()
	out := blocks{body: file.Body()}
	required := out.add("terraform").AppendNewBlock("required_providers", nil).Body()
	for _, c := range configure {
		attrs := []hclwrite.ObjectAttrTokens{{Name: hclwrite.TokensForIdentifier("source"), Value: hclvalue.Tokens(c.source)}}
		if c.version != "" {
			attrs = append(attrs, hclwrite.ObjectAttrTokens{Name: hclwrite.TokensForIdentifier("version"), Value: hclvalue.Tokens(c.version)})
		}
		required.SetAttributeRaw(c.name, hclwrite.TokensForObject(attrs))
	}
	for _, c := range configure {
		if !c.body.empty() {
			c.body.render(out.add("provider", c.name))
		}
	}
	return file.Bytes()
}

func (b engineBlock) render(body *hclwrite.Body) {
	for _, name := range sortedKeys(b.arguments) {
		body.SetAttributeRaw(name, hclvalue.Tokens(b.arguments[name]))
	}
	for i, below := range b.blocks {
		if i > 0 || len(b.arguments) > 0 {
			body.AppendNewline()
		}
		below.render(body.AppendNewBlock(below.kind, nil).Body())
	}
}

// renderCluster makes the part of a root module that differs from cluster to
// cluster: engine, backend, and what the template says of the cluster. It is
// made once for each cluster of a fleet, so it is written by hand: the writer of
// HCL takes ten times as long.
func renderCluster(c holdfast.Cluster, backend string, config map[string]any, provider string, said []string) []byte {
	var b bytes.Buffer
	b.WriteString("terraform {\n")
	if c.Engine.Version != "" {
		writeAttributes(&b, "  ", map[string]any{"required_version": c.Engine.Version}, false)
	}
	b.WriteString("  backend " + string(hclvalue.Tokens(backend).Bytes()) + " {\n")
	writeAttributes(&b, "    ", config, false)
	b.WriteString("  }\n}\n")
	if len(said) > 0 {
		values, fields := clusterValues(c, provider), make(map[string]any, len(said))
		for _, name := range said {
			fields[name] = values[name]
		}
		b.WriteString("\nlocals {\n  cluster = {\n")
		writeAttributes(&b, "    ", fields, true)
		b.WriteString("  }\n}\n")
	}
	return b.Bytes()
}

// writeAttributes writes arguments, or the items of an object, one a line and
// aligned as far as none takes several lines.
func writeAttributes(b *bytes.Buffer, indent string, values map[string]any, items bool) {
	type line struct{ name, value string }
	var lines []line
	flush := func() {
		longest := 0
		for _, l := range lines {
			longest = max(longest, utf8.RuneCountInString(l.name))
		}
		for _, l := range lines {
			b.WriteString(indent + l.name + strings.Repeat(" ", longest-utf8.RuneCountInString(l.name)) + " = " + l.value + "\n")
		}
		lines = lines[:0]
	}
	for _, name := range sortedKeys(values) {
		l := line{name, string(hclvalue.Tokens(values[name]).Bytes())}
		if items {
			l.name = string(hclvalue.Tokens(name).Bytes())
		}
		if strings.Contains(l.value, "\n") { // never of a text: there it is escaped
			flush()
			l.value = strings.ReplaceAll(l.value, "\n", "\n"+indent)
			lines = append(lines, l)
			flush()
			continue
		}
		lines = append(lines, l)
	}
	flush()
}

// header is a comment at the top of a file. In text there may be the name of a
// folder, which is anything: it stays on its line.
func header(text string) []byte {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return fmt.Appendf(nil, "# Made by Holdfast from %s: a change here is lost.\n\n", text)
}

// renderVariables makes the values of the variables. In JSON the engine reads
// texts as they are, whatever is in them.
func renderVariables(variables map[string]any) ([]byte, error) {
	if variables == nil {
		variables = map[string]any{}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(variables); err != nil {
		return nil, fmt.Errorf("encode variables: %w", err)
	}
	return plainJSON(b.Bytes()), nil
}

// plainJSON escapes the runes of JSON that are not letters of the scripts that
// people write most. The engines read JSON by what looks like one character, and
// lose a quote that a combining mark or a prefix joins.
func plainJSON(data []byte) []byte {
	if !slices.ContainsFunc(data, func(c byte) bool { return c >= utf8.RuneSelf }) {
		return data
	}
	var b bytes.Buffer
	for _, r := range string(data) {
		switch {
		case r < utf8.RuneSelf, unicode.IsLetter(r) && unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Han,
			unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}
