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
)

// Template is a template document that was read with its modules. It is
// immutable and safe for concurrent use.
type Template struct {
	Name        string
	Version     string // metadata.version: what it is, or is being prepared; may be empty
	Description string
	File        string // path of its template.yaml in the tree that it was read from

	providers map[string]*provider
	schema    *schema
	rules     []rule
	uses      map[string]bool  // variables whose values expressions need
	outputs   []templateOutput // by name
	blueprint Blueprint
	lockFile  entry // provider lock file beside the template; zero: none
}

// provider is what a template makes for one provider.
type provider struct {
	name      string
	template  *Template
	defaults  map[string]any
	regions   []string
	schema    *providerSchema
	configure []engineProvider
	calls     []templateCall // in the order of their dependencies
	parts     map[string]*gathered
	digests   map[string]holdfast.Digest // of the folders of modules
	digest    holdfast.Digest            // of the modules in the repository, all of them
	variants  *cache[*variant]

	instanceTypes []string // patterns; empty: any
}

// templateCall is a module that a template calls.
type templateCall struct {
	name, source, version string
	dir                   string   // of a local module, in the tree
	dirs                  []string // the same, and those that it reaches
	when                  *expression
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
func (t *Template) Variables() []string { return slices.Clone(t.schema.names) }

const (
	templateFile = "template.yaml"
	lockFileName = ".terraform.lock.hcl"
	rootDir      = "root"     // of a bundle made from a template
	modulesDir   = "template" // where such a bundle has the template repository's folders
)

// loadTemplate reads the template in a folder of a tree, with the modules that
// it composes, and returns all that is wrong with it. The error is the tree's;
// a folder without a template.yaml is a fault.
func loadTemplate(tree holdfast.Tree, dir string, folders *cache[*folder]) (*Template, holdfast.Faults, error) {
	file := path.Join(dir, templateFile)
	data, err := tree.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, holdfast.Faults{{File: file, Message: "no template here", Hint: "a template is a folder with a " + templateFile}}, nil
	} else if why, ok := refused(err); ok {
		return nil, holdfast.Faults{{File: file, Message: "file " + why}}, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", file, err)
	}
	roots, syntax := parseYAML(file, data)
	if syntax != nil {
		return nil, holdfast.Faults{*syntax}, nil
	}
	r := &reader{file: file}
	var root *yaml.Node
	for _, n := range roots {
		if !r.isKind(n, kindTemplate) {
			continue
		}
		if root != nil {
			r.add(n, "a second template in one file", "give it a folder of its own")
			break
		}
		root = n
	}
	if root == nil {
		if len(r.faults) == 0 {
			r.add(nil, "no document of kind Template in the file", "write apiVersion: "+apiVersion+" and kind: Template")
		}
		return nil, r.faults, nil
	}
	root = r.expand(root)
	if len(r.faults) > 0 {
		return nil, r.faults, nil
	}
	l := &templateLoader{reader: r, tree: tree, dir: dir, folders: folders, t: &Template{
		File: file, providers: map[string]*provider{}, schema: newSchema(nil), uses: map[string]bool{},
	}}
	if err := l.load(root); err != nil {
		return nil, nil, err
	}
	sortFaults(r.faults)
	return l.t, r.faults, nil
}

type templateLoader struct {
	*reader
	tree    holdfast.Tree
	dir     string
	folders *cache[*folder]
	t       *Template
	general *providerSchema // of a provider that allows any instance type; nil: the schema is at fault
	dialect *dialect

	schemaNode *yaml.Node // spec.variables
	ruleTexts  []string
}

