package templates

import (
	"maps"
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/hclvalue"
	"github.com/holdfast-dev/holdfast/templates/modules"
)

// variant is the part of a root module that is the same for all clusters of a
// template and a provider for which the same modules are on. It is immutable,
// and shared by those clusters.
type variant struct {
	files   []File            // main.tf, and providers.tf if anything is configured
	entries []modules.Entry   // from the tree, sorted by path
	digest  holdfast.Digest   // of all that can change a plan
	fields  []string          // what it says of a cluster, sorted
	reads   []string          // of the template's tree, sorted
	means   map[string]string // outputs that mean something, by what they mean
}

// parts are what is on: the modules, configured providers and outputs of which
// a root module is made.
type parts struct {
	calls     []templateCall
	configure []engineProvider
	outputs   []templateOutput
	off       map[string]bool // modules
}

// only returns what is left when modules are off: an input, an output or a
// configuration that refers to one of them is left out as a whole.
func (p *provider) only(s switches) parts {
	out := parts{off: map[string]bool{}}
	for i, call := range p.calls {
		if !s[i] {
			out.off[call.name] = true
		}
	}
	refersToOff := func(names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return out.off[name] })
	}
	for i, call := range p.calls {
		if !s[i] {
			continue
		}
		inputs := make(map[string]any, len(call.inputs))
		for name, value := range call.inputs {
			if !refersToOff(call.refers[name]) {
				inputs[name] = value
			}
		}
		call.inputs = inputs
		call.dependsOn = slices.DeleteFunc(slices.Clone(call.dependsOn), func(name string) bool { return out.off[name] })
		out.calls = append(out.calls, call)
	}
	for _, c := range p.configure {
		if refersToOff(c.refers) {
			c.body = engineBlock{} // declared, and not configured
		}
		out.configure = append(out.configure, c)
	}
	for _, o := range p.template.outputs {
		if !refersToOff(o.refers) {
			out.outputs = append(out.outputs, o)
		}
	}
	return out
}

// variant returns the shared part of a root module, made from what label says.
func (p *provider) variant(s switches, label string) *variant {
	key := s.key() + label
	if v, ok := p.variants.Get(key); ok {
		return v
	}
	on := p.only(s)
	v := &variant{fields: on.fields(), means: map[string]string{}}
	for _, out := range on.outputs {
		if out.means != "" {
			v.means[out.means] = out.name
		}
	}
	entries, modules, reads := p.gathered(on.calls)
	main, providers := p.template.renderMain(on, false), renderProviders(on.configure)
	lock := p.template.lockFile
	digest := holdfast.NewDigester("shared")
	digest.Add(string(p.template.renderMain(on, true)), string(providers), string(modules), lock.Hash)
	v.digest = digest.Digest()
	if lock.Path != "" {
		entries[lock.Path] = lock
	}
	v.entries = sortedEntries(entries)
	v.reads = reads

	// What it was made from is for people. A version that changes nothing for a
	// cluster does not make a plan necessary, so the digest is without it.
	what := header("template " + label)
	v.files = []File{{Name: mainFile, Data: slices.Concat(what, main)}}
	if len(providers) > 0 {
		v.files = append(v.files, File{Name: providersFile, Data: slices.Concat(what, providers)})
	}
	p.variants.Put(key, v)
	return v
}

// references calls visit with each reference.
func (on parts) references(visit func(hclvalue.Part)) {
	for _, call := range on.calls {
		hclvalue.References(call.inputs, visit)
	}
	for _, c := range on.configure {
		hclvalue.References(c.body.values(), visit)
	}
	for _, o := range on.outputs {
		hclvalue.References(o.value, visit)
	}
}

// fields returns what the parts say of a cluster, sorted.
func (on parts) fields() []string {
	fields := map[string]bool{}
	on.references(func(ref hclvalue.Part) {
		if ref.Words[0] == "cluster" && len(ref.Words) > 1 {
			fields[ref.Words[1]] = true
		}
	})
	return slices.Sorted(maps.Keys(fields))
}

// gathered returns what the local modules of calls need from the tree: files,
// a digest of them, and what was read.
func (p *provider) gathered(calls []templateCall) (entries map[string]modules.Entry, code holdfast.Digest, reads []string) {
	var dirs []string
	for _, call := range calls {
		dirs = append(dirs, call.dirs...)
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	digest := holdfast.NewDigester("modules")
	entries = map[string]modules.Entry{}
	extra := map[string]string{}
	reads = append(slices.Clone(dirs), p.template.File, path.Join(path.Dir(p.template.File), lockFileName))
	for _, dir := range dirs {
		digest.Add(dir, string(p.digests[dir]))
		part := p.parts[dir]
		if part == nil {
			continue
		}
		for name, e := range part.Entries {
			e.Path = path.Join(modulesDir, name)
			entries[e.Path] = e
		}
		maps.Copy(extra, part.Extra)
		reads = append(reads, part.Linked...)
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		digest.Add("read", name, extra[name])
	}
	slices.Sort(reads)
	return entries, digest.Digest(), slices.Compact(reads)
}

// describe makes the template's blueprint.
func (t *Template) describe() Blueprint {
	b := Blueprint{
		Name: t.Name, Version: t.Version, Description: t.Description,
		Schema: t.schema.Doc, Required: t.schema.Required,
	}
	for _, r := range t.rules {
		b.Rules = append(b.Rules, r.blueprint)
	}
	for _, name := range t.Providers() {
		b.Providers = append(b.Providers, t.providers[name].describe())
	}
	for _, o := range t.outputs {
		b.Outputs = append(b.Outputs, OutputBlueprint{
			Name: o.name, Value: o.written, Description: o.description, Sensitive: o.sensitive, Means: o.means,
		})
	}
	return b
}

func (p *provider) describe() ProviderBlueprint {
	b := ProviderBlueprint{Name: p.name, Regions: p.regions, InstanceTypes: p.instanceTypes, Defaults: p.defaults}
	for _, c := range p.configure {
		b.Configure = append(b.Configure, EngineProvider{Name: c.name, Source: c.source, Version: c.version})
	}
	for _, call := range p.calls {
		m := ModuleBlueprint{
			Name: call.name, Source: call.source, Version: call.version, DependsOn: call.dependsOn, Inputs: call.written,
		}
		if call.when != nil {
			m.When = call.when.Text
		}
		m.Needs = slices.Clone(call.dependsOn)
		for _, names := range call.refers {
			m.Needs = append(m.Needs, names...)
		}
		slices.Sort(m.Needs)
		m.Needs = slices.Compact(m.Needs)
		b.Modules = append(b.Modules, m)
	}
	return b
}
