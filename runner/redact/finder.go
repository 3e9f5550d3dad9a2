package redact

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// minPiece is how much of a long form is secret alone, such as a line of
// it that has a prefix.
const minPiece = 24

// finder finds forms of secrets in a text, however it is wrapped. It looks at the
// text as it is for what is too short without its spaces, and at two views of it:
// without white space and frames, and without their escapes too. Forms are
// looked for as they are in the same view.
type finder struct {
	plain, bare, unescaped *matcher
}

func newFinder(forms map[string]extent) *finder {
	plain, bare, unescaped := make(map[string]extent), make(map[string]extent), make(map[string]extent)
	for form, needed := range forms {
		for _, view := range []struct {
			to      map[string]extent
			escapes bool
		}{{bare, false}, {unescaped, true}} {
			if squeezed, _ := squeeze(nil, nil, []byte(form), view.escapes, false); len(squeezed) >= minSecret {
				view.to[string(squeezed)] = max(needed, view.to[string(squeezed)])
			} else {
				plain[form] = allOfIt
			}
		}
	}
	return &finder{plain: newMatcher(plain), bare: newMatcher(bare), unescaped: newMatcher(unescaped)}
}

// span is a part of a text.
type span struct{ from, to int }

// replace appends text to dst with "(sensitive value)" for each form found
// and reports whether there was one.
func (f *finder) replace(dst, text []byte) ([]byte, bool) {
	dst, _, changed := f.scan(dst, text, true)
	return dst, changed
}

// scan is replace for a text that continues, unless it is final: it stops before
// what may be the beginning of a form, and returns how much of text it has taken.
func (f *finder) scan(dst, text []byte, final bool) (out []byte, taken int, changed bool) {
	if f.bare.empty() && f.plain.empty() {
		return append(dst, text...), len(text), false
	}
	found, taken := f.spans(text, final)
	return mask(dst, text, found, taken)
}

// spans returns where forms are in a text, not in their order, and how much of it is decided.
func (f *finder) spans(text []byte, final bool) (found []span, taken int) {
	taken = len(text)
	if !f.plain.empty() {
		taken = min(taken, f.plain.find(text, final, 1, func(s span) { found = append(found, s) }))
	}
	whole, line := text, 0
	if !final {
		whole = text[:len(text)-unfinished(text)]
		taken = min(taken, len(whole))
		line = openLine(whole)
	}
	short := 1
	if n := len(text); n > 0 && text[n-1] == '\n' {
		short = 4 // else most lines would wait for the next one
	}
	look := func(part span, prefixes bool) {
		decided := f.view(whole[part.from:part.to], final, prefixes, short, func(s span) {
			found = append(found, span{part.from + s.from, part.from + s.to})
		})
		taken = min(taken, part.from+decided)
	}
	look(span{0, len(whole)}, false)
	if line > 0 || bytes.Contains(whole, []byte(endOfPrefix)) {
		// What continues in the last line does so behind its prefix or without one: which
		// of them, only the whole of it says. Until then nothing is decided about it.
		look(span{0, len(whole) - line}, true)
	}
	return found, taken
}

// view calls found with what is secret in text without its white space, and without the
// prefixes of a provisioner's lines if they are to go too, and returns how much of text is decided: all of it, or what comes before the beginning of a form that
// may continue. An end of fewer than short bytes is never taken for one.
func (f *finder) view(text []byte, final, prefixes bool, short int, found func(span)) (decided int) {
	decided = len(text)
	views := []bool{false}
	if bytes.IndexByte(text, '\\') >= 0 {
		views = append(views, true)
	}
	for _, escapes := range views {
		m := f.bare
		if escapes {
			m = f.unescaped
		}
		squeezed, at := squeeze(make([]byte, 0, len(text)), make([]int32, 0, len(text)), text, escapes, prefixes)
		end := m.find(squeezed, final, short, func(s span) {
			found(span{int(at[s.from]), int(at[s.to-1]) + 1})
		})
		if end < len(squeezed) {
			decided = min(decided, int(at[end]))
		}
	}
	return decided
}

