package plan

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/jsontree"
)

// Compared is what a comparison of the plan file with the state that the engine was
// given has found. What an honest plan can have too is shown, or is checked against the
// configuration in the engine's JSON.
type Compared struct {
	Unshown   []Unshown
	Drifted   []Drifted
	Providers []ProviderUse
	Outputs   map[string]GivenOutput // of the given state
}

// Unshown is a change of the state besides the engine's changes: an object that
// is gone from the infrastructure and leaves the state, or one that is another object now.
type Unshown struct {
	Address, Deposed, Type, Provider string
	Gone                             bool
	WasID, ID                        string
}

// Drifted is an object that has other attributes than in the given state.
type Drifted struct {
	Address, Deposed, Type, Provider string
	Attributes                       []DriftedAttribute
}

// DriftedAttribute is an attribute at the top of an object.
type DriftedAttribute struct {
	Name   string
	Was    json.RawMessage // as a state has it; nil: it had none
	Hidden bool            // something in it was sensitive
}

// ProviderUse is a configuration of a provider that the plan file has for an object.
type ProviderUse struct {
	Address, Deposed string
	Provider, Made   string // Made is that of the given state; empty: the object is not in it
	Kept             bool   // nothing is made with it
}

// GivenOutput is an output in the given state.
type GivenOutput struct {
	Value     json.RawMessage
	Sensitive bool
}

// ErrUntrusted is wrapped by errors about a plan that no engine can have made of the
// given state and of its configuration.
var ErrUntrusted = errors.New("somebody has changed the plan file")

func untrusted(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrUntrusted, fmt.Sprintf(format, a...))
}

// objectKey is an object of a managed resource.
type objectKey struct{ address, deposed string }

// priorObject is an object in the state that a plan starts from.
type priorObject struct {
	attributes map[string][sha256.Size]byte // without those that are null
	sensitive  any
}

func priorOf(values, sensitive any) priorObject {
	o := priorObject{attributes: map[string][sha256.Size]byte{}, sensitive: sensitive}
	object, _ := values.(map[string]any)
	for name, value := range object {
		if value != nil {
			o.attributes[name] = sumOf(value)
		}
	}
	return o
}

func sumOf(value any) [sha256.Size]byte {
	data, err := jsontree.Marshal(withoutNull(value))
	if err != nil { // cannot be: it was decoded from JSON
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(data)
}

// withoutNull returns a value without the keys that have null: states leave them out
// or do not.
func withoutNull(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			if child != nil {
				out[key] = withoutNull(child)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutNull(v[i])
		}
		return out
	default:
		return value
	}
}

// checkBefore checks what a change says was before against the object in the state that
// the plan starts from: a provider is given the former to destroy it. For what is only
// destroyed it may be what the given state has, too: engines destroy what is no longer
// in the code as it was before the refresh. For other changes they plan again, from
// their state. What the state does not hide is not hidden.
func (p *reading) checkBefore(at objectKey, change *tfjson.Change) error {
	if p.options.Compared == nil || change.Before == nil {
		return nil
	}
	prior, ok := p.first.prior[at]
	if !ok {
		return untrusted("it changes an object that is not in its state")
	}
	found := priorOf(change.Before, nil)
	same := maps.Equal(found.attributes, prior.attributes)
	if !same && (change.Actions.Delete() || change.Actions.Forget()) {
		var err error
		if same, err = p.asGiven(at, found, prior); err != nil {
			return err
		}
	}
	switch {
	case !same:
		return untrusted("the former object of the change differs from the one in its state")
	case !within(change.BeforeSensitive, prior.sensitive):
		return untrusted("the change hides attributes that its state shows")
	}
	return nil
}

// asGiven reports whether an object is the one in the given state, which is another
// than in the one that the plan starts from.
func (p *reading) asGiven(at objectKey, found, prior priorObject) (bool, error) {
	given := maps.Clone(prior.attributes)
	d := p.drifted[at]
	if d == nil {
		return false, nil
	}
	for _, a := range d.Attributes {
		delete(given, a.Name)
		was, err := a.value()
		if err != nil {
			return false, err
		}
		if was == nil {
			continue
		}
		given[a.Name] = sumOf(bare(was))
		if sum := sumOf(was); sum == found.attributes[a.Name] { // it only looks like a value with its type
			given[a.Name] = sum
		}
	}
	d.stale = maps.Equal(found.attributes, given)
	return d.stale, nil
}

// value is what the given state has, as that has it.
func (a DriftedAttribute) value() (was any, err error) {
	if len(a.Was) > 0 {
		err = jsontree.Decode(a.Was, &was)
	}
	return was, err
}

// staleRead notes what a refresh found of an object that is destroyed as it was
// before: provisioners are given it.
func (p *reading) staleRead(d drifted) error {
	if !d.stale || d.Deposed != "" || !p.first.code.provisions(d.Address, p.options.Code) {
		return nil
	}
	attributes := map[string]bool{}
	for _, a := range d.Attributes {
		attributes[a.Name] = true
	}
	return p.add(d.Address, attributes, d.values, nil, func(m maker, values map[string]any, _ any) any {
		return m.tree("", "", values, marks{d.sensitive}, nil)
	})
}

// within reports whether all that marks mark is marked by others, too.
func within(marks, others any) bool {
	if others == true {
		return true
	}
	switch v := marks.(type) {
	case bool:
		return !v
	case map[string]any:
		for key, child := range v {
			if !within(child, jsontree.Field(others, key)) {
				return false
			}
		}
	case []any:
		for i, child := range v {
			if !within(child, jsontree.Item(others, i)) {
				return false
			}
		}
	}
	return true
}

