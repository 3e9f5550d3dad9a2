package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/jsontree"
)

var errModules = fmt.Errorf("modules are nested deeper than %d", maxModules)

// given is what provisioners, connections, write-only arguments and providers
// are given and no change of a resource shows: data sources, and secret
// variables.
type given struct {
	all       bool                       // some code is not known: every data source
	data      map[string]map[string]bool // attributes by address without indexes; "" is the whole
	resources map[string]map[string]bool // the same of managed resources
	variables map[string]bool            // of the root module; not what only providers are given
	files     map[string]string          // hashes of files outside of the bundle, by path
}

// has reports whether attributes of a data source are given, and which; nil
// means all.
func (g given) has(address string) (attributes map[string]bool, ok bool) {
	attributes, ok = g.data[strings.Join(referenceOf(address), ".")]
	if g.all || attributes[""] {
		return nil, g.all || ok
	}
	return attributes, ok
}

// hasResource is has, of a managed resource.
func (g given) hasResource(address string) (attributes map[string]bool, ok bool) {
	if len(g.resources) == 0 {
		return nil, false
	}
	attributes, ok = g.resources[strings.Join(referenceOf(address), ".")]
	if attributes[""] {
		return nil, ok
	}
	return attributes, ok
}

// remembered asks for the code of each module once.
func remembered(load func(module []string) (ModuleCode, bool)) func(module []string) (ModuleCode, bool) {
	if load == nil {
		return nil
	}
	type answer struct {
		code ModuleCode
		ok   bool
	}
	known := map[string]answer{}
	return func(module []string) (ModuleCode, bool) {
		key := strings.Join(module, ".")
		a, asked := known[key]
		if !asked {
			a.code, a.ok = load(module)
			known[key] = a
		}
		return a.code, a.ok
	}
}

// tracer follows references to where values come from.
type tracer struct {
	root  *codeModule
	code  func(module []string) (ModuleCode, bool)
	known map[string]*ModuleCode // by path; nil: not known
	seen  map[string]bool
	given given
}

// trace finds what is given. load returns the code of a module, the root module without
// a path, otherwise the names of the calls that lead there; false if it is not known.
func (c *code) trace(load func(module []string) (ModuleCode, bool)) given {
	t := tracer{
		root: c.root, code: load, known: map[string]*ModuleCode{}, seen: map[string]bool{},
		given: given{data: map[string]map[string]bool{}, resources: map[string]map[string]bool{}, variables: map[string]bool{}, files: map[string]string{}},
	}
	if c.root != nil {
		t.module(nil, c.root)
	}
	for _, p := range c.providers {
		path := callsOf(p.module)
		t.follow(path, p.refs, true)
		if load == nil {
			continue
		}
		if known := t.load(path); known != nil {
			t.follow(path, known.Providers, true)
		}
	}
	return t.given
}

func (t *tracer) module(path []string, m *codeModule) {
	t.follow(path, m.given, false)
	if t.code != nil {
		if known := t.load(path); known != nil {
			t.follow(path, known.WriteOnly, false)
			maps.Copy(t.given.files, known.Files)
			if m.remote {
				t.follow(path, known.Connections, false)
			}
		}
	} else if m.remote {
		t.given.all = true
	}
	for name, call := range m.calls {
		t.module(append(slices.Clone(path), name), call.module)
	}
}

// load returns the code of a module; nil if it is not known.
func (t *tracer) load(path []string) *ModuleCode {
	key := strings.Join(path, ".")
	if known, ok := t.known[key]; ok {
		return known
	}
	t.known[key] = nil
	if t.code != nil {
		if found, ok := t.code(path); ok {
			t.known[key] = &found
		}
	}
	if t.known[key] == nil {
		t.given.all = true
	}
	return t.known[key]
}

// at returns a module and how it is called, nil if there is none.
func (t *tracer) at(path []string) (m *codeModule, call *codeCall) {
	m = t.root
	for _, name := range path {
		if m == nil || m.calls[name] == nil {
			return nil, nil
		}
		call = m.calls[name]
		m = call.module
	}
	return m, call
}

