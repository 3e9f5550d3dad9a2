package statements

import (
	"slices"
	"strings"
)

// Conditions build a WHERE clause. The zero value selects all.
type Conditions struct {
	parts []string
	Args  []any // in the order of the clause
}

// Add adds a condition, which is to hold as well, and its arguments.
func (c *Conditions) Add(part string, args ...any) {
	c.parts = append(c.parts, part)
	c.Args = append(c.Args, args...)
}

// Where is the clause, with a space before it; empty if there are no conditions.
func (c *Conditions) Where() string {
	if len(c.parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.parts, " AND ")
}

// Clone returns a copy to which others can be added.
func (c *Conditions) Clone() Conditions {
	return Conditions{parts: slices.Clone(c.parts), Args: slices.Clone(c.Args)}
}
