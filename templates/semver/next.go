package semver

import (
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
)

// Next returns the newest of the available versions of a template that a
// cluster at current may be moved to; "" if there is none that is newer. The
// constraint, such as "~> 1.4", says which may be; an empty one allows those of
// the same major version. A pre-release counts only if the constraint names one,
// or if current is one of the same version: from 1.5.0-rc.1 it continues to
// 1.5.0-rc.2, and from there to 1.5.0. What is not an exact version is passed over.
func Next(current, constraint string, available []string) string {
	now, err := Parse(current)
	if err != nil {
		return ""
	}
	var allowed version.Constraints
	if strings.TrimSpace(constraint) != "" {
		if allowed, err = version.NewConstraint(constraint); err != nil {
			return ""
		}
	}
	var best *version.Version
	for _, text := range available {
		v, err := Parse(text)
		switch {
		case err != nil || !v.GreaterThan(now) || best != nil && !v.GreaterThan(best):
		case allows(allowed, now, v):
			best = v
		}
	}
	if best == nil {
		return ""
	}
	return best.Original()
}

func allows(constraint version.Constraints, now, v *version.Version) bool {
	goesOn := v.Prerelease() != "" && now.Prerelease() != "" && v.Core().Equal(now.Core())
	switch {
	case goesOn && constraint != nil:
		// A constraint that names no pre-release refuses all of them.
		return constraint.Check(v) || constraint.Check(v.Core())
	case constraint != nil:
		names := slices.ContainsFunc(constraint, func(c *version.Constraint) bool { return c.Prerelease() })
		return constraint.Check(v) && (v.Prerelease() == "" || names) // "!= 1.4.3" alone allows all
	default:
		return v.Segments()[0] == now.Segments()[0] && (v.Prerelease() == "" || goesOn)
	}
}