// follow follows what code of a module refers to. provider: it is what a
// provider is configured with.
func (t *tracer) follow(path []string, refs []Reference, provider bool) {
	for _, r := range refs {
		key := fmt.Sprint(provider, path, r)
		if len(r) < 2 || t.seen[key] {
			continue
		}
		t.seen[key] = true
		switch r[0] {
		case "data":
			if len(r) > 2 {
				note(t.given.data, path, r, 3)
			}
		case "local":
			if known := t.load(path); known != nil {
				t.follow(path, known.Locals[r[1]], provider)
			}
		case "var":
			t.variable(path, r[1], provider)
		case "module":
			t.output(path, r, provider)
		case "ephemeral": // it is opened again, with what it is given
			if m, _ := t.at(path); m != nil && len(r) > 2 {
				t.follow(path, m.ephemeral[strings.Join(r[:3], ".")], provider)
			}
		case "each", "count", "path", "self", "terraform", "tofu":
		case "resource":
			if len(r) > 2 {
				note(t.given.resources, path, r[1:], 2)
			}
		default:
			note(t.given.resources, path, r, 2)
		}
	}
}

// note notes that an attribute is given, or all of them. The address is the first
// parts of a reference.
func note(in map[string]map[string]bool, path []string, r Reference, address int) {
	var parts []string
	for _, name := range path {
		parts = append(parts, "module", name)
	}
	of, attribute := strings.Join(append(parts, r[:address]...), "."), ""
	if len(r) > address {
		attribute = r[address]
	}
	if in[of] == nil {
		in[of] = map[string]bool{}
	}
	in[of][attribute] = true
}

func (t *tracer) variable(path []string, name string, provider bool) {
	if len(path) == 0 {
		if !provider {
			t.given.variables[name] = true
		}
		return
	}
	_, call := t.at(path)
	if call == nil {
		return
	}
	above := path[:len(path)-1]
	t.follow(above, call.arguments[name], provider)
	t.follow(above, call.each, provider)
}

func (t *tracer) output(path []string, r Reference, provider bool) {
	below := append(slices.Clone(path), r[1])
	m, _ := t.at(below)
	if m == nil {
		return
	}
	for name, refs := range m.outputs {
		if len(r) < 3 || r[2] == name {
			t.follow(below, refs, provider)
		}
	}
}

// readState reads what data sources said, of a state.
func (p *reading) readState(s stream) error {
	return s.object(func(key string) error {
		if key != "values" {
			return s.skip()
		}
		return s.object(func(key string) error {
			if key != "root_module" {
				return s.skip()
			}
			return p.readModule(s, 0)
		})
	})
}

func (p *reading) readModule(s stream, depth int) error {
	if depth > maxModules {
		return errModules
	}
	return s.object(func(key string) error {
		switch key {
		case "resources":
			return s.list(func() error {
				var r struct {
					Address   string         `json:"address"`
					Mode      string         `json:"mode"`
					Deposed   string         `json:"deposed_key"`
					Values    map[string]any `json:"values"`
					Sensitive any            `json:"sensitive_values"`
				}
				if err := s.value(&r); err != nil {
					return err
				}
				if r.Mode == "data" {
					return p.dataRead(r.Address, r.Values, marks{r.Sensitive}, nil)
				}
				if d := p.drifted[objectKey{r.Address, r.Deposed}]; d != nil && r.Mode == "managed" {
					d.values, d.sensitive, d.found = r.Values, r.Sensitive, true
				}
				if r.Mode != "managed" || r.Deposed != "" || p.first.changed[r.Address] {
					return nil
				}
				return p.resourceRead(r.Address, r.Values, marks{r.Sensitive})
			})
		case "child_modules":
			return s.list(func() error { return p.readModule(s, depth+1) })
		default:
			return s.skip()
		}
	})
}

