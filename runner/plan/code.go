package plan

import (
	"slices"
	"strings"
)

// ModuleCode is what the engine's JSON does not have of a module's code:
// references by what has them.
type ModuleCode struct {
	Locals      map[string][]Reference // by name
	Connections []Reference            // of connection blocks
	Providers   []Reference            // of provider blocks, with what is in dynamic ones
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
	module string // address of the module that configures it
	refs   []Reference
}

type codeModule struct {
	calls   map[string]*codeCall
	outputs map[string][]Reference
	given   []Reference // to provisioners and write-only arguments
	remote  bool        // a provisioner connects to something
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
		return true, s.object(func(name string) error {
			var output any
			err := s.value(&output)
			m.outputs[name] = referencesIn(output)
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
		Expressions any `json:"expressions"`
		ForEach     any `json:"for_each_expression"`
	}
	if err := s.value(&r); err != nil {
		return err
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
func (c *code) provider(s stream) error {
	var p struct {
		Module      string `json:"module_address"`
		Expressions any    `json:"expressions"`
	}
	err := s.value(&p)
	c.providers = append(c.providers, codeProvider{module: p.Module, refs: referencesIn(p.Expressions)})
	return err
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

// writeOnlyIn returns what write-only arguments, which no plan shows, refer to:
// providers call them by names that end in _wo, at any depth.
func writeOnlyIn(expressions any) []Reference {
	var all []Reference
	switch v := expressions.(type) {
	case map[string]any:
		for name, child := range v {
			if strings.HasSuffix(name, "_wo") {
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
