package nearest

import (
	"slices"
	"strings"
)

// Of returns the candidate that word is most likely a misspelling of, or "" if none is
// near. If two are equally near, the first in alphabetical order is returned. The case
// of letters does not count.
func Of(word string, candidates []string) string {
	const longest = 100 // bytes; what people misspell is shorter
	if len(word) > longest {
		return ""
	}
	best, bestDistance := "", max(2, len(word)/3)+1
	for _, candidate := range slices.Sorted(slices.Values(candidates)) {
		if len(candidate) > longest {
			continue
		}
		d := Distance(strings.ToLower(word), strings.ToLower(candidate))
		if d < bestDistance && d < len(candidate) {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// Distance is the number of bytes to add, drop, replace or swap with their
// neighbour to make b of a.
func Distance(a, b string) int {
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
