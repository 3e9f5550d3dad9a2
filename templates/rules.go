package templates

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/templates/condition"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/schema"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// rule is what variables must keep beyond their schema.
type rule struct {
	holds   *condition.Expression
	message string
	path    []string // the variable at which it is reported; nil: spec.variables

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
		o := l.Object(item, fmt.Sprintf("spec.rules[%d]", i))
		text, at := o.Required("rule"), o.Get("rule")
		r := rule{message: o.Required("message")}
		r.blueprint = RuleBlueprint{Rule: text, Message: r.message, Path: o.Text("path")}
		if len(r.message) > maxMessage {
			l.Add(o.Get("message"), fmt.Sprintf("message has more than %d characters", maxMessage), "")
		}
		if where := o.Text("path"); where != "" {
			r.path = strings.Split(where, ".")
			if s := l.t.schema; s.Properties[r.path[0]] == nil {
				l.Add(o.Get("path"), fmt.Sprintf("path names the variable %q, which is not there", wording.Clip(r.path[0])), wording.DidYouMean(r.path[0], s.Names))
			}
		}
		o.Done()
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
func (l *templateLoader) when(p *provider, o *decode.Object, of string) (*condition.Expression, *yaml.Node) {
	text, at := o.Text("when"), o.Get("when")
	if text == "" {
		if at != nil && at.Kind == yaml.ScalarNode && at.Value == "" {
			l.Add(at, o.Label("when")+" is empty", "")
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
func (l *templateLoader) expression(text string, at *yaml.Node, what string) *condition.Expression {
	e, err := l.dialect.Compile(text)
	var fault *condition.Fault
	if errors.As(err, &fault) {
		l.Add(at, what+" "+fault.Message, fault.Hint)
	} else if err != nil {
		l.Add(at, what+" cannot be used: "+err.Error(), "")
	}
	if e != nil {
		maps.Copy(l.t.uses, e.Uses)
	}
	return e
}

func (l *templateLoader) absent(e *condition.Expression, at *yaml.Node, what string, always func(string) bool) {
	if name := e.Absent(always); name != "" {
		l.Add(at, fmt.Sprintf("%s needs self.%s, which may be left out", what, name),
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
	_, fallback := s.Defaults[name]
	return given || fallback || slices.Contains(s.Required, name)
}

// broken returns the rules that variables do not keep, of those that are about known
// variables only. left is what evaluations may cost.
func (t *Template) broken(scope condition.Scope, left *int, known func(variable string) bool) []schema.Violation {
	var out []schema.Violation
	for _, r := range t.rules {
		if !r.holds.Only(known) {
			continue
		}
		ok, err := r.holds.Holds(scope, left)
		switch {
		case err != nil:
			out = append(out, schema.Violation{
				Path:    r.path,
				Message: fmt.Sprintf("rule %q of the template cannot be evaluated: %v", wording.Clip(r.holds.Text), err),
				Hint:    "the rule is to say: " + wording.Clip(r.message),
			})
		case !ok:
			out = append(out, schema.Violation{Path: r.path, Message: r.message})
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
func (p *provider) on(scope condition.Scope, left *int) (switches, []schema.Violation) {
	s := make(switches, len(p.calls))
	var out []schema.Violation
	for i, call := range p.calls {
		if s[i] = call.when == nil; s[i] {
			continue
		}
		on, err := call.when.Holds(scope, left)
		if err != nil {
			out = append(out, schema.Violation{Message: fmt.Sprintf("when of module %q (%q) cannot be evaluated: %v", call.name, wording.Clip(call.when.Text), err)})
		}
		s[i] = on
	}
	return s, out
}
