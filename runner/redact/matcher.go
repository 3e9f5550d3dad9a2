package redact

import (
	"bytes"
	"slices"
)

// matcher finds many strings at once: Wu and Manber's way. It looks at blocks of three
// bytes and skips ahead as far as no string can end; most text is passed over in steps
// of six bytes. For long strings it knows each eighth byte's surroundings, so that it
// finds pieces of them.
type matcher struct {
	shift   []uint8 // by hash of a block: how far to continue
	byStart map[[minSecret]byte][]string
	starts  [][minSecret]byte // sorted
	inside  map[[minSecret]byte][]place
	blocks  []uint64 // of long strings, by hash: a set
}

// place is where in a long string something is.
type place struct {
	form   string
	at     int
	needed extent
}

const (
	blockSize = 3
	shiftBits = 15
	maxShift  = minSecret - blockSize + 1
	maxPlaces = 8 // of the same eight bytes
)

// newMatcher returns a matcher of strings, and of pieces of those whose extent says
// so.
func newMatcher(forms map[string]extent) *matcher {
	m := &matcher{
		byStart: make(map[[minSecret]byte][]string, len(forms)), inside: make(map[[minSecret]byte][]place),
	}
	if len(forms) == 0 {
		return m
	}
	m.shift, m.blocks = make([]uint8, 1<<shiftBits), make([]uint64, 1<<(shiftBits-6))
	for i := range m.shift {
		m.shift[i] = maxShift
	}
	for form, needed := range forms {
		start := m.know(form)
		m.byStart[start] = append(m.byStart[start], form)
		if needed == allOfIt || len(form) <= minPiece {
			continue
		}
		for at := 0; at+minSecret <= len(form); at += minSecret {
			if inner := m.know(form[at:]); len(m.inside[inner]) < maxPlaces {
				m.inside[inner] = append(m.inside[inner], place{form, at, needed})
			}
		}
		for i := 0; i+blockSize <= len(form); i++ {
			h := blockHash(form[i], form[i+1], form[i+2])
			m.blocks[h>>6] |= 1 << (h & 63)
		}
	}
	for start, list := range m.byStart {
		m.starts = append(m.starts, start)
		slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) }) // the longest wins
	}
	slices.SortFunc(m.starts, func(a, b [minSecret]byte) int { return bytes.Compare(a[:], b[:]) })
	return m
}

func (m *matcher) empty() bool { return len(m.byStart) == 0 }

// know makes find look where text begins.
func (m *matcher) know(text string) (start [minSecret]byte) {
	copy(start[:], text)
	for end := blockSize; end <= minSecret; end++ {
		slot := &m.shift[blockHash(text[end-blockSize], text[end-2], text[end-1])]
		*slot = min(*slot, uint8(minSecret-end))
	}
	return start
}

func blockHash(a, b, c byte) uint32 {
	return (uint32(a)<<10 ^ uint32(b)<<5 ^ uint32(c)) & (1<<shiftBits - 1)
}

// find calls found with what is secret in text, and returns how much of text is
// decided, all of it if it is final: what follows may be the beginning of
// something. An end of fewer than short bytes is never taken for one.
func (m *matcher) find(text []byte, final bool, short int, found func(span)) (decided int) {
	if m.empty() {
		return len(text)
	}
	decided = len(text)
	done, covered := 0, 0 // where the last string, and the last piece, ends
	for pos := minSecret - 1; pos < len(text); {
		if skip := m.shift[blockHash(text[pos-2], text[pos-1], text[pos])]; skip > 0 {
			pos += int(skip)
			continue
		}
		start := pos - (minSecret - 1)
		if pos >= covered {
			piece, open := m.piece(text, start, done)
			decided = min(decided, open)
			if piece.to > piece.from {
				found(piece)
				covered = piece.to
			}
		}
		end, more := m.whole(text[start:])
		if more {
			decided = min(decided, start)
		}
		if pos++; end > 0 {
			found(span{start, start + end})
			done = start + end
			pos = max(pos, done+minSecret-1)
		}
	}
	if final {
		return len(text)
	}
	return min(decided, m.openEnd(text, max(done, covered), short))
}

// whole returns the length of the longest string that text begins with, 0 if it
// begins with none. more says that a longer one may come behind its end.
func (m *matcher) whole(text []byte) (length int, more bool) {
	for _, form := range m.byStart[[minSecret]byte(text[:minSecret])] {
		switch n := min(len(form), len(text)); {
		case form[:n] != string(text[:n]):
		case n == len(form):
			return n, more
		default:
			more = true
		}
	}
	return 0, more
}

// piece returns the longest piece of a long string around the eight bytes at start,
// not before done. open is where something begins that may continue, or become long
// enough, behind the end of text; the end of text if there is none.
func (m *matcher) piece(text []byte, start, done int) (s span, open int) {
	open = len(text)
	for _, p := range m.inside[[minSecret]byte(text[start:start+minSecret])] {
		from, to := start, start+minSecret
		for at := p.at; from > done && at > 0 && text[from-1] == p.form[at-1]; at-- {
			from--
		}
		for at := p.at + minSecret; to < len(text) && at < len(p.form) && text[to] == p.form[at]; at++ {
			to++
		}
		if to == len(text) && p.at+to-start < len(p.form) {
			open = min(open, from)
		}
		switch {
		case to-from < minPiece, p.needed == escapedPiece && !bytes.ContainsAny(text[from:to], "%+"):
		case s.to == 0:
			s = span{from, to}
		default:
			s = span{min(s.from, from), max(s.to, to)}
		}
	}
	return s, open
}

// openEnd returns where an end of text begins that may be the beginning of
// something secret.
func (m *matcher) openEnd(text []byte, done, short int) int {
	open := len(text)
	for from := max(done, len(text)-minSecret+1); from <= len(text)-max(short, 1); from++ {
		if m.begins(text[from:]) {
			open = from
			break
		}
	}
	if len(m.inside) == 0 {
		return open
	}
	inner := max(done, len(text)-blockSize+1) // of less than a block nothing is known
	for from := len(text) - blockSize; from >= max(done, len(text)-minPiece) && m.hasBlock(text[from:]); from-- {
		inner = from
	}
	if len(text)-inner >= short {
		open = min(open, inner)
	}
	return open
}

func (m *matcher) hasBlock(text []byte) bool {
	h := blockHash(text[0], text[1], text[2])
	return m.blocks[h>>6]&(1<<(h&63)) != 0
}

// begins reports whether a string begins with the short text.
func (m *matcher) begins(text []byte) bool {
	i, _ := slices.BinarySearchFunc(m.starts, text, func(start [minSecret]byte, text []byte) int {
		return bytes.Compare(start[:], text)
	})
	return i < len(m.starts) && bytes.HasPrefix(m.starts[i][:], text)
}
