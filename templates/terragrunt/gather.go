package terragrunt

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/modules"
)

// Gather gathers what a unit is made of.
func (u *Unit) Gather(g *modules.Gatherer, engine string) error {
	missing := func() holdfast.Fault { return u.Source.Fault("there is no folder "+u.Source.Dir, "") }
	if err := g.GatherRoot(u.Source.Dir, engine, missing); err != nil {
		return fmt.Errorf("read module %s: %w", u.Source.Dir, err)
	}
	if err := g.Gather(u.Dir, missing); err != nil {
		return fmt.Errorf("read unit %s: %w", u.Dir, err)
	}
	for _, name := range u.Files {
		if err := g.Refer(name); err != nil {
			return fmt.Errorf("read unit %s: %w", u.Dir, err)
		}
	}
	if err := g.ReferRoot(u.Source.Dir); err != nil {
		return fmt.Errorf("read module %s: %w", u.Source.Dir, err)
	}
	return nil
}

// Backend is what says where the state is of a unit that was gathered: its configuration,
// otherwise the code; nil: neither does.
func (u *Unit) Backend(g *modules.Gatherer) *modules.Backend {
	if s := u.State; s != nil {
		return &modules.Backend{Kind: s.Backend, Attributes: s.Config, Unread: s.Unread, File: s.File, Line: s.Line}
	}
	return g.Modules[u.Source.Dir].Backend()
}