// checkOutput checks the change of an output against the given state and the
// configuration: engines write the planned values, those of outputs that do not change
// as well.
func (p *reading) checkOutput(name string, after, sensitive any, changes bool) error {
	if p.options.Compared == nil {
		return nil
	}
	given, had := p.options.Compared.Outputs[name]
	if jsontree.AnyTrue(sensitive) && !given.Sensitive && !p.first.code.hides(name) {
		return untrusted("it hides a value that neither the configuration nor the state calls sensitive")
	}
	if changes {
		return nil
	}
	var value any
	if had {
		if err := jsontree.Decode(given.Value, &value); err != nil {
			return err
		}
	}
	if !equal(value, after) {
		return untrusted("it is said not to change, and has another value than in the state")
	}
	return nil
}

// checkProviders checks the configurations of providers in the plan file against those
// of the configuration. An object that is in no configuration has the one that it was
// made with.
func (p *reading) checkProviders() error {
	if p.options.Compared == nil {
		return nil
	}
	known := map[string]string{} // by resource
	for _, use := range p.options.Compared.Providers {
		resource := strings.Join(referenceOf(use.Address), ".")
		want, ok := known[resource]
		if !ok {
			want = p.first.code.providerOf(use.Address, p.options.Code)
			known[resource] = want
		}
		if want != "" && (use.Provider == want || strings.HasPrefix(use.Provider, want+"[")) { // OpenTofu has for_each of providers
			continue
		}
		if use.Made == use.Provider && use.Made != "" && (use.Kept || want == "") {
			continue
		}
		if want == "" {
			want = use.Made
		}
		return fmt.Errorf("%s: %w", p.options.Redactor.Known(use.Address),
			untrusted("it has another configuration of its provider (%s) than the code (%s)", use.Provider, want))
	}
	return nil
}

// drifted is an object with other attributes than in the given state.
type drifted struct {
	Drifted
	values    map[string]any // in the state that the plan starts from
	sensitive any
	found     bool
	stale     bool // a change has it as it is in the given state
}

// addDrift adds to the information how the state that the plan starts from differs from
// the given one, whether the engine calls it drift or not.
func (p *reading) addDrift() error {
	if p.options.Compared == nil {
		return nil
	}
	for _, d := range p.options.Compared.Drifted {
		found := p.drifted[objectKey{d.Address, d.Deposed}]
		if found == nil || !found.found {
			return fmt.Errorf("%s: %w", p.options.Redactor.Known(d.Address), untrusted("its state has it, and the engine does not show it"))
		}
		if err := errors.Join(p.drift(*found), p.staleRead(*found)); err != nil {
			return fmt.Errorf("%s: %w", p.options.Redactor.Known(d.Address), err)
		}
	}
	return nil
}

func (p *reading) drift(d drifted) error {
	m := maker{key: p.options.Key, redactor: p.options.Redactor, address: d.Address}
	r := plandoc.Resource{
		Address: m.name("", d.Address), Deposed: d.Deposed, Type: p.options.Redactor.Known(d.Type), Provider: d.Provider,
	}
	at := slices.IndexFunc(p.result.Info.Drift, func(e plandoc.Resource) bool { return e.Address == r.Address && e.Deposed == r.Deposed })
	before, after := map[string]any{}, map[string]any{}
	if at >= 0 {
		r = p.result.Info.Drift[at]
		before, after = objectOf(r.Before), objectOf(r.After)
	}
	r.Actions = []string{"update"}
	for _, a := range d.Attributes {
		was, err := a.value()
		if err != nil {
			return err
		}
		var sensitive marks
		if a.Hidden || jsontree.AnyTrue(d.sensitive) && (d.sensitive == true || jsontree.AnyTrue(jsontree.Field(d.sensitive, a.Name))) {
			sensitive = marks{true}
		}
		name, path := m.name("", a.Name), holdfast.AttributePath("").Key(a.Name)
		before[name] = m.tree(path, a.Name, bare(was), sensitive, nil)
		after[name] = m.tree(path, a.Name, d.values[a.Name], sensitive, nil)
	}
	var err error
	if r.Before, err = plandoc.NewValue(before); err != nil {
		return err
	}
	if r.After, err = plandoc.NewValue(after); err != nil {
		return err
	}
	if at >= 0 {
		p.result.Info.Drift[at] = r
	} else {
		p.result.Info.Drift = append(p.result.Info.Drift, r)
	}
	return nil
}

func objectOf(value plandoc.Value) map[string]any {
	tree, err := value.Tree()
	object, ok := tree.(map[string]any)
	if err != nil || !ok {
		return map[string]any{}
	}
	return object
}

// bare unwraps values that states keep with their types next to them, as those of any
// type are.
func bare(value any) any {
	switch v := value.(type) {
	case map[string]any:
		inner, ok := v["value"]
		if ok && len(v) == 2 && isType(v["type"]) {
			return inner
		}
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = bare(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = bare(v[i])
		}
		return out
	default:
		return value
	}
}

// isType reports whether a value is how a state writes a type.
func isType(value any) bool {
	if list, ok := value.([]any); ok && len(list) > 1 {
		return slices.Contains([]any{"list", "set", "map", "object", "tuple"}, list[0])
	}
	return slices.Contains([]any{"string", "number", "bool", "dynamic"}, value)
}
