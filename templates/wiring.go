package templates

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/templates/condition"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/hclvalue"
	"github.com/holdfast-dev/holdfast/templates/modules"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// interfaces checks inputs and references against what the modules declare.
func (l *templateLoader) interfaces(p *provider, known map[string]*modules.Module) {
	for _, call := range p.calls {
		m := known[call.name]
		if m == nil || len(m.Faults) > 0 {
			continue
		}
		names := slices.Sorted(maps.Keys(m.Variables))
		var meant []string // by inputs that are misspelt
		for _, input := range slices.Sorted(maps.Keys(call.inputs)) {
			v, ok := m.Variables[input]
			if !ok {
				l.Add(call.keys[input], fmt.Sprintf("module %q has no variable %q", call.name, input), wording.DidYouMean(input, names))
				meant = append(meant, nearest.Of(input, names))
				continue
			}
			l.typed(call, input, v.Full)
			l.leftOut(p, call, input, v)
		}
		for _, name := range names {
			if _, given := call.inputs[name]; m.Variables[name].Required && !given && !slices.Contains(meant, name) {
				l.Add(call.at, fmt.Sprintf("module %q needs the input %q", call.name, name), "add it to inputs")
			}
		}
		l.offInputs(p, call, m)
	}
	l.eachReference(p, func(ref hclvalue.Part, at *yaml.Node) {
		if ref.Words[0] != "module" || len(ref.Words) < 3 {
			return
		}
		if m := known[ref.Words[1]]; m != nil && len(m.Faults) == 0 && !m.Outputs[ref.Words[2]] {
			l.Add(at, fmt.Sprintf("module %q has no output %q", ref.Words[1], ref.Words[2]),
				wording.DidYouMean(ref.Words[2], slices.Collect(maps.Keys(m.Outputs))))
		}
	})
}

func (l *templateLoader) eachReference(p *provider, visit func(ref hclvalue.Part, at *yaml.Node)) {
	for _, call := range p.calls {
		for _, input := range slices.Sorted(maps.Keys(call.inputs)) {
			hclvalue.References(call.inputs[input], func(ref hclvalue.Part) { visit(ref, call.keys[input]) })
		}
	}
	for _, c := range p.configure {
		c.body.eachReference(visit)
	}
	for _, out := range l.t.outputs {
		hclvalue.References(out.value, func(ref hclvalue.Part) { visit(ref, out.at) })
	}
}

// check resolves references and dependencies, and sorts the calls.
func (l *templateLoader) check(p *provider) {
	var names []string
	edges := map[string][]string{}
	for _, call := range p.calls {
		names = append(names, call.name)
		edges[call.name] = nil
	}
	variables := l.t.Variables()
	l.eachReference(p, func(ref hclvalue.Part, at *yaml.Node) {
		allowed, what := []string(nil), ""
		switch {
		case len(ref.Words) < 2:
			l.Add(at, fmt.Sprintf("${%s} is not a reference to something", ref.Text), "write ${var.x}, ${module.x.y} or ${cluster.x}")
			return
		case ref.Words[0] == "var":
			allowed, what = variables, "variable"
		case ref.Words[0] == "module":
			allowed, what = names, "module"
		case ref.Words[0] == "cluster":
			allowed, what = condition.ClusterFields(), "cluster field"
		default:
			l.Add(at, fmt.Sprintf("${%s} refers to %q", ref.Text, ref.Words[0]), wording.DidYouMean(ref.Words[0], []string{"var", "module", "cluster"}))
			return
		}
		if !slices.Contains(allowed, ref.Words[1]) {
			l.Add(at, fmt.Sprintf("${%s}: unknown %s %q for %s", ref.Text, what, ref.Words[1], p.name), wording.DidYouMean(ref.Words[1], allowed))
		} else if ref.Words[0] == "cluster" && len(ref.Words) > 2 {
			l.Add(at, fmt.Sprintf("${%s}: a cluster's %s has no parts", ref.Text, ref.Words[1]), "")
		} else if ref.Words[0] == "var" {
			if reached, missing, known := l.t.schema.Shapes[ref.Words[1]].At(ref.Words[2:]); reached == nil {
				l.Add(at, fmt.Sprintf("${%s}: variable %q has no %q there", ref.Text, ref.Words[1], missing), wording.DidYouMean(missing, known))
			}
		}
	})
	for _, call := range p.calls {
		for i, name := range call.dependsOn {
			if !slices.Contains(names, name) {
				_, at := decode.Lookup(call.at, "dependsOn")
				l.Add(at.Content[i], fmt.Sprintf("dependsOn names the module %q, which is not there", wording.Clip(name)), wording.DidYouMean(name, names))
			}
		}
		edges[call.name] = dependencies(call, names)
	}
	for _, cycle := range document.Cycles(names, edges) {
		l.Add(p.find(cycle[0]).at, "modules depend on one another in a circle: "+strings.Join(cycle, " → "), "")
	}
	p.sort(names, edges)
}

func dependencies(call templateCall, names []string) []string {
	var out []string
	add := func(name string) {
		if slices.Contains(names, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, name := range call.dependsOn {
		add(name)
	}
	hclvalue.References(call.inputs, func(ref hclvalue.Part) {
		if ref.Words[0] == "module" && len(ref.Words) > 1 {
			add(ref.Words[1])
		}
	})
	return out
}

func (p *provider) find(name string) templateCall {
	for _, call := range p.calls {
		if call.name == name {
			return call
		}
	}
	return templateCall{}
}

// sort puts each call behind those that it depends on, and else keeps the order
// in which they were written.
func (p *provider) sort(names []string, edges map[string][]string) {
	var order []templateCall
	done := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		if done[name] {
			return
		}
		done[name] = true
		for _, next := range edges[name] {
			visit(next)
		}
		order = append(order, p.find(name))
	}
	for _, name := range names {
		visit(name)
	}
	p.calls = order
}
