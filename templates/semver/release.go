package semver

import (
	"github.com/hashicorp/go-version"
)

// Newest returns the newest of some versions that is not newer than upTo (empty:
// of all), "" if there is none. A pre-release counts only if upTo is one.
func Newest(available []string, upTo string) string {
	limit, _ := version.NewSemver(upTo)
	var best *version.Version
	for _, text := range available {
		v, err := version.NewSemver(text)
		switch {
		case err != nil:
		case limit != nil && v.GreaterThan(limit):
		case v.Prerelease() != "" && (limit == nil || limit.Prerelease() == ""):
		case best == nil || v.GreaterThan(best):
			best = v
		}
	}
	if best == nil {
		return ""
	}
	return best.Original()
}

// Nearest returns the newest of the available versions that is not newer than the wanted
// one, otherwise the oldest that is; "" if the wanted one is not a version, or none is
// available.
func Nearest(wanted string, available []string) string {
	limit, err := version.NewSemver(wanted)
	if err != nil {
		return ""
	}
	var below, above *version.Version
	for _, text := range available {
		v, err := version.NewSemver(text)
		switch {
		case err != nil:
		case v.LessThanOrEqual(limit) && (below == nil || below.LessThan(v)):
			below = v
		case v.GreaterThan(limit) && (above == nil || v.LessThan(above)):
			above = v
		}
	}
	switch {
	case below != nil:
		return below.Original()
	case above != nil:
		return above.Original()
	default:
		return ""
	}
}

// MayBreak reports whether somebody who goes from one version to another has to
// expect that what was valid no longer is: another major version, and before
// 1.0.0 another minor one.
func MayBreak(from, to string) bool {
	a, errA := version.NewSemver(from)
	b, errB := version.NewSemver(to)
	if errA != nil || errB != nil {
		return true
	}
	x, y := a.Segments(), b.Segments()
	return x[0] != y[0] || x[0] == 0 && x[1] != y[1]
}
