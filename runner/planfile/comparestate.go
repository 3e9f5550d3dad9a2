package planfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unshown is a difference between the state that the engine was given and the one
// in the plan file that no change of the plan shows, and that an apply would write.
type Unshown struct {
	// Address is where the object is after moves. Deposed is the key of a deposed
	// one, empty for the current one. Provider is a source address.
	Address, Deposed, Type, Provider string
	// Gone: it is in the state no longer.
	Gone bool
	// WasID identified it, ID identifies it now.
	WasID, ID string
}

// ErrOtherState is wrapped by the error about a plan that was made from a state of
// another serial or lineage than the given one.
var ErrOtherState = errors.New("the plan was made from another state than the run was given")

// Actions that change nothing.
const (
	actionNone = 0
	actionRead = 2
)

// Actions after which an engine no longer manages an object.
const (
	actionDelete = 5
	actionForget = 8
)

// isData reports whether an address is that of a data source.
func isData(address string) bool {
	for {
		rest, ok := strings.CutPrefix(address, "module.")
		if !ok {
			return strings.HasPrefix(address, "data.")
		}
		end, quoted, escaped, depth := len(rest), false, false, 0
		for i, b := range []byte(rest) {
			switch {
			case escaped:
				escaped = false
			case quoted && b == '\\':
				escaped = true
			case depth > 0 && b == '"':
				quoted = !quoted
			case quoted:
			case b == '[':
				depth++
			case b == ']':
				depth--
			case b == '.' && depth == 0:
				end = i + 1
			}
			if end < len(rest) {
				break
			}
		}
		address = rest[end:]
	}
}

// Drifted is an object that has other attributes in the plan file's state than in
// the one that the engine was given. An honest one differs by what a refresh found.
type Drifted struct {
	// Address is where the object is after moves. Provider is a source address.
	Address, Deposed, Type, Provider string
	Attributes                       []DriftedAttribute // sorted by name
}

// DriftedAttribute is an attribute at the top of an object.
type DriftedAttribute struct {
	Name string
	// Was is the value in the state that the engine was given, as that has it; nil:
	// it had none.
	Was json.RawMessage
	// Hidden: that state marks something in it as sensitive.
	Hidden bool
}

// ProviderUse is a configuration of a provider that the plan file has for an object,
// and that the configuration must have, or the state that the engine was given.
type ProviderUse struct {
	Address, Deposed string
	Provider         string // such as module.x.provider["registry.terraform.io/hashicorp/aws"].west
	Made             string // that of the given state; empty: the object is not in it
	// Kept: nothing is made with it, so that the one of the given state is accepted.
	Kept bool
}

// Differences are what CheckState finds that an honest plan file can have too.
type Differences struct {
	Unshown   []Unshown
	Drifted   []Drifted
	Providers []ProviderUse
}

// CheckState compares the state that the engine was given with the one in the plan
// file, and returns by address in what they differ. Objects that are new and not
// imported, no longer tainted, or newly tainted are an error.
func (p *Plan) CheckState(given, prior *State) (Differences, error) {
	c := comparison{plan: p, given: given, prior: prior, taken: map[object]bool{}}
	if len(given.objects) > 0 && (given.lineage != prior.lineage || given.serial != prior.serial) {
		return c.found, ErrOtherState
	}
	for _, was := range given.sorted() {
		if err := c.object(was, p.placed(was)); err != nil {
			return c.found, err
		}
	}
	for _, at := range prior.sorted() {
		if c.taken[at] {
			continue
		}
		if !p.changes[at].importing {
			return c.found, fmt.Errorf("the plan file has %s in its state, which the run's state does not have and which is not imported", at.address)
		}
		c.provider(at, prior.objects[at].config, "", true)
	}
	for _, at := range slices.SortedFunc(maps.Keys(p.changes), compareObjects) {
		if change := p.changes[at]; change.usesProvider() && !isData(at.address) {
			c.provider(at, change.provider, c.made(at), change.action == actionDelete)
		}
	}
	return c.found, nil
}

// placed returns where an object of the given state is after moves.
func (p *Plan) placed(was object) object {
	if to, ok := p.moved[was]; ok {
		return to
	}
	if to, ok := p.moved[object{was.address, ""}]; ok {
		return object{to.address, was.deposed}
	}
	return was
}

func (c change) usesProvider() bool {
	return c.action != actionNone && c.action != actionRead && c.action != actionForget
}

// comparison is of two states.
type comparison struct {
	plan         *Plan
	given, prior *State
	taken        map[object]bool // where objects of the given state are now
	from         map[object]object
	found        Differences
}

// object compares one of the given state with what is at its place.
func (c *comparison) object(was, at object) error {
	if c.taken[at] {
		return fmt.Errorf("the plan file has one object for two in the state: %s", at.address)
	}
	c.taken[at] = true
	if at != was {
		if c.from == nil {
			c.from = map[object]object{}
		}
		c.from[at] = was
	}
	before, change := c.given.objects[was], c.plan.changes[at]
	after, there := c.prior.objects[at]
	u := Unshown{Address: at.address, Deposed: at.deposed, Type: before.kind, Provider: before.provider, WasID: before.name(), ID: after.name()}
	switch {
	case !there && change.address != "" && change.action != actionNone && change.action != actionRead:
		return nil
	case !there:
		u.Gone = true
		c.found.Unshown = append(c.found.Unshown, u)
		return nil
	case before.status != after.status || before.kind != after.kind && at == was:
		return fmt.Errorf("the plan file has %s in another condition (type, tainted or not) than the state", at.address)
	case before.id != after.id || before.identity != "" && before.identity != after.identity:
		c.found.Unshown = append(c.found.Unshown, u)
	}
	if list := before.drift(after); len(list) > 0 {
		c.found.Drifted = append(c.found.Drifted, Drifted{
			Address: at.address, Deposed: at.deposed, Type: after.kind, Provider: after.provider, Attributes: list,
		})
	}
	c.provider(at, after.config, before.config, true)
	return nil
}

// drift returns the attributes that are others after.
func (i instance) drift(after instance) []DriftedAttribute {
	if i.attributes == nil && after.attributes != nil {
		return nil // of a form that engines wrote long ago
	}
	names := slices.Collect(maps.Keys(i.attributes))
	for name := range after.attributes {
		if _, ok := i.attributes[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var list []DriftedAttribute
	for _, name := range names {
		was, had := i.attributes[name]
		is, has := after.attributes[name]
		if had != has || was.sum != is.sum {
			list = append(list, DriftedAttribute{Name: name, Was: was.value, Hidden: i.allHidden || i.hidden[name]})
		}
	}
	return list
}

// provider notes the configuration of a provider if it is not what the given state
// has.
func (c *comparison) provider(at object, provider, made string, kept bool) {
	if provider != made || !kept {
		c.found.Providers = append(c.found.Providers, ProviderUse{
			Address: at.address, Deposed: at.deposed, Provider: provider, Made: made, Kept: kept,
		})
	}
}

// made returns the provider configuration that the given state has for an object;
// empty: it is not in it.
func (c *comparison) made(at object) string {
	was, moved := c.from[at]
	if !moved {
		was = at
	}
	return c.given.objects[was].config
}
