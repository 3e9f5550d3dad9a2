package forms

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

// variablePrefix is how the names of fields of variables begin.
const variablePrefix = "v."

// fields are what can be typed: what every cluster has, and the variables of the template.
func (p *Proposal) fields() {
	p.view.Sent = []console.Hidden{{Name: "csrf", Value: p.Who.FormToken}, {Name: "change", Value: p.change}, {Name: "template", Value: p.view.Template}}
	version := p.view.Head
	p.view.Head = nil
	if p.change == proposals.Update {
		p.view.Sent = append(p.view.Sent, console.Hidden{Name: "cluster", Value: p.form.Get("cluster")})
		for _, name := range slices.Sorted(maps.Keys(p.form)) {
			if strings.HasPrefix(name, wasPrefix) {
				p.view.Sent = append(p.view.Sent, console.Hidden{Name: name, Value: p.form.Get(name)})
			}
		}
	} else {
		p.head("cluster", "Name", "a-z, 0-9 and - inside; it stays for the cluster's life", true)
		p.head("project", "Project", "", true)
		p.head("environment", "Environment", "such as prod", true)
	}
	p.view.Head = append(p.view.Head, version...)
	p.providerFields()
	if p.change == proposals.Create {
		p.head("repo", "Repository", "where its document will be; empty: the only one that defines clusters", false)
		p.head("path", "File", "in the repository; empty: one of its own", false)
	}
	for _, rule := range p.detail.Rules {
		p.view.Rules = append(p.view.Rules, strings.TrimSuffix(rule.Message, "."))
	}
	for _, name := range p.variableNames() {
		p.view.Variables = append(p.view.Variables, p.variable(name))
	}
}

func (p *Proposal) head(name, label, help string, required bool) {
	p.view.Head = append(p.view.Head, console.Field{Name: name, Label: label, Kind: "text", Value: p.form.Get(name), Help: help, Required: required})
}

// providerFields are the provider and the region, which the template may limit.
func (p *Proposal) providerFields() {
	chosen := p.form.Get("provider")
	if chosen == "" && len(p.detail.Providers) > 0 && p.change == proposals.Create {
		chosen = p.detail.Providers[0].Name
		p.form.Set("provider", chosen)
	}
	field := console.Field{Name: "provider", Label: "Provider", Kind: "select", Whole: true}
	for _, one := range p.detail.Providers {
		field.Options = append(field.Options, console.Choice{Value: one.Name, Label: one.Name, On: one.Name == chosen})
	}
	if !slices.ContainsFunc(field.Options, func(c console.Choice) bool { return c.On }) && chosen != "" {
		field.Options = append([]console.Choice{{Value: chosen, Label: chosen, On: true}}, field.Options...)
	}
	if chosen == "" && len(field.Options) > 0 {
		field.Options = append([]console.Choice{{Label: "not set", On: true}}, field.Options...)
	}
	if len(field.Options) > 0 {
		p.view.Head = append(p.view.Head, field)
	}
	region := console.Field{Name: "region", Label: "Region", Kind: "text", Value: p.form.Get("region"), List: p.provider().Regions}
	p.view.Head = append(p.view.Head, region)
}

// provider is what the template has for the one that is chosen.
func (p *Proposal) provider() v1.TemplateProvider {
	for _, one := range p.detail.Providers {
		if one.Name == p.form.Get("provider") {
			return one
		}
	}
	return v1.TemplateProvider{}
}

// variableNames are the variables: those that are required first, and those that were typed
// and that this version does not have.
func (p *Proposal) variableNames() []string {
	properties, _ := p.detail.Schema["properties"].(map[string]any)
	names := slices.Collect(maps.Keys(properties))
	for key, values := range p.form {
		name, is := strings.CutPrefix(key, variablePrefix)
		if _, known := properties[name]; is && !known && strings.TrimSpace(strings.Join(values, "")) != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(boolOrder(slices.Contains(p.detail.Required, a), slices.Contains(p.detail.Required, b)), strings.Compare(a, b))
	})
	return names
}

