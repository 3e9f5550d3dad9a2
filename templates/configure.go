package templates

import (
	"fmt"
	"regexp"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/hclvalue"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// engineProvider is a provider of the engine that the root module configures.
type engineProvider struct {
	name, source, version string
	body                  engineBlock
	refers                []string // the modules that its arguments refer to
	at                    *yaml.Node
}

// engineBlock is the inside of a block: arguments, and blocks in order.
type engineBlock struct {
	kind      string // of a nested block
	arguments map[string]any
	keys      map[string]*yaml.Node // of the arguments
	blocks    []engineBlock
}

func (b engineBlock) empty() bool { return len(b.arguments) == 0 && len(b.blocks) == 0 }

var (
	providerLocalName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	providerSource    = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/)?[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9][A-Za-z0-9_-]*$`)
)

// readConfigure reads the providers of the engine that the root module
// configures.
func (l *templateLoader) readConfigure(p *provider, o *decode.Object) {
	seen := map[string]bool{}
	for i, item := range o.Items("configure") {
		c := l.Object(item, fmt.Sprintf("%s[%d]", o.Label("configure"), i))
		e := engineProvider{name: c.Required("name"), source: c.Required("source"), version: c.Text("version"), at: item}
		switch {
		case e.name == "":
		case !providerLocalName.MatchString(e.name):
			l.Add(c.Get("name"), fmt.Sprintf("%q cannot be the name of a provider of the engine", wording.Clip(e.name)), "use a-z, 0-9 and - inside, as the modules call it")
		case seen[e.name]:
			l.Add(c.Get("name"), fmt.Sprintf("provider %q is configured twice", e.name), "remove one")
		}
		seen[e.name] = true
		if e.source != "" && !providerSource.MatchString(e.source) {
			l.Add(c.Get("source"), fmt.Sprintf("%q is not a provider source", wording.Clip(e.source)), "write [host/]namespace/type, such as hashicorp/aws")
		}
		c.Constraint("version", e.version)
		if when := c.Get("when"); when != nil {
			l.Add(when, "a configured provider has no when", "what a module made is destroyed when it is switched off, and that needs its provider: give the when to the module")
		}
		e.body = l.block(c)
		for _, name := range []string{"alias", "version"} {
			if at := e.body.keys[name]; at != nil {
				hint := "every provider is configured once"
				if name == "version" {
					hint = "write it next to source"
				}
				l.Add(at, fmt.Sprintf("%s is not an argument of a provider here", name), hint)
			}
		}
		c.Done()
		e.refers = modulesIn(e.body.values())
		p.configure = append(p.configure, e)
	}
}

// block reads arguments and blocks.
func (l *templateLoader) block(o *decode.Object) engineBlock {
	b := engineBlock{arguments: map[string]any{}, keys: map[string]*yaml.Node{}}
	arguments := o.Child("arguments")
	for i := 0; arguments.Node != nil && i+1 < len(arguments.Node.Content); i += 2 {
		key := arguments.Node.Content[i]
		switch {
		case !decode.IsIdentifier(key.Value):
			l.Add(key, fmt.Sprintf("%q cannot be the name of an argument", wording.Clip(key.Value)), "use letters, digits, _ and -")
			continue
		case slices.Contains([]string{"count", "depends_on", "for_each", "source"}, key.Value):
			l.Add(key, fmt.Sprintf("%q cannot be the name of an argument: it means something else to the engine", key.Value), "")
			continue
		}
		b.arguments[key.Value] = l.template(arguments.Node.Content[i+1])
		b.keys[key.Value] = key
	}
	for i, item := range o.Items("blocks") {
		inner := l.Object(item, fmt.Sprintf("%s[%d]", o.Label("blocks"), i))
		kind := inner.Required("type")
		switch {
		case kind == "":
		case !decode.IsIdentifier(kind):
			l.Add(inner.Get("type"), fmt.Sprintf("%q cannot be the type of a block", wording.Clip(kind)), "use letters, digits, _ and -")
		case slices.Contains([]string{"_", "dynamic", "lifecycle", "locals"}, kind):
			l.Add(inner.Get("type"), fmt.Sprintf("%q cannot be the type of a block: it means something else to the engine", kind), "")
		}
		below := l.block(inner)
		below.kind = kind
		inner.Done()
		b.blocks = append(b.blocks, below)
	}
	return b
}

// values are all arguments, those of the blocks inside too.
func (b engineBlock) values() []any {
	out := []any{b.arguments}
	for _, below := range b.blocks {
		out = append(out, below.values()...)
	}
	return out
}

// eachReference calls visit with each reference and its place.
func (b engineBlock) eachReference(visit func(ref hclvalue.Part, at *yaml.Node)) {
	for _, name := range sortedKeys(b.arguments) {
		hclvalue.References(b.arguments[name], func(ref hclvalue.Part) { visit(ref, b.keys[name]) })
	}
	for _, below := range b.blocks {
		below.eachReference(visit)
	}
}
