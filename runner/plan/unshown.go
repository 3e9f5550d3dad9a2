package plan

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// expect notes what the second look has to find.
func (p *reading) expect() {
	p.drifted = map[objectKey]*drifted{}
	if p.options.Compared == nil {
		return
	}
	for _, d := range p.options.Compared.Drifted {
		p.drifted[objectKey{d.Address, d.Deposed}] = &drifted{Drifted: d}
	}
}

// addCompared adds what the plan file and the given state differ in, or refuses it.
func (p *reading) addCompared() error {
	if p.options.Compared == nil {
		return nil
	}
	for _, u := range p.options.Compared.Unshown {
		if err := p.unshown(u); err != nil {
			return fmt.Errorf("%s: %w", p.options.Redactor.Known(u.Address), err)
		}
	}
	return errors.Join(p.checkProviders(), p.addDrift())
}

// unshown adds a change that the engine's JSON does not have: an object that is
// gone is forgotten, one that is another object now is updated in its id. Where the
// engine has a change of that object as well, the id it had is a part of it.
func (p *reading) unshown(u Unshown) error {
	m := maker{key: p.options.Key, redactor: p.options.Redactor, address: u.Address}
	r := plandoc.Resource{
		Address: m.name("", u.Address), Deposed: u.Deposed, Type: p.options.Redactor.Known(u.Type), Provider: u.Provider,
		Actions: []string{"update"}, Reason: holdfast.OtherObject,
	}
	id := func(id string) map[string]any { return map[string]any{"id": m.name("id", id)} }
	for i := range p.result.Document.Resources {
		shown := &p.result.Document.Resources[i]
		if shown.Address != r.Address || shown.Deposed != r.Deposed {
			continue
		}
		if u.Gone {
			return errors.New("it is gone, and the plan shows something else")
		}
		tree, err := shown.Before.Tree()
		if err != nil {
			return err
		}
		before, ok := tree.(map[string]any)
		if !ok {
			return errors.New("it is another object than in the state, and the plan does not show the old one")
		}
		before["id"] = m.name("id", u.WasID)
		if shown.Actions[0] == "no-op" {
			shown.Actions, shown.Reason = r.Actions, r.Reason
		}
		shown.Before, err = plandoc.NewValue(before)
		return err
	}
	var err error
	if r.Before, err = plandoc.NewValue(id(u.WasID)); err != nil {
		return err
	}
	if u.Gone {
		r.Actions, r.Reason = []string{"forget"}, holdfast.GoneOutside
	} else if r.After, err = plandoc.NewValue(id(u.ID)); err != nil {
		return err
	}
	p.result.Document.Resources = append(p.result.Document.Resources, r)
	return nil
}
