package linemerge

import (
	"bytes"
	"slices"
)

// maxEdits bounds the lines by which a file may differ from the merge base to be
// merged line by line; memory grows with its square.
const maxEdits = 1500

// Merge merges what ours and theirs made of base, and reports whether they
// left one another's lines alone: changes that overlap or touch must be the same.
func Merge(base, ours, theirs []byte) (merged []byte, ok bool) {
	in := interner{}
	b, o, t := in.lines(base), in.lines(ours), in.lines(theirs)
	left, ok := diffLines(b.ids, o.ids)
	if !ok {
		return nil, false
	}
	right, ok := diffLines(b.ids, t.ids)
	if !ok {
		return nil, false
	}

	// The three texts are walked side by side; at, atOurs and atTheirs are equal
	// places in them.
	var out bytes.Buffer
	at, atOurs, atTheirs := 0, 0, 0
	for len(left) > 0 || len(right) > 0 {
		lo, hi, nl, nr := group(left, right)
		b.write(&out, at, lo)
		atOurs, atTheirs = atOurs+lo-at, atTheirs+lo-at

		endOurs, endTheirs := atOurs+hi-lo, atTheirs+hi-lo
		for _, h := range left[:nl] {
			endOurs += h.grows()
		}
		for _, h := range right[:nr] {
			endTheirs += h.grows()
		}
		switch {
		case nr == 0, slices.Equal(o.ids[atOurs:endOurs], t.ids[atTheirs:endTheirs]):
			o.write(&out, atOurs, endOurs)
		case nl == 0:
			t.write(&out, atTheirs, endTheirs)
		default:
			return nil, false
		}
		at, atOurs, atTheirs = hi, endOurs, endTheirs
		left, right = left[nl:], right[nr:]
	}
	b.write(&out, at, len(b.ids))
	return out.Bytes(), true
}

// hunk says that lines [from, to) of the old text became count lines.
type hunk struct{ from, to, count int }

func (h hunk) grows() int { return h.count - (h.to - h.from) }

// group takes the first hunks of both sides that overlap or touch, and returns
// the lines of the base that they span, and how many of each side they are.
func group(left, right []hunk) (lo, hi, nl, nr int) {
	switch {
	case len(right) == 0 || len(left) > 0 && left[0].from <= right[0].from:
		lo, hi, nl = left[0].from, left[0].to, 1
	default:
		lo, hi, nr = right[0].from, right[0].to, 1
	}
	for {
		switch {
		case nl < len(left) && left[nl].from <= hi:
			hi = max(hi, left[nl].to)
			nl++
		case nr < len(right) && right[nr].from <= hi:
			hi = max(hi, right[nr].to)
			nr++
		default:
			return lo, hi, nl, nr
		}
	}
}

// text is lines, each with its line feed, and a number for each that is equal
// for equal lines.
type text struct {
	lines [][]byte
	ids   []int
}

func (t text) write(out *bytes.Buffer, from, to int) {
	for _, line := range t.lines[from:to] {
		out.Write(line)
	}
}

type interner map[string]int

func (in interner) lines(data []byte) text {
	var t text
	for line := range bytes.Lines(data) {
		id, ok := in[string(line)]
		if !ok {
			id = len(in)
			in[string(line)] = id
		}
		t.lines = append(t.lines, line)
		t.ids = append(t.ids, id)
	}
	return t
}

// diffLines returns what turns a into b, in order, by the fewest lines removed
// and added; false if these are more than maxEdits. It is Myers' greedy search:
// trace[d][k] is how far along a one gets on diagonal k (index in a minus index
// in b) with d edits.
func diffLines(a, b []int) ([]hunk, bool) {
	prefix := 0
	for prefix < len(a) && prefix < len(b) && a[prefix] == b[prefix] {
		prefix++
	}
	suffix := 0
	for suffix < len(a)-prefix && suffix < len(b)-prefix && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	a, b = a[prefix:len(a)-suffix], b[prefix:len(b)-suffix]
	trace, ok := search(a, b)
	if !ok {
		return nil, false
	}

	// Walk back from the end and note which lines the edits were.
	removed, inserted := make([]bool, len(a)), make([]bool, len(b))
	x, y := len(a), len(b)
	for d := len(trace) - 1; d > 0; d-- {
		k := x - y
		from := trace[d-1].origin(k)
		x = trace[d-1].at(from)
		y = x - from
		if from < k {
			removed[x] = true
		} else {
			inserted[y] = true
		}
	}
	return hunksOf(removed, inserted, prefix), true
}

// hunksOf joins edits without an equal line between them.
func hunksOf(removed, inserted []bool, offset int) []hunk {
	var hunks []hunk
	for i, j := 0, 0; i < len(removed) || j < len(inserted); i, j = i+1, j+1 {
		from, before := i, j
		for i < len(removed) && removed[i] {
			i++
		}
		for j < len(inserted) && inserted[j] {
			j++
		}
		if i > from || j > before {
			hunks = append(hunks, hunk{from: from + offset, to: i + offset, count: j - before})
		}
	}
	return hunks
}

// frontier is how far one gets on the diagonals -d … d.
type frontier struct {
	d   int
	far []int32
}

func (f frontier) at(k int) int {
	if k < -f.d || k > f.d {
		return -1
	}
	return int(f.far[k+f.d])
}

// origin is the diagonal from which k is reached by one more edit: by removing a
// line from the one below, by inserting one from the one above.
func (f frontier) origin(k int) int {
	if k == -f.d-1 || k != f.d+1 && f.at(k-1) < f.at(k+1) {
		return k + 1
	}
	return k - 1
}

func search(a, b []int) ([]frontier, bool) {
	var trace []frontier
	for d := 0; d <= maxEdits; d++ {
		f := frontier{d: d, far: make([]int32, 2*d+1)}
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				before := trace[d-1]
				from := before.origin(k)
				x = before.at(from)
				if from < k {
					x++
				}
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			f.far[k+d] = int32(x)
			if x >= len(a) && x-k >= len(b) {
				return append(trace, f), true
			}
		}
		trace = append(trace, f)
	}
	return nil, false
}