// boolOrder puts what is true first.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// property is the schema of a variable, with what it refers to.
func (p *Proposal) property(name string) map[string]any {
	properties, _ := p.detail.Schema["properties"].(map[string]any)
	property, _ := properties[name].(map[string]any)
	ref, _ := property["$ref"].(string)
	if def, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
		defs, _ := p.detail.Schema["$defs"].(map[string]any)
		if target, ok := defs[def].(map[string]any); ok {
			whole := maps.Clone(target)
			maps.Copy(whole, property)
			return whole
		}
	}
	return property
}

// variable is the field of a variable.
func (p *Proposal) variable(name string) console.Field {
	property := p.property(name)
	field := console.Field{Name: variablePrefix + name, Label: name, Kind: "text", Value: p.form.Get(variablePrefix + name), Required: slices.Contains(p.detail.Required, name)}
	field.Help, _ = property["description"].(string)
	fallback, has := p.provider().Defaults[name]
	if !has {
		fallback, has = property["default"]
	}
	if has {
		field.Placeholder, field.Required = written(fallback), false
	}
	field.Limits = limits(property)
	if property == nil && p.gone == "" {
		field.Fault = "this version has no variable of that name"
	}
	secret := property["writeOnly"] == true
	enum, _ := property["enum"].([]any)
	switch kind := property["type"]; {
	case secret:
		field.Kind, field.Placeholder = "area", "secret: {env: NAME}"
		field.Help = strings.TrimSpace("Secret: say where it is, never the value. " + field.Help)
		field.Limits = ""
	case len(enum) > 0:
		field.Kind, field.Options = "select", options(enum, field.Value, field.Placeholder)
	case kind == "boolean":
		field.Kind, field.Options = "select", options([]any{true, false}, field.Value, field.Placeholder)
	case kind == "integer", kind == "number":
		field.Kind = "number"
	case kind != "string":
		field.Kind = "area"
		field.Help = strings.TrimSpace(field.Help + " In YAML.")
	}
	if field.Kind == "text" && strings.Contains(name, "instance_type") {
		field.List = slices.DeleteFunc(slices.Clone(p.provider().InstanceTypes), func(s string) bool { return strings.ContainsAny(s, "*?[") })
	}
	return field
}

// options are values to choose from; the first one leaves it to the template.
func options(values []any, chosen, fallback string) []console.Choice {
	none := "not set"
	if fallback != "" {
		none = fallback + " (default)"
	}
	out := []console.Choice{{Value: "", Label: none, On: chosen == ""}}
	found := chosen == ""
	for _, value := range values {
		text := written(value)
		out = append(out, console.Choice{Value: text, Label: text, On: text == chosen})
		found = found || text == chosen
	}
	if !found {
		out = append(out, console.Choice{Value: chosen, Label: chosen, On: true})
	}
	return out
}

// limits says in words what a variable may be.
func limits(property map[string]any) string {
	var words []string
	low, high := property["minimum"], property["maximum"]
	switch {
	case low != nil && high != nil:
		words = append(words, written(low)+" to "+written(high))
	case low != nil:
		words = append(words, "at least "+written(low))
	case high != nil:
		words = append(words, "at most "+written(high))
	}
	if n := property["multipleOf"]; n != nil {
		words = append(words, "a multiple of "+written(n))
	}
	for _, one := range []struct{ key, words string }{{"minLength", "at least %s characters"}, {"maxLength", "at most %s characters"}, {"minItems", "at least %s entries"}, {"maxItems", "at most %s entries"}} {
		if n := property[one.key]; n != nil {
			words = append(words, fmt.Sprintf(one.words, written(n)))
		}
	}
	if pattern, ok := property["pattern"].(string); ok {
		words = append(words, "matches "+pattern)
	}
	if format, ok := property["format"].(string); ok {
		words = append(words, "a "+format)
	}
	if len(words) == 0 {
		return ""
	}
	return "Allowed: " + strings.Join(words, ", ") + "."
}

