package templates

import (
	"fmt"
	"slices"
	"strings"
)

// nearest returns the candidate that word is most likely a misspelling of, or
// "" if none is near. Of two equally near ones the first in order of the
// alphabet is taken.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", max(2, len(word)/3)+1
	if len(word) > 100 {
		return ""
	}
	for _, candidate := range slices.Sorted(slices.Values(candidates)) {
		if len(candidate) > 100 {
			continue
		}
		d := distance(strings.ToLower(word), strings.ToLower(candidate))
		if d < bestDistance && d < len(candidate) {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance is the number of characters to add, drop, replace or swap with their
// neighbour.
func distance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		cur[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			cur[j+1] = min(prev[j+1]+1, cur[j]+1, prev[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				cur[j+1] = min(cur[j+1], before[j-1]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}

// didYouMean is the hint for a word that is not one of candidates.
func didYouMean(word string, candidates []string) string {
	if near := nearest(word, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return oneOf(candidates)
}

// oneOf is the hint that lists what is allowed, as far as it fits on a line.
func oneOf(candidates []string) string {
	const most = 12
	sorted := slices.Sorted(slices.Values(candidates))
	switch {
	case len(sorted) == 0:
		return ""
	case len(sorted) == 1:
		return "the only one is " + sorted[0]
	case len(sorted) > most:
		return fmt.Sprintf("one of %s, … (%d in all)", strings.Join(sorted[:most], ", "), len(sorted))
	}
	return "one of " + strings.Join(sorted, ", ")
}
