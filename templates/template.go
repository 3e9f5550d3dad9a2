package templates

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/condition"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/hclvalue"
	"github.com/holdfast-dev/holdfast/templates/lru"
	"github.com/holdfast-dev/holdfast/templates/modules"
	"github.com/holdfast-dev/holdfast/templates/schema"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Template is a template document that was read with its modules. It is
// immutable and safe for concurrent use.
type Template struct {
	Name        string
	Version     string // metadata.version: what it is, or is being prepared; may be empty
	Description string
	File        string // path of its template.yaml in the tree that it was read from
	NameLine    int    // where File says the name

	providers map[string]*provider
	schema    *schema.Schema
	general   *schema.Checker // of a provider that allows any instance type; nil: the schema is at fault
	rules     []rule
	uses      map[string]bool  // variables whose values expressions need
	outputs   []templateOutput // by name
	blueprint Blueprint
	lockFile  modules.Entry // provider lock file next to the template; zero: none
	values    int           // in its document, once aliases are replaced
}

// provider is what a template makes for one provider.
type provider struct {
	name      string
	template  *Template
	defaults  map[string]any
	regions   []string
	schema    *schema.Checker
	configure []engineProvider
	calls     []templateCall // in the order of their dependencies
	parts     map[string]*modules.Part
	digests   map[string]holdfast.Digest // of the folders of modules
	digest    holdfast.Digest            // of the modules in the repository, all of them
	variants  *lru.Cache[*variant]

	instanceTypes []string // patterns; empty: any
}

// templateCall is a module that a template calls.
type templateCall struct {
	name, source, version string
	dir                   string   // of a local module, in the tree
	dirs                  []string // the same, and those that it reaches
	when                  *condition.Expression
	inputs                map[string]any
	refers                map[string][]string // the modules that an input refers to, by input
	dependsOn             []string
	at                    *yaml.Node
	keys                  map[string]*yaml.Node // of the inputs
	whenAt                *yaml.Node
	written               map[string]string // the inputs as they were written
}

// templateOutput is an output of a template.
type templateOutput struct {
	name, description string
	value             any
	refers            []string // the modules that it refers to
	sensitive         bool
	means             string
	at                *yaml.Node
	written           string
}

// Blueprint returns the template as data.
func (t *Template) Blueprint() Blueprint { return t.blueprint }

// Providers returns the names of the providers that the template knows.
func (t *Template) Providers() []string { return slices.Sorted(maps.Keys(t.providers)) }

// Variables returns the names of the variables that the template declares.
func (t *Template) Variables() []string { return slices.Clone(t.schema.Names) }

const (
	templateFile = "template.yaml"
	lockFileName = ".terraform.lock.hcl"
	rootDir      = "root"     // of a bundle made from a template
	modulesDir   = "template" // where such a bundle has the template repository's folders
)

// loadTemplate reads the template in a folder of a tree, with the modules that
// it composes, and returns all that is wrong with it. The error is the tree's;
// a folder without a template.yaml is a fault.
func loadTemplate(tree holdfast.Tree, dir string, folders *lru.Cache[*modules.Folder]) (*Template, holdfast.Faults, error) {
	file := path.Join(dir, templateFile)
	data, err := tree.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, holdfast.Faults{{File: file, Message: "no template here", Hint: "a template is a folder with a " + templateFile}}, nil
	} else if why, ok := modules.Refused(err); ok {
		return nil, holdfast.Faults{{File: file, Message: "file " + why}}, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", file, err)
	}
	roots, syntax := decode.Parse(file, data)
	if syntax != nil {
		return nil, holdfast.Faults{*syntax}, nil
	}
	r := &decode.Reader{File: file}
	var root *yaml.Node
	for _, n := range roots {
		if !r.IsKind(n, decode.KindTemplate) {
			continue
		}
		if root != nil {
			r.Add(n, "a second template in one file", "give it a folder of its own")
			break
		}
		root = n
	}
	if root == nil {
		if len(r.Faults) == 0 {
			r.Add(nil, "no document of kind Template in the file", "write apiVersion: "+decode.APIVersion+" and kind: Template")
		}
		return nil, r.Faults, nil
	}
	root = r.Expand(root)
	if len(r.Faults) > 0 {
		return nil, r.Faults, nil
	}
	l := &templateLoader{Reader: r, tree: tree, dir: dir, folders: folders, t: &Template{
		File: file, providers: map[string]*provider{}, schema: schema.New(nil), uses: map[string]bool{},
		values: countValues(root),
	}}
	if err := l.load(root); err != nil {
		return nil, nil, err
	}
	decode.SortFaults(r.Faults)
	return l.t, r.Faults, nil
}

