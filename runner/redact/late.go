// Secrets in a text that was passed on before they were known.

package redact

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/holdfast-dev/holdfast/protocol"
)

const (
	// lateWindow is how much of a text is searched at once, and lateOverlap how much of
	// that again with the next part: it may have the beginning of a form.
	lateWindow  = 1 << 20
	lateOverlap = 128 << 10
)

// Count returns how many secrets r knows.
func (r *Redactor) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.secrets)
}

// Find returns where a text has secrets that r knows, in their order and without
// overlaps. What is only named like one is not among them.
func (r *Redactor) Find(text io.Reader) ([]protocol.LogSpan, error) {
	if r.Withholds() {
		n, err := io.Copy(io.Discard, text)
		if err != nil || n == 0 {
			return nil, err
		}
		return []protocol.LogSpan{{From: 0, To: n}}, nil
	}
	m := r.matcher()
	if m.bare.empty() && m.plain.empty() {
		return nil, nil
	}
	var all []protocol.LogSpan
	window, at := make([]byte, 0, lateWindow), int64(0)
	for {
		n, err := io.ReadFull(text, window[len(window):lateWindow])
		window = window[:len(window)+n]
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return nil, fmt.Errorf("search text: %w", err)
		}
		found, _ := m.spans(window, true)
		m.twice(window, func(s span) { found = append(found, s) })
		for _, s := range found {
			all = append(all, protocol.LogSpan{From: at + int64(s.from), To: at + int64(s.to)})
		}
		if last {
			return joined(all), nil
		}
		again := copy(window, window[len(window)-lateOverlap:])
		at += int64(len(window) - again)
		window = window[:again]
	}
}

// joined sorts spans and makes one of those that touch.
func joined(spans []protocol.LogSpan) []protocol.LogSpan {
	slices.SortFunc(spans, func(a, b protocol.LogSpan) int { return int(a.From - b.From) })
	var out []protocol.LogSpan
	for _, s := range spans {
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Bounded makes one span of the last ones, and of what is between them, if there are more
// than protocol.MaxLogSpans.
func Bounded(spans []protocol.LogSpan) []protocol.LogSpan {
	if len(spans) <= protocol.MaxLogSpans {
		return spans
	}
	last := spans[len(spans)-1].To
	spans = spans[:protocol.MaxLogSpans]
	spans[len(spans)-1].To = last
	return spans
}
