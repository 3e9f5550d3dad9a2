package wording

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/nearest"
)

// DidYouMean is the hint for a word that is not one of candidates.
func DidYouMean(word string, candidates []string) string {
	if near := nearest.Of(word, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return OneOf(candidates)
}

// NearestOf is the hint for a value: what was meant perhaps, and all that is allowed.
func NearestOf(word string, allowed []string) string {
	if near := nearest.Of(word, allowed); near != "" && len(allowed) > 1 {
		return fmt.Sprintf("did you mean %q? %s", near, OneOf(allowed))
	}
	return DidYouMean(word, allowed)
}

// OneOf is the hint that lists what is allowed, as far as it fits on a line.
func OneOf(candidates []string) string {
	return OneInOrder(slices.Sorted(slices.Values(candidates)))
}

// OneInOrder is oneOf for candidates of which the first ones matter most.
func OneInOrder(candidates []string) string {
	const most = 12
	switch {
	case len(candidates) == 0:
		return ""
	case len(candidates) == 1:
		return "the only one is " + candidates[0]
	case len(candidates) > most:
		return fmt.Sprintf("one of %s, … (%d in all)", strings.Join(candidates[:most], ", "), len(candidates))
	}
	return "one of " + strings.Join(candidates, ", ")
}