// countValues counts a value and all that are in it.
func countValues(n *yaml.Node) int {
	count := 1
	for _, inner := range n.Content {
		count += countValues(inner)
	}
	return count
}

type templateLoader struct {
	*decode.Reader
	tree    holdfast.Tree
	dir     string
	folders *lru.Cache[*modules.Folder]
	t       *Template
	dialect *condition.Dialect

	schemaNode *yaml.Node // spec.variables
	ruleTexts  []string
}

func (l *templateLoader) load(root *yaml.Node) error {
	top := l.Object(root, "")
	top.Get("apiVersion")
	top.Get("kind")
	l.metadata(top.Child("metadata"))
	if !top.Has("spec") {
		top.Get("spec")
		top.Missing("spec")
		top.Done()
		return nil
	}
	spec := top.Child("spec")
	l.variables(spec.Child("variables"))
	var err error
	if l.dialect, err = condition.NewDialect(l.t.schema); err != nil {
		return err
	}
	l.readOutputs(spec.Child("outputs"))
	providers := spec.Child("providers")
	if providers.Node == nil || len(providers.Node.Content) == 0 {
		spec.Missing("providers")
	}
	rules := spec.Items("rules")
	for _, item := range rules {
		text, _ := decode.ScalarOf(item, "rule")
		l.ruleTexts = append(l.ruleTexts, text)
	}
	spec.Done()
	top.Done()
	if err := l.readLockFile(); err != nil {
		return err
	}
	for i := 0; providers.Node != nil && i+1 < len(providers.Node.Content); i += 2 {
		if i >= 2*maxProviders {
			l.Add(providers.Node.Content[i], fmt.Sprintf("spec.providers has more than %d providers", maxProviders), "")
			break
		}
		name := providers.Node.Content[i].Value
		p := l.provider(name, providers.Child(name))
		l.t.providers[name] = p
		if err := l.modules(p); err != nil {
			return err
		}
		l.check(p)
	}
	l.readRules(rules)
	for _, p := range l.t.providers {
		if p.schema != nil {
			p.schema.Seal()
		}
	}
	if l.t.general != nil {
		l.t.general.Seal()
	}
	l.t.blueprint = l.t.describe()
	return nil
}

func (l *templateLoader) metadata(o *decode.Object) {
	l.t.Name = o.Name("name")
	if at := o.Get("name"); at != nil {
		l.t.NameLine = at.Line
	}
	l.t.Description = o.Text("description")
	if o.Get("version") != nil {
		l.t.Version = o.ExactVersion("version")
	}
	o.Done()
}

func (l *templateLoader) readLockFile() error {
	name := path.Join(l.dir, lockFileName)
	hash, err := l.tree.Hash(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("hash %s: %w", name, err)
	}
	l.t.lockFile = modules.Entry{Path: path.Join(rootDir, lockFileName), Source: name, Hash: hash}
	return nil
}

// template parses a value that may have references.
func (l *templateLoader) template(n *yaml.Node) any {
	return hclvalue.Parse(l.Value(n), func(err error) {
		l.Add(n, err.Error(), "write ${var.x}, ${module.x.y} or ${cluster.x}, and $${ for a literal ${")
	})
}

func (l *templateLoader) provider(name string, o *decode.Object) *provider {
	p := &provider{
		name: name, template: l.t, parts: map[string]*modules.Part{}, digests: map[string]holdfast.Digest{},
		variants: lru.New[*variant](maxVariants),
	}
	if !decode.ValidName(name) {
		l.Add(o.Node, fmt.Sprintf("%q cannot be the name of a provider", wording.Clip(name)), decode.NameHint)
	}
	p.regions, _ = o.Strings("regions")
	l.providerSchema(p, o)
	l.defaults(p, o.Child("defaults"))
	l.readConfigure(p, o)
	seen := map[string]bool{}
	for i, item := range o.Items("modules") {
		call, ok := l.call(p, l.Object(item, fmt.Sprintf("%s[%d]", o.Label("modules"), i)))
		switch {
		case !ok:
		case seen[call.name]:
			l.Add(item, fmt.Sprintf("module %q is given twice", call.name), "")
		default:
			seen[call.name] = true
			p.calls = append(p.calls, call)
		}
	}
	if !o.Has("modules") {
		o.Missing("modules")
	}
	o.Done()
	return p
}

