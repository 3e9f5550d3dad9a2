package authoring

import (
	"fmt"
	"strings"
)

// Unified returns how one text becomes another, as `diff -u` shows it with three
// lines around each change; "" if they are the same.
func Unified(fromName, toName string, from, to []byte) string {
	a, b := splitLines(string(from)), splitLines(string(to))
	edits := diffLines(a, b)
	var out strings.Builder
	for start := 0; start < len(edits); {
		if edits[start].sign == ' ' {
			start++
			continue
		}
		first, end := hunk(edits, start)
		if out.Len() == 0 {
			fmt.Fprintf(&out, "--- %s\n+++ %s\n", fromName, toName)
		}
		writeHunk(&out, edits[first:end])
		start = end
	}
	return out.String()
}

const around = 3 // lines around a change

// hunk returns the bounds of the changes that are shown together from start on.
func hunk(edits []edit, start int) (first, end int) {
	first, end = max(0, start-around), start
	for gap, i := 0, start; i < len(edits); i++ {
		if gap++; edits[i].sign != ' ' {
			gap, end = 0, i+1
		}
		if gap > 2*around {
			break
		}
	}
	return first, min(len(edits), end+around)
}

func writeHunk(out *strings.Builder, edits []edit) {
	removed, added := 0, 0
	for _, e := range edits {
		if e.sign != '+' {
			removed++
		}
		if e.sign != '-' {
			added++
		}
	}
	at := func(line, count int) string {
		if count == 0 {
			line-- // as others write it
		}
		return fmt.Sprintf("%d,%d", line, count)
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n", at(edits[0].from, removed), at(edits[0].to, added))
	for _, e := range edits {
		out.WriteByte(e.sign)
		out.WriteString(strings.TrimSuffix(e.line, "\n"))
		out.WriteByte('\n')
		if !strings.HasSuffix(e.line, "\n") {
			out.WriteString("\\ No newline at end of file\n")
		}
	}
}

func splitLines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, line)
	}
	return out
}

// edit is a line that stays (' '), goes ('-') or comes ('+').
type edit struct {
	sign     byte
	line     string
	from, to int // the number of the next line of each text, 1-based
}

// diffLines returns the lines of both texts in order, by Myers' algorithm. Texts
// that have little in common are replaced as a whole.
func diffLines(a, b []string) []edit {
	prefix := 0
	for prefix < min(len(a), len(b)) && a[prefix] == b[prefix] {
		prefix++
	}
	suffix := 0
	for suffix < min(len(a), len(b))-prefix && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	var out []edit
	i, j := 0, 0
	push := func(sign byte) {
		e := edit{sign: sign, from: i + 1, to: j + 1}
		if sign == '+' {
			e.line = b[j]
		} else {
			e.line = a[i]
			i++
		}
		if sign != '-' {
			j++
		}
		out = append(out, e)
	}
	for range prefix {
		push(' ')
	}
	for _, sign := range script(a[prefix:len(a)-suffix], b[prefix:len(b)-suffix]) {
		push(sign)
	}
	for range suffix {
		push(' ')
	}
	return out
}

// script returns the signs of the shortest way from a to b.
func script(a, b []string) []byte {
	const most = 2_000 // edits; each takes as many steps as there were before it
	limit := min(len(a)+len(b), most)
	furthest := make([]int, 2*limit+3) // by diagonal, shifted by limit+1
	var trace [][]int
	for d := 0; d <= limit; d++ {
		trace = append(trace, append([]int(nil), furthest[limit+1-d:limit+2+d]...))
		for k := -d; k <= d; k += 2 {
			at := limit + 1 + k
			x := furthest[at-1] + 1
			if k == -d || k != d && furthest[at-1] < furthest[at+1] {
				x = furthest[at+1]
			}
			y := x - k
			for x < len(a) && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			furthest[at] = x
			if x >= len(a) && y >= len(b) {
				return backtrack(trace, len(a), len(b))
			}
		}
	}
	return []byte(strings.Repeat("-", len(a)) + strings.Repeat("+", len(b)))
}

// backtrack walks from the end to the beginning. trace[d] has the diagonals from
// -d to d as they were before step d.
func backtrack(trace [][]int, x, y int) []byte {
	var signs []byte
	for d := len(trace) - 1; d > 0; d-- {
		at := func(k int) int { return trace[d][k+d] }
		k := x - y
		before := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			before = k + 1
		}
		fromX := at(before)
		fromY := fromX - before
		for x > fromX && y > fromY {
			signs = append(signs, ' ')
			x, y = x-1, y-1
		}
		// What is left is one step down or right.
		if before == k+1 {
			signs = append(signs, '+')
		} else {
			signs = append(signs, '-')
		}
		x, y = fromX, fromY
	}
	for range x { // both texts begin alike
		signs = append(signs, ' ')
	}
	for i, j := 0, len(signs)-1; i < j; i, j = i+1, j-1 {
		signs[i], signs[j] = signs[j], signs[i]
	}
	return signs
}
