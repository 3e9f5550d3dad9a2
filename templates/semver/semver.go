package semver

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
)

var exactVersion = regexp.MustCompile(`^(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// IsExact reports whether text is one version, such as 1.4.2, and not a constraint or
// a shorthand of one.
func IsExact(text string) bool { return exactVersion.MatchString(text) }

// Parse reads an exact version. Its error says no more than that it is not one.
func Parse(text string) (*version.Version, error) {
	if !IsExact(text) {
		return nil, errInexact
	}
	return version.NewSemver(text)
}

var errInexact = errors.New("no exact version")

// Newer reports whether version a is newer than b. What is not an exact version is
// newer than nothing.
func Newer(a, b string) bool {
	x, errA := Parse(a)
	y, errB := Parse(b)
	return errA == nil && errB == nil && x.GreaterThan(y)
}

// Sort returns the exact versions among some, newest first.
func Sort(all []string) []string {
	var known []*version.Version
	for _, text := range all {
		if v, err := Parse(text); err == nil {
			known = append(known, v)
		}
	}
	slices.SortFunc(known, func(a, b *version.Version) int {
		return cmp.Or(b.Compare(a), strings.Compare(a.Original(), b.Original()))
	})
	out := make([]string, len(known))
	for i, v := range known {
		out[i] = v.Original()
	}
	return out
}