// dataRead notes what a data source said, or will say, if it is given to what no
// change of a resource shows. The first one counts: changes come before the
// state.
func (p *reading) dataRead(address string, values map[string]any, sensitive marks, unknown any) error {
	attributes, ok := p.given.has(address)
	if !ok {
		return nil
	}
	stands := readsState(address) // a credential there is the same each time
	return p.add(address, attributes, values, unknown, func(m maker, values map[string]any, unknown any) any {
		tree := m.tree("", "", values, sensitive, unknown)
		if stands {
			return tree
		}
		return m.withoutSecrets("", tree)
	})
}

// readsState reports whether a data source reads the outputs of another state.
func readsState(address string) bool {
	parts := referenceOf(address)
	return len(parts) > 2 && parts[len(parts)-3] == "data" && parts[len(parts)-2] == "terraform_remote_state"
}

// readFiles notes the files outside of the bundle that functions of the code read: what
// they have is in no part of the plan if it is given to a provisioner only.
func (p *reading) readFiles() error {
	for path, hash := range p.given.files {
		address := fmt.Sprintf("file(%q)", p.options.Redactor.Known(path))
		value, err := plandoc.NewValue(plandoc.Mark{HMAC: Hash(p.options.Key, address, "content", hash)})
		if err != nil {
			return err
		}
		if p.read[address] {
			continue
		}
		if p.read == nil {
			p.read = map[string]bool{}
		}
		p.read[address] = true
		p.result.Document.Reads = append(p.result.Document.Reads, plandoc.Read{Address: address, Value: value})
	}
	return nil
}

// resourceRead notes what a resource has that does not change, if it is given to
// what no change of a resource shows. What is secret in a state stays as it is, and
// is compared.
func (p *reading) resourceRead(address string, values map[string]any, sensitive marks) error {
	attributes, ok := p.given.hasResource(address)
	if !ok {
		return nil
	}
	return p.add(address, attributes, values, nil, func(m maker, values map[string]any, _ any) any {
		return m.tree("", "", values, sensitive, nil)
	})
}

// add notes what was read at an address: these attributes, or all if they are nil.
func (p *reading) add(address string, attributes map[string]bool, values map[string]any, unknown any,
	tree func(m maker, values map[string]any, unknown any) any,
) error {
	m := maker{key: p.options.Key, redactor: p.options.Redactor, address: address}
	read := plandoc.Read{Address: m.name("", address)}
	if p.read[read.Address] {
		return nil
	}
	if p.read == nil {
		p.read = map[string]bool{}
	}
	p.read[read.Address] = true
	if attributes != nil {
		chosen, chosenUnknown := map[string]any{}, map[string]any{}
		for name := range attributes {
			if value, ok := values[name]; ok {
				chosen[name] = value
			}
			if mark := jsontree.Field(unknown, name); mark != nil {
				chosenUnknown[name] = mark
			}
		}
		values = chosen
		if unknown != true {
			unknown = chosenUnknown
		}
	}
	var err error
	if read.Value, err = plandoc.NewValue(tree(m, values, unknown)); err != nil {
		return fmt.Errorf("%s: %w", read.Address, err)
	}
	p.result.Document.Reads = append(p.result.Document.Reads, read)
	return nil
}

// withoutSecrets makes marks of secret values of where they are and of what is shown: a
// credential from a data source differs each time.
func (m maker) withoutSecrets(path holdfast.AttributePath, tree any) any {
	switch v := tree.(type) {
	case plandoc.Mark:
		if v.HMAC != "" {
			v.HMAC = m.sum(string(path)+" (read)", v.Text)
		}
		return v
	case map[string]any:
		for key, child := range v {
			v[key] = m.withoutSecrets(path.Key(key), child)
		}
	case []any:
		for i, child := range v {
			v[i] = m.withoutSecrets(path.Index(i), child)
		}
	}
	return tree
}

// readSecrets notes the secret variables that are given to what no change of a
// resource shows.
func (p *reading) readSecrets() error {
	for name, print := range p.options.Secrets {
		if !p.given.variables[name] && !p.given.all {
			continue
		}
		value, err := plandoc.NewValue(plandoc.Mark{HMAC: print})
		if err != nil {
			return err
		}
		p.result.Document.Reads = append(p.result.Document.Reads, plandoc.Read{Address: "var." + name, Value: value})
	}
	return nil
}
