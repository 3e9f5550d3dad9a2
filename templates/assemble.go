package templates

import (
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/condition"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/modules"
	"github.com/holdfast-dev/holdfast/templates/schema"
)

// given are the variables of a cluster, with its provider's defaults.
type given struct {
	plain   map[string]any
	secrets map[string]rootmodule.SecretRef
	on      switches
}

// variables reads what a cluster says, adds what the template says for it, and returns
// what the schema refuses.
func (p *provider) variables(said map[string]any) (given, []schema.Violation) {
	s := p.template.schema
	all := maps.Clone(p.defaults)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, said)
	for name, fallback := range s.SecretDefaults {
		if _, ok := all[name]; !ok {
			all[name] = fallback
		}
	}
	plain, secrets, out := s.TakeSecrets(all)
	out = append(out, p.schema.Validate(plain, slices.Collect(maps.Keys(secrets)))...)
	return given{plain: plain, secrets: secrets}, out
}

// decide says which modules are on, and which rules are not kept. Next to variables that
// the schema refuses, only rules about others are looked at.
func (g *given) decide(c holdfast.Cluster, p *provider, refused []schema.Violation) ([]schema.Violation, error) {
	scope, err := p.template.scope(c, p.name, *g)
	if err != nil {
		return nil, err
	}
	left := condition.MaxCost
	if len(refused) > 0 {
		return p.template.broken(scope, &left, func(name string) bool {
			return schema.Valued(p.template.schema, g.plain, g.secrets, name) && !schema.Refused(refused, name)
		}), nil
	}
	broken := p.template.broken(scope, &left, func(string) bool { return true })
	on, unclear := p.on(scope, &left)
	g.on = on
	return append(broken, unclear...), nil
}

// whateverProvider is what is wrong with the variables of a cluster whatever its provider
// is, if the provider's defaults and instance types are not known.
func (t *Template) whateverProvider(doc document.Document) (faults holdfast.Faults) {
	if t.general == nil || doc.Unread("variables") {
		return nil
	}
	p := &provider{template: t, schema: t.general}
	_, refused := p.variables(doc.Cluster.Variables)
	for _, v := range refused {
		if v.Alone() {
			faults = append(faults, violationFault(doc, p, v))
		}
	}
	return faults
}

// assemble makes the root module of a cluster without faults.
func (r *Resolver) assemble(from source, p *provider, c holdfast.Cluster, g given) (*Root, error) {
	values, err := renderVariables(p.template.schema.Declared(g.plain))
	if err != nil {
		return nil, err
	}
	b := r.backendOf(c)
	label := from.label
	if from.revision != "" {
		label += " (" + from.revision.Short() + ")"
	}
	shared := p.variant(g.on, label)
	own := renderCluster(c, b.kind, b.config, p.name, shared.fields)
	root := &Root{
		Dir: rootDir, tree: from.tree, shared: shared.digest,
		StateLocation: b.location, OwnState: b.own, state: b,
		Template: label, TemplateRevision: from.revision,
		EngineConstraint: c.Engine.Version, Variables: g.plain, Secrets: g.secrets, OutputRoles: shared.means,
		files: append(slices.Clone(shared.files),
			File{Name: clusterFile, Data: slices.Concat(header("template "+label+" for cluster "+c.Name), own)},
			File{Name: variablesFile, Data: values}),
		entries: shared.entries,
	}
	var secrets []byte
	if len(g.secrets) > 0 {
		if secrets, err = rootmodule.EncodeSecrets(g.secrets); err != nil {
			return nil, err
		}
		root.files = append(root.files, File{Name: rootmodule.SecretFile, Data: secrets})
	}
	slices.SortFunc(root.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if from.revision == "" {
		root.Reads = shared.reads
	}
	digest := holdfast.NewDigester("source")
	digest.Add("template", string(shared.digest), string(own), string(values), string(secrets), c.Engine.Name, c.Engine.Version)
	root.identify(digest.Digest(), c)
	return root, nil
}

func sortedEntries(entries map[string]modules.Entry) []modules.Entry {
	return slices.SortedFunc(maps.Values(entries), func(a, b modules.Entry) int { return strings.Compare(a.Path, b.Path) })
}
