package authoring

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// Page returns the page of documentation of a draft, in Markdown as code hosts
// show it. The same draft gives the same bytes. What the author wrote is shown as
// text: nothing in it becomes markup, but the fences of examples.
func (d *Draft) Page() []byte {
	p := &page{b: d.Blueprint}
	title := d.Blueprint.Name
	if d.Blueprint.Version != "" {
		title += " " + d.Blueprint.Version
	}
	p.line("# Template %s", inline(title))
	p.line("")
	p.line("<!-- Made by `holdfast template docs`: a change here is lost. -->")
	if d.Blueprint.Description != "" {
		p.line("")
		p.line("%s", inline(d.Blueprint.Description))
	}
	p.providers()
	p.variables()
	p.rules()
	p.modules()
	p.outputs()
	p.examples(d.Examples)
	p.versions(d.Changelog)
	return []byte(p.text.String())
}

type page struct {
	b    templates.Blueprint
	text strings.Builder
}

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(&p.text, format, args...)
	p.text.WriteByte('\n')
}

func (p *page) heading(text string) {
	p.line("")
	p.line("## %s", text)
	p.line("")
}

// table writes rows whose cells are Markdown already.
func (p *page) table(header []string, rows [][]string) {
	p.line("| %s |", strings.Join(header, " | "))
	p.line("|%s", strings.Repeat("---|", len(header)))
	for _, row := range rows {
		p.line("| %s |", strings.Join(row, " | "))
	}
}

var spaces = regexp.MustCompile(`\s+`)

// inline makes text that stays text: on one line, and with nothing that Markdown
// or HTML would take for its own. Code spans stay, as authors write them.
func inline(s string) string {
	s = spaces.ReplaceAllString(strings.TrimSpace(strings.ToValidUTF8(s, "?")), " ")
	var b strings.Builder
	for i, piece := range strings.Split(s, "`") {
		if i%2 == 1 && strings.Count(s, "`")%2 == 0 {
			b.WriteString(code(piece))
			continue
		}
		if i > 0 && strings.Count(s, "`")%2 == 1 {
			b.WriteString("\\`")
		}
		b.WriteString(escape(piece))
	}
	return b.String()
}

func escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '>':
			b.WriteString("&gt;")
			continue
		case r == '&':
			b.WriteString("&amp;")
			continue
		case strings.ContainsRune(`\|*[]~$`, r),
			r == '_' && (i == 0 || !wordAround(s, i)),
			i == 0 && strings.ContainsRune("#+-", r), r == '@', r == '!':
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// wordAround reports whether the underscore at i is inside of a word, where it
// means nothing to Markdown.
func wordAround(s string, i int) bool {
	word := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	return i > 0 && i+1 < len(s) && word(s[i-1]) && word(s[i+1])
}

// code makes a code span, also in a table.
func code(s string) string {
	s = spaces.ReplaceAllString(strings.ToValidUTF8(s, "?"), " ")
	if strings.TrimSpace(s) == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	// A pipe ends a cell even in a code span, unless there is a backslash.
	return fence + strings.ReplaceAll(s, "|", `\|`) + fence
}

func codes(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = code(w)
	}
	return strings.Join(out, ", ")
}

func (p *page) providers() {
	p.heading("Providers")
	var rows [][]string
	for _, provider := range p.b.Providers {
		row := []string{code(provider.Name), "any", "any", ""}
		if len(provider.Regions) > 0 {
			row[1] = codes(provider.Regions)
		}
		if len(provider.InstanceTypes) > 0 {
			row[2] = codes(provider.InstanceTypes)
		}
		var defaults []string
		for _, name := range slices.Sorted(maps.Keys(provider.Defaults)) {
			defaults = append(defaults, code(name+": "+jsonOf(provider.Defaults[name])))
		}
		row[3] = strings.Join(defaults, ", ")
		rows = append(rows, row)
	}
	p.table([]string{"Provider", "Regions", "Instance types", "Defaults"}, rows)
	rows = nil
	for _, provider := range p.b.Providers {
		for _, e := range provider.Configure {
			rows = append(rows, []string{code(provider.Name), code(e.Name), code(e.Source), code(e.Version)})
		}
	}
	if len(rows) > 0 {
		p.line("")
		p.line("The root module configures these providers of the engine:")
		p.line("")
		p.table([]string{"For", "Provider", "Source", "Version"}, rows)
	}
}

// variable is a row of the table of variables.
type variable struct {
	path     string
	schema   map[string]any
	required bool
}

// flatten lists a schema's properties, each before what is below it.
func flatten(prefix string, schema map[string]any, depth int) []variable {
	const deepest = 6
	properties, _ := schema["properties"].(map[string]any)
	if depth > deepest {
		return nil
	}
	required, _ := schema["required"].([]any)
	var out []variable
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any)
		out = append(out, variable{prefix + name, property, slices.Contains(required, any(name))})
		out = append(out, parts(prefix+name, property, depth)...)
	}
	return out
}