func (l *templateLoader) call(p *provider, o *decode.Object) (call templateCall, ok bool) {
	before := len(l.Faults)
	call = templateCall{name: o.Required("name"), source: o.Required("source"), at: o.Node}
	if call.name != "" && !decode.IsIdentifier(call.name) {
		l.Add(o.Get("name"), fmt.Sprintf("%q cannot be the name of a module", wording.Clip(call.name)), "use letters, digits, _ and -")
	}
	call.version = o.Text("version")
	call.dependsOn, _ = o.Strings("dependsOn")
	call.when, call.whenAt = l.when(p, o, fmt.Sprintf("module %q", call.name))
	l.inputs(o.Child("inputs"), &call)
	o.Done()
	l.source(o, &call)
	return call, len(l.Faults) == before || call.name != ""
}

func (l *templateLoader) inputs(o *decode.Object, call *templateCall) {
	call.inputs, call.refers = map[string]any{}, map[string][]string{}
	call.keys, call.written = map[string]*yaml.Node{}, map[string]string{}
	for i := 0; o.Node != nil && i+1 < len(o.Node.Content); i += 2 {
		key, value := o.Node.Content[i], o.Node.Content[i+1]
		switch {
		case !decode.IsIdentifier(key.Value):
			l.Add(key, fmt.Sprintf("%q cannot be the name of an input", wording.Clip(key.Value)), "use letters, digits, _ and -")
			continue
		case slices.Contains(reservedVariables(), key.Value):
			l.Add(key, fmt.Sprintf("%q cannot be the name of an input: it means something else to the engine", key.Value), "")
			continue
		}
		call.inputs[key.Value] = l.template(value)
		call.refers[key.Value] = modulesIn(call.inputs[key.Value])
		call.written[key.Value] = asWritten(l.Value(value))
		call.keys[key.Value] = key
	}
}

// modulesIn returns the modules that a parsed template refers to, sorted.
func modulesIn(v any) []string {
	var out []string
	hclvalue.References(v, func(ref hclvalue.Part) {
		if ref.Words[0] == "module" && len(ref.Words) > 1 {
			out = append(out, ref.Words[1])
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// asWritten is a value as text: what is not text, as JSON.
func asWritten(v any) string {
	if word, ok := v.(string); ok {
		return word
	}
	return wording.JSON(v)
}

func (l *templateLoader) source(o *decode.Object, call *templateCall) {
	at := o.Get("source")
	switch {
	case call.source == "":
	case modules.IsLocal(call.source):
		dir, ok := modules.Within(l.dir, call.source)
		if !ok {
			l.Add(at, fmt.Sprintf("module source %q leaves the repository", wording.Clip(call.source)), "")
			return
		}
		call.dir = dir
		if o.Has("version") {
			l.Add(o.Get("version"), "a local module has no version", "remove it")
		}
	default:
		if problem, hint := modules.Pinned(call.source, call.version); problem != "" {
			l.Add(at, fmt.Sprintf("module source %q %s", wording.Clip(call.source), problem), hint)
		}
	}
}

// modules reads the local modules of a provider.
func (l *templateLoader) modules(p *provider) error {
	g := modules.NewGatherer(l.tree, l.folders)
	interfaces := map[string]*modules.Module{}
	for _, call := range p.calls {
		if call.dir == "" {
			continue
		}
		_, source := decode.Lookup(call.at, "source")
		err := g.Gather(call.dir, func() holdfast.Fault {
			return holdfast.Fault{
				File: l.File, Line: source.Line, Column: source.Column,
				Message: fmt.Sprintf("module source %q: there is no folder %s", wording.Clip(call.source), call.dir),
			}
		})
		if err != nil {
			return fmt.Errorf("read module %s: %w", call.dir, err)
		}
		if m := g.Modules[call.dir]; m.Files > 0 {
			interfaces[call.name] = m
		} else if slices.Contains(g.Dirs, call.dir) {
			l.Add(source, fmt.Sprintf("module source %q: the folder has no .tf file", wording.Clip(call.source)), "")
		}
	}
	for _, fault := range g.Faults {
		l.Put(fault)
	}
	digest := holdfast.NewDigester("modules")
	for _, dir := range slices.Sorted(slices.Values(g.Dirs)) {
		digest.Add(dir, string(g.Digests[dir]))
		for _, call := range g.Modules[dir].Calls {
			if problem, hint := modules.Pinned(call.Source, call.Version); !modules.IsLocal(call.Source) && problem != "" {
				l.Put(holdfast.Fault{
					File: path.Join(dir, call.File), Line: call.Line, Column: call.Column,
					Message: fmt.Sprintf("module source %q %s", wording.Clip(call.Source), problem), Hint: hint,
				})
			}
		}
	}
	g.AddExtra(digest)
	p.digest = digest.Digest()
	for i, call := range p.calls {
		if call.dir != "" {
			p.calls[i].dirs = g.Closure(call.dir)
		}
	}
	p.parts, p.digests = g.Parts, g.Digests
	l.interfaces(p, interfaces)
	return nil
}