func (l *templateLoader) load(root *yaml.Node) error {
	top := l.object(root, "")
	top.get("apiVersion")
	top.get("kind")
	l.metadata(top.child("metadata"))
	if !top.has("spec") {
		top.get("spec")
		top.missing("spec")
		top.done()
		return nil
	}
	spec := top.child("spec")
	l.variables(spec.child("variables"))
	var err error
	if l.dialect, err = newDialect(l.t.schema); err != nil {
		return err
	}
	l.readOutputs(spec.child("outputs"))
	providers := spec.child("providers")
	if providers.node == nil || len(providers.node.Content) == 0 {
		spec.missing("providers")
	}
	rules := spec.items("rules")
	for _, item := range rules {
		text, _ := scalarOf(item, "rule")
		l.ruleTexts = append(l.ruleTexts, text)
	}
	spec.done()
	top.done()
	if err := l.readLockFile(); err != nil {
		return err
	}
	for i := 0; providers.node != nil && i+1 < len(providers.node.Content); i += 2 {
		if i >= 2*maxProviders {
			l.add(providers.node.Content[i], fmt.Sprintf("spec.providers has more than %d providers", maxProviders), "")
			break
		}
		name := providers.node.Content[i].Value
		p := l.provider(name, providers.child(name))
		l.t.providers[name] = p
		if err := l.modules(p); err != nil {
			return err
		}
		l.check(p)
	}
	l.readRules(rules)
	for _, p := range l.t.providers {
		if p.schema != nil {
			p.schema.compiler = nil // it is larger than what it makes
		}
	}
	l.t.blueprint = l.t.describe()
	return nil
}

func (l *templateLoader) metadata(o *object) {
	l.t.Name = o.name("name")
	l.t.Description = o.str("description")
	if version := o.get("version"); version != nil {
		l.t.Version = l.exactVersion(o, version)
	}
	o.done()
}

func (l *templateLoader) readLockFile() error {
	name := path.Join(l.dir, lockFileName)
	hash, err := l.tree.Hash(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("hash %s: %w", name, err)
	}
	l.t.lockFile = entry{path: path.Join(rootDir, lockFileName), source: name, hash: hash}
	return nil
}

// template parses a value that may have references.
func (l *templateLoader) template(n *yaml.Node) any {
	return parseTemplate(l.value(n), func(err error) {
		l.add(n, err.Error(), "write ${var.x}, ${module.x.y} or ${cluster.x}, and $${ for a literal ${")
	})
}

func (l *templateLoader) provider(name string, o *object) *provider {
	p := &provider{
		name: name, template: l.t, parts: map[string]*gathered{}, digests: map[string]holdfast.Digest{},
		variants: newCache[*variant](maxVariants),
	}
	if !validName(name) {
		l.add(o.node, fmt.Sprintf("%q cannot be the name of a provider", clip(name)), nameHint)
	}
	p.regions, _ = o.strings("regions")
	l.providerSchema(p, o)
	l.defaults(p, o.child("defaults"))
	l.readConfigure(p, o)
	seen := map[string]bool{}
	for i, item := range o.items("modules") {
		call, ok := l.call(p, l.object(item, fmt.Sprintf("%s[%d]", o.label("modules"), i)))
		switch {
		case !ok:
		case seen[call.name]:
			l.add(item, fmt.Sprintf("module %q is there twice", call.name), "")
		default:
			seen[call.name] = true
			p.calls = append(p.calls, call)
		}
	}
	if !o.has("modules") {
		o.missing("modules")
	}
	o.done()
	return p
}

func (l *templateLoader) call(p *provider, o *object) (call templateCall, ok bool) {
	before := len(l.faults)
	call = templateCall{name: o.required("name"), source: o.required("source"), at: o.node}
	if call.name != "" && !identifier.MatchString(call.name) {
		l.add(o.get("name"), fmt.Sprintf("%q cannot be the name of a module", clip(call.name)), "use letters, digits, _ and -")
	}
	call.version = o.str("version")
	call.dependsOn, _ = o.strings("dependsOn")
	call.when, call.whenAt = l.when(p, o, fmt.Sprintf("module %q", call.name))
	l.inputs(o.child("inputs"), &call)
	o.done()
	l.source(o, &call)
	return call, len(l.faults) == before || call.name != ""
}

