// Text that is held back until its secrets are known.

package journal

import (
	"bytes"
	"io"
	"regexp"
	"sync"
)

const (
	// maxHeldOut and maxHeldErr bound what is held back, in bytes; of more the
	// middle is left out.
	maxHeldOut = 16 << 20
	maxHeldErr = 1 << 20
	// maxProgressLine is how long a line of progress may be.
	maxProgressLine = 8 << 10
)

// Holdback is what engines print through. It holds text back as long as not all
// secrets in it can be known: the engine prints its plan before it says what in
// it is sensitive. It never fails: an engine must not die of a log that cannot be
// written. It is safe for concurrent use.
type Holdback struct {
	mu     sync.Mutex
	w      io.Writer
	passes func(line []byte) ([]byte, bool) // nil: nothing is held back
	line   []byte                           // of stdout, not whole yet
	out    *Excerpt                         // nil: nothing is held
	errs   *Excerpt
}

// NewHoldback returns a holdback that writes to w and holds nothing back yet.
func NewHoldback(w io.Writer) *Holdback { return &Holdback{w: w} }

// Write takes lines of ours and what the engine prints on its error stream. They
// stay behind what is held.
func (h *Holdback) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.out != nil {
		_, _ = h.errs.Write(p)
	} else {
		_, _ = h.w.Write(p)
	}
	return len(p), nil
}

// Stdout returns the writer for what the engine prints on its output stream.
func (h *Holdback) Stdout() io.Writer { return heldStream{h} }

type heldStream struct{ h *Holdback }

func (o heldStream) Write(p []byte) (int, error) {
	h := o.h
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.passes == nil:
		_, _ = h.w.Write(p)
	case h.out != nil:
		_, _ = h.out.Write(p)
	default:
		h.take(p)
	}
	return len(p), nil
}

// take passes on whole lines up to the first that does not pass.
func (h *Holdback) take(p []byte) {
	h.line = append(h.line, p...)
	for {
		end := bytes.IndexByte(h.line, '\n') + 1
		if end == 0 && len(h.line) <= maxProgressLine {
			return
		}
		line, ok := h.line[:end], false
		if end > 0 && end <= maxProgressLine {
			line, ok = h.passes(line)
		}
		if !ok {
			h.hold()
			return
		}
		_, _ = h.w.Write(line)
		h.line = append(h.line[:0], h.line[end:]...)
	}
}

// hold begins to hold back, with the line that is there.
func (h *Holdback) hold() {
	h.out, h.errs = NewExcerpt(maxHeldOut), NewExcerpt(maxHeldErr)
	_, _ = h.out.Write(h.line)
	h.line = nil
}

// Begin makes the holdback keep the output stream back from the first line on that
// does not pass. passes returns the line as it may be shown.
func (h *Holdback) Begin(passes func(line []byte) ([]byte, bool)) {
	h.Release(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.passes = passes
}

// Release ends the holding back. What was held of the output stream is shown, or
// left out with a word about it.
func (h *Holdback) Release(show bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.passes == nil {
		return
	}
	if h.out == nil {
		h.hold()
	}
	out, errs := h.out.String(), h.errs.String()
	h.passes, h.out, h.errs = nil, nil, nil
	if !show && len(bytes.TrimSpace([]byte(out))) > 0 {
		out = "holdfast: what the engine printed of its plan is left out: nothing says which of its values are secret\n"
	}
	_, _ = io.WriteString(h.w, out)
	_, _ = io.WriteString(h.w, errs)
}

var (
	planProgress = regexp.MustCompile(`^(?:\S.*: (?:Refreshing state|Reading|Still reading|Read complete|Preparing import|Importing|` +
		`Opening|Still opening|Opening complete|Renewing|Still renewing|Renewal complete|Closing|Still closing|Closing complete)\b.*|` +
		`(?:Acquiring|Releasing) state lock\..*|)\r?\n$`)
	progressID = regexp.MustCompile(`\[id=.*\]`)
)

// DuringPlan lets the progress of a plan pass: that has names and ids only. It
// shows no ids unless the secrets of the state are known, which is asked with each
// line: the engine reads the state first.
func DuringPlan(stateKnown func() bool) func([]byte) ([]byte, bool) {
	return func(line []byte) ([]byte, bool) {
		if !planProgress.Match(line) {
			return nil, false
		}
		if !stateKnown() {
			line = progressID.ReplaceAll(line, []byte("[id=...]"))
		}
		return line, true
	}
}

// DuringApply lets all pass but the outputs at the end.
func DuringApply(line []byte) ([]byte, bool) {
	return line, string(bytes.TrimSpace(line)) != "Outputs:"
}
