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
	Name string
	File string // path of its template.yaml in the tree that it was read from

	providers map[string]*provider
	schema    *schema
	blueprint Blueprint
	lockFile  entry // provider lock file beside the template; zero: none
}

// provider is what a template makes for one provider. Everything that does not
// depend on the cluster is ready.
type provider struct {
	name     string
	defaults map[string]any
	regions  []string
	calls    []templateCall // in the order of their dependencies
	fields   []string       // what the calls and outputs say of a cluster, sorted
	main     []byte         // main.tf without its header
	entries  map[string]entry
	digest   holdfast.Digest // of the modules in the repository
	reads    []string        // of the template's tree
}

type templateCall struct {
	name, source, version string
	dir                   string // of a local module, in the tree
	inputs                map[string]any
	dependsOn             []string
	at                    *yaml.Node
	keys                  map[string]*yaml.Node // of the inputs
}

type templateOutput struct {
	name, description string
	value             any
	sensitive         bool
	at                *yaml.Node
}

// Blueprint returns the template as data.
func (t *Template) Blueprint() Blueprint { return t.blueprint }

// Providers returns the names of the providers that the template knows.
func (t *Template) Providers() []string { return slices.Sorted(maps.Keys(t.providers)) }

// Variables returns the names of the variables that the template declares.
func (t *Template) Variables() []string { return slices.Sorted(maps.Keys(t.schema.properties)) }

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
	l := &templateLoader{reader: r, tree: tree, dir: dir, folders: folders, t: &Template{File: file}}
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
	outputs []templateOutput
}

func (l *templateLoader) load(root *yaml.Node) error {
	top := l.object(root, "")
	top.get("apiVersion")
	top.get("kind")
	metadata := top.child("metadata")
	l.t.Name = metadata.name("name")
	metadata.done()
	if !top.has("spec") {
		top.get("spec")
		top.missing("spec")
		top.done()
		return nil
	}
	spec := top.child("spec")
	l.variables(spec.child("variables"))
	l.readOutputs(spec.child("outputs"))
	providers := spec.child("providers")
	if providers.node == nil || len(providers.node.Content) == 0 {
		spec.missing("providers")
	}
	spec.done()
	top.done()
	l.t.providers = map[string]*provider{}
	if err := l.readLockFile(); err != nil {
		return err
	}
	for i := 0; providers.node != nil && i+1 < len(providers.node.Content); i += 2 {
		name := providers.node.Content[i].Value
		p := l.provider(name, providers.child(name))
		l.t.providers[name] = p
		if err := l.modules(p); err != nil {
			return err
		}
		l.check(p)
		if len(l.faults) == 0 {
			p.main = l.render(p)
		}
	}
	return nil
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

func (l *templateLoader) variables(o *object) {
	doc := map[string]any{}
	if o.node != nil {
		doc, _ = l.value(o.node).(map[string]any)
	}
	s, err := compileSchema(doc)
	if err != nil {
		l.add(o.node, "spec.variables is not a JSON Schema that can be used: "+err.Error(), "")
		s = &schema{properties: map[string]any{}}
		s.properties, _ = doc["properties"].(map[string]any) // what is declared is declared
	}
	l.t.schema = s
	if o.node == nil {
		return
	}
	if _, properties := lookup(o.node, "properties"); properties != nil && properties.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(properties.Content); i += 2 {
			if key := properties.Content[i]; !identifier.MatchString(key.Value) {
				l.add(key, fmt.Sprintf("%q cannot be the name of a variable", clip(key.Value)), "use letters, digits, _ and -")
			} else if slices.Contains(reservedVariables(), key.Value) {
				l.add(key, fmt.Sprintf("%q cannot be the name of a variable: it means something else to the engine", key.Value), "")
			}
		}
	}
}

// reservedVariables are names that the engines refuse in a variable block.
func reservedVariables() []string {
	return []string{"source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals"}
}

func (l *templateLoader) readOutputs(o *object) {
	if o.node == nil {
		return
	}
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		key, node := o.node.Content[i], o.node.Content[i+1]
		out := templateOutput{name: key.Value, at: key}
		if !identifier.MatchString(key.Value) {
			l.add(key, fmt.Sprintf("%q cannot be the name of an output", clip(key.Value)), "use letters, digits, _ and -")
		}
		value := node
		if node.Kind == yaml.MappingNode {
			long := l.object(node, o.label(key.Value))
			if value = long.get("value"); value == nil {
				long.missing("value")
			}
			out.sensitive = long.boolean("sensitive", false)
			out.description = long.str("description")
			long.done()
		}
		if value != nil {
			out.value = l.template(value)
		}
		l.outputs = append(l.outputs, out)
	}
}

// template parses a value that may have references.
func (l *templateLoader) template(n *yaml.Node) any {
	return parseTemplate(l.value(n), func(err error) {
		l.add(n, err.Error(), "write ${var.x}, ${module.x.y} or ${cluster.x}, and $${ for a literal ${")
	})
}

func (l *templateLoader) provider(name string, o *object) *provider {
	p := &provider{name: name, entries: map[string]entry{}}
	if !validName(name) {
		l.add(o.node, fmt.Sprintf("%q cannot be the name of a provider", clip(name)), nameHint)
	}
	p.regions, _ = o.strings("regions")
	defaults := o.child("defaults")
	if defaults.node != nil {
		p.defaults, _ = l.value(defaults.node).(map[string]any)
		names := l.t.Variables()
		for i := 0; i+1 < len(defaults.node.Content); i += 2 {
			if key := defaults.node.Content[i]; !l.t.schema.open && !slices.Contains(names, key.Value) {
				l.add(key, fmt.Sprintf("unknown variable %q", clip(key.Value)), didYouMean(key.Value, names))
			}
		}
	}
	seen := map[string]bool{}
	for i, item := range o.items("modules") {
		call, ok := l.call(l.object(item, fmt.Sprintf("%s[%d]", o.label("modules"), i)))
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

func (l *templateLoader) call(o *object) (call templateCall, ok bool) {
	before := len(l.faults)
	call = templateCall{name: o.required("name"), source: o.required("source"), at: o.node, keys: map[string]*yaml.Node{}}
	if call.name != "" && !identifier.MatchString(call.name) {
		l.add(o.get("name"), fmt.Sprintf("%q cannot be the name of a module", clip(call.name)), "use letters, digits, _ and -")
	}
	call.version = o.str("version")
	call.dependsOn, _ = o.strings("dependsOn")
	inputs := o.child("inputs")
	call.inputs = map[string]any{}
	for i := 0; inputs.node != nil && i+1 < len(inputs.node.Content); i += 2 {
		key := inputs.node.Content[i]
		if !identifier.MatchString(key.Value) {
			l.add(key, fmt.Sprintf("%q cannot be the name of an input", clip(key.Value)), "use letters, digits, _ and -")
			continue
		}
		if slices.Contains(reservedVariables(), key.Value) {
			l.add(key, fmt.Sprintf("%q cannot be the name of an input: it means something else to the engine", key.Value), "")
			continue
		}
		call.inputs[key.Value] = l.template(inputs.node.Content[i+1])
		call.keys[key.Value] = key
	}
	o.done()
	l.source(o, &call)
	return call, len(l.faults) == before || call.name != ""
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
	p.reads = append(g.reads(), l.file, path.Join(l.dir, lockFileName))
	for name, e := range g.entries {
		e.path = path.Join(modulesDir, name)
		p.entries[e.path] = e
	}
	l.interfaces(p, interfaces)
	return nil
}