// unfinished returns the length of an end of text of which only what follows says
// what it is: backslashes, and the beginning of a frame.
func unfinished(text []byte) int {
	n := 0
	for n < min(len(text), 16) && text[len(text)-1-n] == '\\' {
		n++
	}
	switch {
	case n > 0:
	case bytes.HasSuffix(text, []byte{0xe2}):
		return 1
	case bytes.HasSuffix(text, []byte{0xe2, 0x94}):
		return 2
	}
	return n
}

// mask appends text up to taken to dst, with what was found replaced. What begins
// before taken and ends after it is taken as a whole.
func mask(dst, text []byte, found []span, taken int) ([]byte, int, bool) {
	slices.SortFunc(found, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	copied := 0
	changed := false
	for _, s := range found {
		if s.from >= taken {
			break
		}
		if s.to <= copied {
			continue
		}
		if s.from >= copied {
			dst = append(dst, text[copied:s.from]...)
			dst = append(dst, holdfast.SensitiveValue...)
		}
		copied, changed = s.to, true
	}
	taken = max(taken, copied)
	return append(dst, text[copied:taken]...), taken, changed
}

// maxGap is how much white space a form can be wrapped with.
const maxGap = 512

// squeeze appends text without white space and frames to dst, and to at where
// each of its bytes is. With escapes it leaves out escaped line ends and tabs, too; with
// prefixes what an engine puts before a provisioner's lines.
func squeeze(dst []byte, at []int32, text []byte, escapes, prefixes bool) ([]byte, []int32) {
	gap := 0
	for i := 0; i < len(text); {
		n := 0
		switch c := text[i]; {
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			n = 1
		case c == 0xe2 && i+2 < len(text) && text[i+1] == 0x94 && text[i+2] == 0x82: // │
			n = 3
		case c == '\\' && escapes:
			n = escapedSpace(text[i:])
		}
		if prefixes && n == 1 && text[i] == '\n' {
			n += provisioner(text[i+1:])
		}
		switch {
		case n == 0:
			gap = 0
			dst, at = append(dst, text[i]), append(at, int32(i))
			i++
			continue
		case gap <= maxGap && gap+n > maxGap: // nothing is wrapped like this
			dst, at = append(dst, '\n'), append(at, int32(i))
		}
		gap += n
		i += n
	}
	return dst, at
}

// maxPrefix is the longest beginning of a line that says which provisioner wrote it:
// with the line end it is no longer than what a form can be wrapped with.
const maxPrefix = maxGap - 1

// endOfPrefix is how it ends.
const endOfPrefix = "-exec): "

// provisioner returns the length of the words with which text begins if an engine has
// put them before a line of a provisioner's output, such as "null_resource.a
// (local-exec): "; 0 if there are none.
func provisioner(text []byte) int {
	line, _, _ := bytes.Cut(text[:min(len(text), maxPrefix)], []byte{'\n'})
	at := bytes.Index(line, []byte(endOfPrefix))
	if at < 0 {
		return 0
	}
	if kind := line[:at]; !bytes.HasSuffix(kind, []byte(" (local")) && !bytes.HasSuffix(kind, []byte(" (remote")) {
		return 0
	}
	return at + len(endOfPrefix)
}

// openLine returns the length of the last line of text if that may be the beginning of
// such words.
func openLine(text []byte) int {
	line := len(text) - bytes.LastIndexByte(text, '\n') - 1
	if line == len(text) || line >= maxPrefix || provisioner(text[len(text)-line:]) > 0 {
		return 0
	}
	return line
}

// escapedSpace returns the length of an escaped line end or tab, escaped itself
// or not, that text begins with; 0 if it begins with another.
func escapedSpace(text []byte) int {
	for i, c := range text {
		switch {
		case c == '\\' && i < 16:
		case c == 'n' || c == 'r' || c == 't':
			return i + 1
		default:
			return 0
		}
	}
	return 0
}