func parts(at string, schema map[string]any, depth int) []variable {
	out := flatten(at+".", schema, depth+1)
	if items, ok := schema["items"].(map[string]any); ok {
		out = append(out, flatten(at+"[].", items, depth+1)...)
	}
	if values, ok := schema["additionalProperties"].(map[string]any); ok {
		out = append(out, flatten(at+".*.", values, depth+1)...)
	}
	return out
}

func (p *page) variables() {
	p.heading("Variables")
	all := flatten("", p.b.Schema, 0)
	if len(all) == 0 {
		p.line("There are none.")
		return
	}
	rows := make([][]string, len(all))
	for i, v := range all {
		fallback := ""
		if d, ok := v.schema["default"]; ok {
			fallback = code(jsonOf(d))
		}
		if !strings.ContainsAny(v.path, ".[") {
			fallback = cmp.Or(fallback, p.providerDefaults(v.path))
		}
		must := ""
		if v.required {
			must = "yes"
		}
		words, _ := v.schema["description"].(string)
		if v.schema["writeOnly"] == true {
			words = strings.TrimSpace("Secret: say where it is, such as `{secret: {env: NAME}}`. " + words)
		}
		rows[i] = []string{code(v.path), code(typeOf(v.schema)), fallback, must, allowed(v.schema), inline(words)}
	}
	p.table([]string{"Variable", "Type", "Default", "Required", "Allowed", "Description"}, rows)
}

// providerDefaults are a variable's defaults where only providers have one.
func (p *page) providerDefaults(name string) string {
	for _, provider := range p.b.Providers {
		if _, ok := provider.Defaults[name]; ok {
			return "by provider"
		}
	}
	return ""
}

func typeOf(schema map[string]any) string {
	switch t := schema["type"].(type) {
	case string:
		if items, ok := schema["items"].(map[string]any); ok && t == "array" {
			return "list of " + typeOf(items)
		}
		if values, ok := schema["additionalProperties"].(map[string]any); ok && t == "object" && schema["properties"] == nil {
			return "map of " + typeOf(values)
		}
		return map[string]string{"array": "list"}[t] + map[bool]string{true: t}[t != "array"]
	case []any:
		words := make([]string, len(t))
		for i, word := range t {
			words[i] = fmt.Sprint(word)
		}
		return strings.Join(words, " or ")
	}
	return "any"
}

// allowed says in words what a schema demands of a value.
func allowed(schema map[string]any) string {
	var out []string
	if fixed, ok := schema["const"]; ok {
		out = append(out, "only "+code(jsonOf(fixed)))
	}
	if values, ok := schema["enum"].([]any); ok {
		words := make([]string, len(values))
		for i, v := range values {
			words[i] = code(jsonOf(v))
		}
		out = append(out, "one of "+strings.Join(words, ", "))
	}
	between := func(from, to, unit string) {
		low, hasLow := schema[from]
		high, hasHigh := schema[to]
		switch {
		case hasLow && hasHigh:
			out = append(out, fmt.Sprintf("%s to %s%s", jsonOf(low), jsonOf(high), unit))
		case hasLow:
			out = append(out, fmt.Sprintf("at least %s%s", jsonOf(low), unit))
		case hasHigh:
			out = append(out, fmt.Sprintf("at most %s%s", jsonOf(high), unit))
		}
	}
	between("minimum", "maximum", "")
	for keyword, words := range map[string]string{"exclusiveMinimum": "more than ", "exclusiveMaximum": "less than ", "multipleOf": "a multiple of "} {
		if v, ok := schema[keyword]; ok {
			out = append(out, words+jsonOf(v))
		}
	}
	slices.Sort(out[min(len(out), 1):]) // the order of the map above is nobody's
	between("minLength", "maxLength", " characters")
	between("minItems", "maxItems", " items")
	between("minProperties", "maxProperties", " entries")
	if pattern, ok := schema["pattern"].(string); ok {
		out = append(out, "matches "+code(pattern))
	}
	if schema["format"] == "instance-type" {
		out = append(out, "an instance type of the provider")
	}
	if schema["uniqueItems"] == true {
		out = append(out, "no item twice")
	}
	return strings.Join(out, "; ")
}

func jsonOf(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "?"
	}
	return strings.TrimSpace(b.String())
}

func (p *page) rules() {
	if len(p.b.Rules) == 0 {
		return
	}
	p.heading("Rules")
	rows := make([][]string, len(p.b.Rules))
	for i, r := range p.b.Rules {
		rows[i] = []string{inline(r.Message), code(r.Rule)}
	}
	p.table([]string{"What must hold", "Rule"}, rows)
}

