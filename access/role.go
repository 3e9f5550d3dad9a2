package access

import "slices"

// Role is what somebody may do in a project.
type Role string

// The roles, each including the ones before it.
const (
	Viewer   Role = "viewer"   // reads
	Operator Role = "operator" // plans, applies what was reviewed, suspends, unlocks
	Approver Role = "approver" // also opens the gate of an apply
	Admin    Role = "admin"    // also forces, and ends sessions and tokens of others
)

// Roles are all of them, the weakest first.
func Roles() []Role { return []Role{Viewer, Operator, Approver, Admin} }

// Includes reports whether r may do what other may. An unknown role allows nothing.
func (r Role) Includes(other Role) bool {
	roles := Roles()
	return slices.Contains(roles, other) && slices.Index(roles, r) >= slices.Index(roles, other)
}

// IsValid reports whether r is one of the roles.
func (r Role) IsValid() bool { return slices.Contains(Roles(), r) }
