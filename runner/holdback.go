package runner

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

// holdback is what engines print through. It holds text back as long as not all
// secrets in it can be known: the engine prints its plan before it says what in
// it is sensitive. It never fails: an engine must not die of a log that cannot be
// written. It is safe for concurrent use.
type holdback struct {
	mu     sync.Mutex
	w      io.Writer
	passes func(line []byte) ([]byte, bool) // nil: nothing is held back
	line   []byte                           // of stdout, not whole yet
	out    *excerpt                         // nil: nothing is held
	errs   *excerpt
}

// newHoldback returns a holdback that writes to w and holds nothing back yet.
func newHoldback(w io.Writer) *holdback { return &holdback{w: w} }

// Write takes lines of ours and what the engine prints on its error stream. They
// stay behind what is held.
func (h *holdback) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.out != nil {
		_, _ = h.errs.Write(p)
	} else {
		_, _ = h.w.Write(p)
	}
	return len(p), nil
}

// stdout returns the writer for what the engine prints on its output stream.
func (h *holdback) stdout() io.Writer { return heldStream{h} }

type heldStream struct{ h *holdback }

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
func (h *holdback) take(p []byte) {
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
func (h *holdback) hold() {
	h.out, h.errs = newExcerpt(maxHeldOut), newExcerpt(maxHeldErr)
	_, _ = h.out.Write(h.line)
	h.line = nil
}

// begin makes the holdback keep the output stream back from the first line on that
// does not pass. passes returns the line as it may be shown.
func (h *holdback) begin(passes func(line []byte) ([]byte, bool)) {
	h.release(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.passes = passes
}

// release ends the holding back. What was held of the output stream is shown, or
// left out with a word about it.
func (h *holdback) release(show bool) {
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

// duringPlan lets the progress of a plan pass: that has names and ids only. It
// shows no ids unless the secrets of the state are known, which is asked with each
// line: the engine reads the state first.
func duringPlan(stateKnown func() bool) func([]byte) ([]byte, bool) {
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

// duringApply lets all pass but the outputs at the end.
func duringApply(line []byte) ([]byte, bool) {
	return line, string(bytes.TrimSpace(line)) != "Outputs:"
}
