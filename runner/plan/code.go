package plan

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/runner/jsontree"
)

// ModuleCode is what the engine's JSON lacks of a module's code: references by what has
// them.
type ModuleCode struct {
	Locals              map[string][]Reference // by name
	Connections         []Reference            // of connection blocks
	Providers           []Reference            // of provider blocks, with what is in dynamic ones
	Configures          map[string]bool        // providers that have a block without an alias, by name
	WriteOnly           []Reference            // of write-only arguments in dynamic blocks of resources
	RemovedProvisioners bool                   // removed blocks have provisioners
	Files               map[string]string      // what files outside of the bundle have that functions read: hashes by path
}

// Reference is what an expression refers to, in parts without indexes:
// data, local_file, x, content.
type Reference []string

// code is the configuration of a plan, as far as it says what provisioners,
// providers and write-only arguments are given.
type code struct {
	root      *codeModule
	providers []codeProvider
}

type codeProvider struct {
	key    string // by which resources name it
	module string // address of the module that configures it, or needs it without its own block
	name   string // in that module
	source string // address
	alias  string
	block  bool // there is one with arguments
	refs   []Reference
}

type codeModule struct {
	calls   map[string]*codeCall
	outputs map[string][]Reference
	given   []Reference // to provisioners and write-only arguments
	remote  bool        // a provisioner connects to something
	// sensitive are the outputs that are marked so.
	sensitive map[string]bool
	// providers are the keys of configurations of providers, by resource.
	providers map[string]string
	// ephemeral are what ephemeral resources are given, by address.
	ephemeral map[string][]Reference
	// provisions are the resources that have provisioners.
	provisions []string
}

type codeCall struct {
	arguments map[string][]Reference
	each      []Reference
	module    *codeModule
}

// module reads one key of a module's configuration; false if it is not read.
func (m *codeModule) read(s stream, key string, depth int) (bool, error) {
	switch key {
	case "resources":
		return true, s.list(func() error { return m.resource(s) })
	case "outputs":
		m.outputs = map[string][]Reference{}
		m.sensitive = map[string]bool{}
		return true, s.object(func(name string) error {
			var output any
			err := s.value(&output)
			m.outputs[name], m.sensitive[name] = referencesIn(output), jsontree.Field(output, "sensitive") == true
			return err
		})
	case "module_calls":
		m.calls = map[string]*codeCall{}
		return true, s.object(func(name string) error {
			call := &codeCall{module: &codeModule{}}
			m.calls[name] = call
			return call.read(s, depth+1)
		})
	}
	return false, nil
}

func (c *codeCall) read(s stream, depth int) error {
	if depth > maxModules {
		return errModules
	}
	return s.object(func(key string) error {
		switch key {
		case "expressions":
			c.arguments = map[string][]Reference{}
			return s.object(func(name string) error {
				var argument any
				err := s.value(&argument)
				c.arguments[name] = referencesIn(argument)
				return err
			})
		case "for_each_expression", "count_expression":
			var each any
			err := s.value(&each)
			c.each = append(c.each, referencesIn(each)...)
			return err
		case "module":
			return s.object(func(key string) error {
				if ok, err := c.module.read(s, key, depth); ok || err != nil {
					return err
				}
				return s.skip()
			})
		default:
			return s.skip()
		}
	})
}

func (m *codeModule) resource(s stream) error {
	var r struct {
		Provisioners []struct {
			Type        string `json:"type"`
			Expressions any    `json:"expressions"`
		} `json:"provisioners"`
		Address     string `json:"address"`
		Mode        string `json:"mode"`
		Provider    string `json:"provider_config_key"`
		Expressions any    `json:"expressions"`
		ForEach     any    `json:"for_each_expression"`
	}
	if err := s.value(&r); err != nil {
		return err
	}
	if r.Mode == "managed" {
		if m.providers == nil {
			m.providers = map[string]string{}
		}
		m.providers[r.Address] = r.Provider
		if len(r.Provisioners) > 0 {
			m.provisions = append(m.provisions, r.Address)
		}
	}
	if r.Mode == "ephemeral" {
		if m.ephemeral == nil {
			m.ephemeral = map[string][]Reference{}
		}
		m.ephemeral[r.Address] = append(referencesIn(r.Expressions), referencesIn(r.ForEach)...)
		return nil
	}
	var given []Reference
	for _, p := range r.Provisioners {
		given = append(given, referencesIn(p.Expressions)...)
		m.remote = m.remote || p.Type != "local-exec"
	}
	given = append(given, writeOnlyIn(r.Expressions)...)
	if slices.ContainsFunc(given, func(r Reference) bool { return r[0] == "each" }) {
		given = append(given, referencesIn(r.ForEach)...)
	}
	m.given = append(m.given, given...)
	return nil
}

// provider reads the configuration of one provider.
func (c *code) provider(s stream, key string) error {
	var p struct {
		Module      string `json:"module_address"`
		Name        string `json:"name"`
		Source      string `json:"full_name"`
		Alias       string `json:"alias"`
		Expressions any    `json:"expressions"`
	}
	err := s.value(&p)
	c.providers = append(c.providers, codeProvider{
		key: key, module: p.Module, name: p.Name, source: p.Source, alias: p.Alias, block: p.Expressions != nil, refs: referencesIn(p.Expressions),
	})
	return err
}

// hides reports whether the configuration marks an output of the root module.
func (c *code) hides(output string) bool { return c.root != nil && c.root.sensitive[output] }