// written is a value as somebody types it: texts as they are, other things as JSON, which is YAML.
func written(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// request is what the form asks for: of a change, only what differs from what it was when the
// form was opened.
func (p *Proposal) request() v1.ClusterProposal {
	changed := func(name string) string {
		if value := strings.TrimSpace(p.form.Get(name)); p.change == proposals.Create || value != p.form.Get(wasPrefix+name) {
			return value
		}
		return ""
	}
	req := v1.ClusterProposal{
		Change: p.change, Cluster: strings.TrimSpace(p.form.Get("cluster")), Provider: changed("provider"), Region: changed("region"),
	}
	if p.change == proposals.Create {
		req.Template, req.Version = p.view.Template, p.form.Get("version")
		req.Project, req.Environment = changed("project"), changed("environment")
		req.Repo, req.Path = strings.TrimSpace(p.form.Get("repo")), strings.TrimSpace(p.form.Get("path"))
	} else {
		req.Version = changed("version")
	}
	for _, name := range p.variableNames() {
		text := p.form.Get(variablePrefix + name)
		was := wasPrefix + variablePrefix + name
		had := p.change == proposals.Update && p.form.Has(was)
		switch {
		case had && sameText(text, p.form.Get(was)), !had && strings.TrimSpace(text) == "":
		case strings.TrimSpace(text) == "":
			req.Set = append(req.Set, "variables."+name+"=")
		case strings.Contains(text, holdfast.SensitiveValue):
			p.veiled = append(p.veiled, name)
		default:
			req.Set = append(req.Set, "variables."+name+"="+p.asYAML(name, text))
		}
	}
	return req
}

// sameText compares what a field has with what it had: browsers send other line ends.
func sameText(a, b string) bool {
	unix := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return unix(a) == unix(b)
}

// asYAML turns what was typed into a value: a text where the variable is one, and otherwise
// YAML, so that faults are reported by the template.
func (p *Proposal) asYAML(name, text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	property := p.property(name)
	enum, _ := property["enum"].([]any)
	if property["writeOnly"] == true {
		return text
	}
	if property["type"] == "string" || property == nil || slices.ContainsFunc(enum, func(v any) bool { s, is := v.(string); return is && s == text }) {
		data, _ := json.Marshal(text) // a text: cannot fail
		return string(data)
	}
	return strings.TrimSpace(text)
}

// faultAt is where a fault is, to the column.
func faultAt(f v1.Fault) string {
	switch {
	case f.Line > 0 && f.Column > 0:
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	case f.Line > 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	default:
		return f.File
	}
}

// atFields says what is wrong with a variable at its field, too: by the line of the document.
func (p *Proposal) atFields(made v1.ProposedCluster) {
	names := variableLines(made.Document)
	for _, fault := range made.Faults {
		name := names[fault.Line-made.Line+1]
		for i := range p.view.Variables {
			if field := &p.view.Variables[i]; name != "" && field.Label == name && field.Fault == "" {
				field.Fault = words.Sentence(words.Unquoted(fault.Message))
			}
		}
	}
}

// variableLines are the variables of a document by the lines that are theirs, from 1.
func variableLines(document string) map[int]string {
	lines := map[int]string{}
	inside, deep, name := 0, -1, ""
	number := 0
	for line := range strings.Lines(document) {
		number++
		text := strings.TrimLeft(line, " ")
		indent := len(line) - len(text)
		switch {
		case strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#"):
			continue
		case deep < 0 && strings.HasPrefix(text, "variables:"):
			inside, deep = indent, 0
		case deep >= 0 && indent <= inside:
			deep, name = -1, ""
		case deep == 0 || deep > 0 && indent == deep:
			deep = indent
			name, _, _ = strings.Cut(text, ":")
		}
		if deep > 0 {
			lines[number] = strings.Trim(name, `"' `)
		}
	}
	return lines
}