func (l *templateLoader) inputs(o *object, call *templateCall) {
	call.inputs, call.refers = map[string]any{}, map[string][]string{}
	call.keys, call.written = map[string]*yaml.Node{}, map[string]string{}
	for i := 0; o.node != nil && i+1 < len(o.node.Content); i += 2 {
		key, value := o.node.Content[i], o.node.Content[i+1]
		switch {
		case !identifier.MatchString(key.Value):
			l.add(key, fmt.Sprintf("%q cannot be the name of an input", clip(key.Value)), "use letters, digits, _ and -")
			continue
		case slices.Contains(reservedVariables(), key.Value):
			l.add(key, fmt.Sprintf("%q cannot be the name of an input: it means something else to the engine", key.Value), "")
			continue
		}
		call.inputs[key.Value] = l.template(value)
		call.refers[key.Value] = modulesIn(call.inputs[key.Value])
		call.written[key.Value] = asWritten(l.value(value))
		call.keys[key.Value] = key
	}
}

// modulesIn returns the modules that a parsed template refers to, sorted.
func modulesIn(v any) []string {
	var out []string
	references(v, func(ref part) {
		if ref.ref[0] == "module" && len(ref.ref) > 1 {
			out = append(out, ref.ref[1])
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// asWritten is a value as text: what is no text, as JSON.
func asWritten(v any) string {
	if word, ok := v.(string); ok {
		return word
	}
	return jsonText(v)
}

func (l *templateLoader) source(o *object, call *templateCall) {
	at := o.get("source")
	switch {
	case call.source == "":
	case isLocal(call.source):
		dir, ok := within(l.dir, call.source)
		if !ok {
			l.add(at, fmt.Sprintf("module source %q leaves the repository", clip(call.source)), "")
			return
		}
		call.dir = dir
		if o.has("version") {
			l.add(o.get("version"), "a local module has no version", "remove it")
		}
	default:
		if problem, hint := pinned(call.source, call.version); problem != "" {
			l.add(at, fmt.Sprintf("module source %q %s", clip(call.source), problem), hint)
		}
	}
}

// modules reads the local modules of a provider.
func (l *templateLoader) modules(p *provider) error {
	g := newGatherer(l.tree, l.folders)
	interfaces := map[string]*module{}
	for _, call := range p.calls {
		if call.dir == "" {
			continue
		}
		_, source := lookup(call.at, "source")
		err := g.gather(call.dir, func() holdfast.Fault {
			return holdfast.Fault{
				File: l.file, Line: source.Line, Column: source.Column,
				Message: fmt.Sprintf("module source %q: there is no folder %s", clip(call.source), call.dir),
			}
		})
		if err != nil {
			return fmt.Errorf("read module %s: %w", call.dir, err)
		}
		if m := g.modules[call.dir]; m.files > 0 {
			interfaces[call.name] = m
		} else if slices.Contains(g.dirs, call.dir) {
			l.add(source, fmt.Sprintf("module source %q: the folder has no .tf file", clip(call.source)), "")
		}
	}
	for _, fault := range g.faults {
		l.put(fault)
	}
	digest := holdfast.NewDigester("modules")
	for _, dir := range slices.Sorted(slices.Values(g.dirs)) {
		digest.Add(dir, string(g.digests[dir]))
		for _, call := range g.modules[dir].calls {
			if problem, hint := pinned(call.source, call.version); !isLocal(call.source) && problem != "" {
				l.put(holdfast.Fault{
					File: path.Join(dir, call.file), Line: call.line, Column: call.column,
					Message: fmt.Sprintf("module source %q %s", clip(call.source), problem), Hint: hint,
				})
			}
		}
	}
	g.addExtra(digest)
	p.digest = digest.Digest()
	for i, call := range p.calls {
		if call.dir != "" {
			p.calls[i].dirs = g.closure(call.dir)
		}
	}
	p.parts, p.digests = g.parts, g.digests
	l.interfaces(p, interfaces)
	return nil
}