// resource returns the module of a resource, and its address there; nil if it is in
// no module of the configuration.
func (c *code) resource(address string) (m *codeModule, local string) {
	m, parts := c.root, referenceOf(address)
	for m != nil && len(parts) > 2 && parts[0] == "module" {
		call := m.calls[parts[1]]
		if call == nil {
			return nil, ""
		}
		m, parts = call.module, parts[2:]
	}
	return m, strings.Join(parts, ".")
}

// provisions reports whether the configuration has provisioners for a resource: of
// one that it has not they are in removed blocks of its module, or of one above that.
// load is that of trace.
func (c *code) provisions(address string, load func(module []string) (ModuleCode, bool)) bool {
	if m, resource := c.resource(address); m != nil && m.providers[resource] != "" {
		return slices.Contains(m.provisions, resource)
	}
	m, parts, path := c.root, referenceOf(address), []string{}
	for m != nil {
		if load == nil {
			return true
		}
		if known, ok := load(path); known.RemovedProvisioners || !ok {
			return true
		}
		if len(parts) < 3 || parts[0] != "module" || m.calls[parts[1]] == nil {
			return false
		}
		path = append(path, parts[1])
		m, parts = m.calls[parts[1]].module, parts[2:]
	}
	return false
}

// providerOf returns the configuration of the provider of a resource, as plan files
// and states write it; empty if it is not in the configuration. load is that of
// trace.
func (c *code) providerOf(address string, load func(module []string) (ModuleCode, bool)) string {
	m, resource := c.resource(address)
	if m == nil || m.providers[resource] == "" {
		return ""
	}
	at := slices.IndexFunc(c.providers, func(p codeProvider) bool { return p.key == m.providers[resource] })
	if at < 0 {
		return ""
	}
	p := c.providers[at]
	if p.alias != "" {
		return configurationOf(p.module, p.source) + "." + p.alias
	}
	for module := p.module; module != ""; module = moduleAbove(module) { // without a block it has that of the module above
		if c.configures(module, p.source, load) {
			return configurationOf(module, p.source)
		}
	}
	return configurationOf("", p.source)
}

// configures reports whether a module has a block without an alias for a provider.
func (c *code) configures(module, source string, load func(module []string) (ModuleCode, bool)) bool {
	at := slices.IndexFunc(c.providers, func(p codeProvider) bool { return p.module == module && p.source == source && p.alias == "" })
	if at < 0 || c.providers[at].block || load == nil {
		return at >= 0 && c.providers[at].block
	}
	known, _ := load(callsOf(module))
	return known.Configures[c.providers[at].name]
}

func configurationOf(module, source string) string {
	return strings.TrimPrefix(module+`.provider["`+source+`"]`, ".")
}

// callsOf returns the names of the calls that lead to a module: of module.a.module.b.
func callsOf(module string) []string {
	var path []string
	for i, part := range referenceOf(module) {
		if i%2 == 1 {
			path = append(path, part)
		}
	}
	return path
}

func moduleAbove(module string) string {
	return module[:max(strings.LastIndex(module, ".module."), 0)]
}

// referencesIn returns all that expressions refer to, as the engine's JSON has
// it: for each one the whole reference, then ever shorter beginnings of it.
func referencesIn(expressions any) []Reference {
	var all []Reference
	switch v := expressions.(type) {
	case map[string]any:
		for key, child := range v {
			list, ok := child.([]any)
			if key != "references" || !ok {
				all = append(all, referencesIn(child)...)
				continue
			}
			former := ""
			for _, item := range list {
				text, ok := item.(string)
				if !ok { // an argument with that name
					all = append(all, referencesIn(item)...)
					continue
				}
				if !beginningOf(text, former) {
					if r := referenceOf(text); len(r) > 0 {
						all = append(all, r)
					}
				}
				former = text
			}
		}
	case []any:
		for _, child := range v {
			all = append(all, referencesIn(child)...)
		}
	}
	return all
}

// beginningOf reports whether a reference is a shorter one of a whole: data.x.a of
// data.x.a.content and of data.x.a[0], and not of data.x.ab.
func beginningOf(text, whole string) bool {
	rest, ok := strings.CutPrefix(whole, text)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// IsWriteOnly reports whether an argument of that name is write-only. A plan does not say
// so, and asking for providers' schemas would take one more start of the engine: by
// convention their names end in _wo, and sensitive_body is azapi's, which is older than
// that.
func IsWriteOnly(name string) bool {
	return strings.HasSuffix(name, "_wo") || name == "sensitive_body"
}

// writeOnlyIn returns what write-only arguments, which no plan shows, refer to, at any
// depth.
func writeOnlyIn(expressions any) []Reference {
	var all []Reference
	switch v := expressions.(type) {
	case map[string]any:
		for name, child := range v {
			if IsWriteOnly(name) {
				all = append(all, referencesIn(child)...)
			} else {
				all = append(all, writeOnlyIn(child)...)
			}
		}
	case []any:
		for _, child := range v {
			all = append(all, writeOnlyIn(child)...)
		}
	}
	return all
}

// referenceOf takes a reference apart, without its indexes.
func referenceOf(text string) Reference {
	var parts Reference
	var part strings.Builder
	depth, quoted, escaped := 0, false, false
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case depth > 0 && r == '"':
			quoted = !quoted
		case quoted:
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth > 0:
		case r == '.':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteRune(r)
		}
	}
	if part.Len() > 0 {
		parts = append(parts, part.String())
	}
	return parts
}
