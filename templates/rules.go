package templates

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"gopkg.in/yaml.v3"
)

// rule is what variables must keep beyond their schema.
type rule struct {
	holds   *expression
	message string
	path    []string // the variable at which it is told; nil: spec.variables

	blueprint RuleBlueprint
}

func validGlob(pattern string) bool {
	_, err := path.Match(pattern, "x")
	return err == nil
}

// readRules reads the rules, once it is known which variables every provider
// gives a value.
func (l *templateLoader) readRules(items []*yaml.Node) {
	for i, item := range items {
		o := l.object(item, fmt.Sprintf("spec.rules[%d]", i))
		text, at := o.required("rule"), o.get("rule")
		r := rule{message: o.required("message")}
		r.blueprint = RuleBlueprint{Rule: text, Message: r.message, Path: o.str("path")}
		if len(r.message) > maxMessage {
			l.add(o.get("message"), fmt.Sprintf("message has more than %d characters", maxMessage), "")
		}
		if where := o.str("path"); where != "" {
			r.path = strings.Split(where, ".")
			if s := l.t.schema; s.properties[r.path[0]] == nil {
				l.add(o.get("path"), fmt.Sprintf("path names the variable %q, which is not there", clip(r.path[0])), didYouMean(r.path[0], s.names))
			}
		}
		o.done()
		if text == "" {
			continue
		}
		r.holds = l.expression(text, at, "rule")
		if r.holds == nil {
			continue
		}
		l.absent(r.holds, at, "rule", l.always)
		l.t.rules = append(l.t.rules, r)
	}
}

// when reads the condition of a module; nil: there is none.
func (l *templateLoader) when(p *provider, o *object, of string) (*expression, *yaml.Node) {
	text, at := o.str("when"), o.get("when")
	if text == "" {
		if at != nil && at.Kind == yaml.ScalarNode && at.Value == "" {
			l.add(at, o.label("when")+" is empty", "")
		}
		return nil, at
	}
	e := l.expression(strings.TrimSpace(text), at, "when of "+of)
	if e != nil {
		l.absent(e, at, "when of "+of, p.always)
	}
	return e, at
}

// expression compiles an expression, or says why it cannot be used.
func (l *templateLoader) expression(text string, at *yaml.Node, what string) *expression {
	e, err := l.dialect.compile(text)
	var fault *expressionFault
	if errors.As(err, &fault) {
		l.add(at, what+" "+fault.message, fault.hint)
	} else if err != nil {
		l.add(at, what+" cannot be used: "+err.Error(), "")
	}
	if e != nil {
		maps.Copy(l.t.uses, e.uses)
	}
	return e
}

func (l *templateLoader) absent(e *expression, at *yaml.Node, what string, always func(string) bool) {
	if name := e.absent(always); name != "" {
		l.add(at, fmt.Sprintf("%s needs self.%s, which may be left out", what, name),
			fmt.Sprintf("give it a default, require it, or ask has(self.%s) first", name))
	}
}

// always reports whether a variable has a value whatever the provider.
func (l *templateLoader) always(name string) bool {
	for _, p := range l.t.providers {
		if !p.always(name) {
			return false
		}
	}
	return true
}

// always reports whether a variable of a cluster that the schema accepts has a
// value.
func (p *provider) always(name string) bool {
	s := p.template.schema
	_, given := p.defaults[name]
	_, fallback := s.defaults[name]
	return given || fallback || slices.Contains(s.required, name)
}

// broken returns the rules that variables do not keep. left is what evaluations
// may cost.
func (t *Template) broken(scope cel.Activation, left *int) []violation {
	var out []violation
	for _, r := range t.rules {
		ok, err := r.holds.holds(scope, left)
		switch {
		case err != nil:
			out = append(out, violation{
				path:    r.path,
				message: fmt.Sprintf("rule %q of the template cannot be evaluated: %v", clip(r.holds.text), err),
				hint:    "the rule is to say: " + clip(r.message),
			})
		case !ok:
			out = append(out, violation{path: r.path, message: r.message})
		}
	}
	return out
}

// switches says which modules are on for a cluster, in the order of
// provider.calls.
type switches []bool

func (s switches) key() string {
	key := make([]byte, len(s))
	for i, on := range s {
		key[i] = '0'
		if on {
			key[i] = '1'
		}
	}
	return string(key)
}

// on evaluates the conditions of a provider. left is what evaluations may cost.
func (p *provider) on(scope cel.Activation, left *int) (switches, []violation) {
	s := make(switches, len(p.calls))
	var out []violation
	for i, call := range p.calls {
		if s[i] = call.when == nil; s[i] {
			continue
		}
		on, err := call.when.holds(scope, left)
		if err != nil {
			out = append(out, violation{message: fmt.Sprintf("when of module %q (%q) cannot be evaluated: %v", call.name, clip(call.when.text), err)})
		}
		s[i] = on
	}
	return s, out
}
