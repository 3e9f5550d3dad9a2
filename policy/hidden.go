package policy

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Hidden stands, in a plan that is given as a tree, for a value that the plan does not show.
type Hidden struct{}

// guarded is an object with hidden values: it counts how often somebody asks for one of
// these, or for all that it has. Whatever a policy does with such a value, it begins with
// that.
type guarded struct {
	ast.Object
	secret []string // keys
	reads  *int
}

// guardedName is in the errors of functions that take no other objects than their own.
const guardedName = "guarded requires evaluation"

func guard(object ast.Object, secret []string, reads *int) guarded {
	return guarded{Object: object, secret: secret, reads: reads}
}

func (g guarded) read() { *g.reads++ }

func (g guarded) isSecret(key *ast.Term) bool {
	name, ok := key.Value.(ast.String)
	return ok && slices.Contains(g.secret, string(name))
}

// Get notes who asks for a hidden value.
func (g guarded) Get(key *ast.Term) *ast.Term {
	if g.isSecret(key) {
		g.read()
	}
	return g.Object.Get(key)
}

// Find notes who asks for a hidden value, or for something in one.
func (g guarded) Find(path ast.Ref) (ast.Value, error) {
	if len(path) == 0 {
		return g, nil
	}
	term := g.Get(path[0])
	if term == nil {
		return g.Object.Find(path)
	}
	return term.Value.Find(path[1:])
}

// What follows shows all that the object has.

// Hash is a read of all: sets and functions find their members and arguments by it. Of what the
// object is a part of it was asked for before, so that who looks for a whole resource in a set
// is not noticed.
func (g guarded) Hash() int {
	g.read()
	return g.Object.Hash()
}

// Compare is a read of all.
func (g guarded) Compare(other ast.Value) int {
	g.read()
	if o, ok := other.(guarded); ok {
		other = o.Object
	}
	return g.Object.Compare(other)
}

// String is a read of all.
func (g guarded) String() string {
	g.read()
	return g.Object.String()
}

// Iter is a read of all.
func (g guarded) Iter(f func(*ast.Term, *ast.Term) error) error {
	g.read()
	return g.Object.Iter(f)
}

// Until is a read of all.
func (g guarded) Until(f func(*ast.Term, *ast.Term) bool) bool {
	g.read()
	return g.Object.Until(f)
}

// Foreach is a read of all.
func (g guarded) Foreach(f func(*ast.Term, *ast.Term)) {
	g.read()
	g.Object.Foreach(f)
}

// Map is a read of all.
func (g guarded) Map(f func(*ast.Term, *ast.Term) (*ast.Term, *ast.Term, error)) (ast.Object, error) {
	g.read()
	return g.Object.Map(f)
}

// Copy is a read of all: nothing guards the copy.
func (g guarded) Copy() ast.Object {
	g.read()
	return g.Object.Copy()
}

// Diff is a read of all.
func (g guarded) Diff(other ast.Object) ast.Object {
	g.read()
	return g.Object.Diff(other)
}

// Intersect is a read of all.
func (g guarded) Intersect(other ast.Object) [][3]*ast.Term {
	g.read()
	return g.Object.Intersect(other)
}

// Merge is a read of all.
func (g guarded) Merge(other ast.Object) (ast.Object, bool) {
	g.read()
	return g.Object.Merge(other)
}

// MergeWith is a read of all.
func (g guarded) MergeWith(other ast.Object, resolve func(v1, v2 *ast.Term) (*ast.Term, bool)) (ast.Object, bool) {
	g.read()
	return g.Object.MergeWith(other, resolve)
}

// Filter is a read of all.
func (g guarded) Filter(filter ast.Object) (ast.Object, error) {
	g.read()
	return g.Object.Filter(filter)
}

// KeysIterator and Keys show names alone, which are not hidden; what follows is a Get.