// modules draws one graph for all providers whose modules hang together in the
// same way.
func (p *page) modules() {
	p.heading("Modules")
	var graphs []string
	shared := map[string][]string{}
	for _, provider := range p.b.Providers {
		g := graph(provider)
		if shared[g] == nil {
			graphs = append(graphs, g)
		}
		shared[g] = append(shared[g], provider.Name)
	}
	for i, g := range graphs {
		if i > 0 {
			p.line("")
		}
		if len(graphs) > 1 {
			p.line("On %s:", codes(shared[g]))
			p.line("")
		}
		p.line("```mermaid")
		p.text.WriteString(g)
		p.line("```")
	}
	rows := [][]string{}
	for _, provider := range p.b.Providers {
		for _, m := range provider.Modules {
			rows = append(rows, []string{code(provider.Name), code(m.Name), code(strings.TrimSpace(m.Source + " " + m.Version)), cmp.Or(code(m.When), "always")})
		}
	}
	p.line("")
	p.table([]string{"Provider", "Module", "Source", "On when"}, rows)
}

// graph draws the modules of a provider, those that wait below those that they
// wait for.
func graph(provider templates.ProviderBlueprint) string {
	var b strings.Builder
	b.WriteString("graph TD\n")
	number := map[string]int{}
	for i, m := range provider.Modules {
		number[m.Name] = i
		label := m.Name
		if m.When != "" {
			label += "\nwhen " + m.When
		}
		shape := [2]string{"[", "]"}
		if m.When != "" {
			shape = [2]string{"([", "])"}
		}
		fmt.Fprintf(&b, "  m%d%s\"%s\"%s\n", i, shape[0], mermaid(label), shape[1])
	}
	for i, m := range provider.Modules {
		for _, need := range m.Needs {
			if from, ok := number[need]; ok {
				fmt.Fprintf(&b, "  m%d --> m%d\n", from, i)
			}
		}
	}
	return b.String()
}

// mermaid makes text that stays text in the label of a node.
func mermaid(s string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.ToValidUTF8(s, "?"), "\n") {
		if i > 0 {
			b.WriteString("<br/>")
		}
		for _, r := range line {
			switch {
			case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" _-.=!(),/'", r), r > 0x7f:
				b.WriteRune(r)
			default:
				fmt.Fprintf(&b, "#%d;", r)
			}
		}
	}
	return b.String()
}

func (p *page) outputs() {
	if len(p.b.Outputs) == 0 {
		return
	}
	p.heading("Outputs")
	means := map[string]string{
		holdfast.MeansEndpoint:   "the address of the API server",
		holdfast.MeansKubeconfig: "the kubeconfig",
		holdfast.MeansNodeCount:  "the number of nodes",
	}
	rows := make([][]string, len(p.b.Outputs))
	for i, o := range p.b.Outputs {
		sensitive := ""
		if o.Sensitive {
			sensitive = "yes"
		}
		rows[i] = []string{code(o.Name), code(o.Value), cmp.Or(means[o.Means], inline(o.Means)), sensitive, inline(o.Description)}
	}
	p.table([]string{"Output", "Value", "To Holdfast", "Sensitive", "Description"}, rows)
}

func (p *page) examples(list []Example) {
	if len(list) == 0 {
		return
	}
	p.heading("Examples")
	shown := map[string]bool{}
	for _, e := range list {
		if shown[e.File] {
			continue // a file with several clusters
		}
		if len(shown) > 0 {
			p.line("")
		}
		shown[e.File] = true
		fence := "```"
		for strings.Contains(string(e.Text), fence) {
			fence += "`"
		}
		p.line("### %s", inline(strings.TrimSuffix(path.Base(e.File), path.Ext(e.File))))
		p.line("")
		p.line("%syaml\n%s\n%s", fence, strings.TrimSpace(string(e.Text)), fence)
	}
}

// versions shows the headings of the changelog with what is below them.
func (p *page) versions(changelog []byte) {
	_, sections, found := strings.Cut("\n"+strings.ReplaceAll(string(changelog), "\r\n", "\n"), "\n## ")
	if !found {
		return
	}
	p.heading("Versions")
	first := true
	for section := range strings.SplitSeq(sections, "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		if !first {
			p.line("")
		}
		first = false
		p.line("### %s", inline(title))
		if body = plain(body); body != "" {
			p.line("")
			p.line("%s", body)
		}
	}
}

// tag is where HTML begins.
var tag = regexp.MustCompile(`<([A-Za-z/!?])`)

// plain keeps the Markdown of a changelog, without HTML, and with its headings
// below ours.
func plain(body string) string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSpace(body), "\n") {
		line = tag.ReplaceAllString(strings.ToValidUTF8(strings.TrimRight(line, " \t"), "?"), "&lt;$1")
		if strings.HasPrefix(line, "#") {
			line = "#" + line
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
