package access

import "slices"

// Binding gives a role to people.
type Binding struct {
	Role     Role
	Projects []string   // none: all
	Groups   []string   // whoever is in one of them, as the identity provider says
	People   []PersonID // and these
	Everyone bool       // and whoever the identity provider knows
}

// holds reports whether a binding is for somebody.
func (b Binding) holds(p Person) bool {
	return b.Everyone || slices.Contains(b.People, p.ID) ||
		slices.ContainsFunc(p.Groups, func(group string) bool { return slices.Contains(b.Groups, group) }) ||
		slices.ContainsFunc(p.Links, func(link PersonID) bool { return slices.Contains(b.People, link) })
}

// GrantsFor are the roles that bindings give to somebody.
func GrantsFor(p Person, bindings []Binding) Grants {
	grants := make(Grants)
	for _, binding := range bindings {
		if binding.holds(p) {
			grants = grants.With(GrantsOf(binding.Role, binding.Projects...))
		}
	}
	return grants
}
