package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// flatten returns what is wrong at the leaves of a tree of errors, in order of their
// paths: no more than can be reported, as putting it into words is the larger part of
// the work. Alternatives of which none fits are one violation: each of them alone would
// be a wrong word.
func (s *Checker) flatten(e *jsonschema.ValidationError) []Violation {
	leaves := leavesOf(e, nil)
	slices.SortStableFunc(leaves, func(a, b *jsonschema.ValidationError) int {
		return comparePaths(a.InstanceLocation, b.InstanceLocation)
	})
	var out []Violation
	for _, leaf := range leaves {
		if at := leaf.InstanceLocation; len(at) > 0 && s.Secrets[at[0]] {
			continue // what it is, nobody knows
		}
		conditional := behindCondition(leaf.SchemaURL)
		for _, v := range s.words(leaf) {
			v.conditional = conditional
			if len(out) == 0 || !v.equal(out[len(out)-1]) {
				out = append(out, v)
			}
		}
		if len(out) >= maxViolations {
			break
		}
	}
	return out
}

// comparePaths sorts paths, items of lists by their numbers.
func comparePaths(a, b []string) int {
	return slices.CompareFunc(a, b, func(a, b string) int {
		i, errA := strconv.Atoi(a)
		j, errB := strconv.Atoi(b)
		switch {
		case errA == nil && errB == nil && i != j:
			return cmp.Compare(i, j)
		case errA == nil && errB != nil:
			return -1
		case errA != nil && errB == nil:
			return 1
		}
		return strings.Compare(a, b)
	})
}

// Alone reports whether a value is refused whatever other variables there are.
func (v Violation) Alone() bool { return len(v.Path) > 0 && !v.conditional }

// Refused reports whether any of some violations is about a variable: it has a value that
// does not fit, it is missing, its name is misspelt, or the variables do not fit as a
// whole.
func Refused(violations []Violation, variable string) bool {
	return slices.ContainsFunc(violations, func(v Violation) bool {
		switch {
		case len(v.Path) > 0:
			return v.Path[0] == variable || v.meant == variable
		case len(v.missing) > 0:
			return slices.Contains(v.missing, variable)
		default:
			return true
		}
	})
}

// Valued reports whether a variable has a value: one that is given, as it is or as a secret,
// or a default.
func Valued[P, S any](s *Schema, plain map[string]P, secrets map[string]S, variable string) bool {
	_, given := plain[variable]
	_, secret := secrets[variable]
	_, fallback := s.Defaults[variable]
	return given || secret || fallback
}

// behindCondition reports whether a schema holds only if others do.
func behindCondition(location string) bool {
	return slices.ContainsFunc(strings.Split(location, "/"), func(word string) bool {
		return word == "then" || word == "else" || word == "dependentSchemas"
	})
}

func (v Violation) equal(other Violation) bool {
	return slices.Equal(v.Path, other.Path) && v.Message == other.Message
}

// leavesOf appends the leaves of a tree of errors: what is reported separately.
func leavesOf(e *jsonschema.ValidationError, leaves []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.PropertyNames, *kind.Contains:
		return append(leaves, e)
	}
	if len(e.Causes) == 0 {
		return append(leaves, e)
	}
	for _, cause := range e.Causes {
		leaves = leavesOf(cause, leaves)
	}
	return leaves
}
