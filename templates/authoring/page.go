package authoring

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/unseen"
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
	return []byte(strings.Map(shown, p.text.String()))
}

// shown removes what would control a terminal, is not seen, or changes how others are
// read.
func shown(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
	case unicode.IsControl(r), unseen.Is(r):
		return '?'
	}
	return r
}

type page struct {
	b    templates.Blueprint
	text strings.Builder
	open []string // references whose schemas are being listed
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

func (p *page) providers() {
	p.heading("Providers")
	for i, provider := range p.b.Providers {
		if i > 0 {
			p.line("")
		}
		p.line("### %s", inline(provider.Name))
		p.line("")
		p.list("Regions", "any", provider.Regions)
		p.list("Instance types", "any", provider.InstanceTypes)
		var defaults, engines []string
		for _, name := range slices.Sorted(maps.Keys(provider.Defaults)) {
			defaults = append(defaults, name+": "+jsonOf(provider.Defaults[name]))
		}
		for _, e := range provider.Configure {
			engines = append(engines, strings.TrimSpace(e.Source+" "+e.Version))
		}
		p.list("Defaults", "none", defaults)
		p.list("Providers of the engine that the root module configures", "none", engines)
	}
}

// list writes words after a title, and folds those that would fill the page.
func (p *page) list(title, none string, words []string) {
	const most = 16
	switch {
	case len(words) == 0:
		p.line("- %s: %s", title, none)
	case len(words) <= most:
		p.line("- %s: %s", title, codes(words))
	default:
		p.line("- %s: <details><summary>%s (%d in all)</summary>%s</details>",
			title, html(some(words)), len(words), html(strings.Join(words, ", ")))
	}
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

// modules draws one graph for all providers whose modules depend on one another in the
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
	p.line("")
	p.table([]string{"Module", "On when", "Source"}, p.moduleRows())
}

// moduleRows has one row for each module, with the source for each provider
// where they differ.
func (p *page) moduleRows() [][]string {
	type row struct {
		name, when string
		sources    []string
		providers  map[string][]string
	}
	var rows []*row
	for _, provider := range p.b.Providers {
		for _, m := range provider.Modules {
			i := slices.IndexFunc(rows, func(r *row) bool { return r.name == m.Name && r.when == m.When })
			if i < 0 {
				i = len(rows)
				rows = append(rows, &row{name: m.Name, when: m.When, providers: map[string][]string{}})
			}
			source := strings.TrimSpace(m.Source + " " + m.Version)
			if rows[i].providers[source] == nil {
				rows[i].sources = append(rows[i].sources, source)
			}
			rows[i].providers[source] = append(rows[i].providers[source], provider.Name)
		}
	}
	out := make([][]string, len(rows))
	for i, r := range rows {
		sources := make([]string, len(r.sources))
		for j, source := range r.sources {
			sources[j] = code(source)
			if len(r.providers[source]) < len(p.b.Providers) {
				sources[j] += " on " + inline(strings.Join(r.providers[source], ", "))
			}
		}
		out[i] = []string{code(r.name), cmp.Or(code(r.when), "always"), strings.Join(sources, "; ")}
	}
	return out
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
			label += "\nwhen " + shorten(m.When)
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

// shorten keeps what fits into a node: the table has all of it.
func shorten(s string) string {
	const most = 60
	s = spaces.ReplaceAllString(s, " ")
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
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
		holdfast.OutputRoleEndpoint:   "the address of the API server",
		holdfast.OutputRoleKubeconfig: "the kubeconfig",
		holdfast.OutputRoleNodeCount:  "the number of nodes",
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
		fence := fenceFor(string(e.Text), 3)
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
