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

// curtain is what engines print through. It holds text back as long as not all
// secrets in it can be known: the engine prints its plan before it says what in
// it is sensitive. It never fails: an engine must not die of a log that cannot be
// written. It is safe for concurrent use.
type curtain struct {
	mu     sync.Mutex
	w      io.Writer
	passes func(line []byte) ([]byte, bool) // nil: it is open
	line   []byte                           // of stdout, not whole yet
	out    *excerpt                         // nil: nothing is held
	errs   *excerpt
}

// Write takes lines of ours and what the engine prints on its error stream. They
// stay behind what is held.
func (c *curtain) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out != nil {
		_, _ = c.errs.Write(p)
	} else {
		_, _ = c.w.Write(p)
	}
	return len(p), nil
}

// stdout returns the writer for what the engine prints on its output stream.
func (c *curtain) stdout() io.Writer { return curtainOut{c} }

type curtainOut struct{ c *curtain }

func (o curtainOut) Write(p []byte) (int, error) {
	c := o.c
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.passes == nil:
		_, _ = c.w.Write(p)
	case c.out != nil:
		_, _ = c.out.Write(p)
	default:
		c.take(p)
	}
	return len(p), nil
}

// take passes on whole lines up to the first that does not pass.
func (c *curtain) take(p []byte) {
	c.line = append(c.line, p...)
	for {
		end := bytes.IndexByte(c.line, '\n') + 1
		if end == 0 && len(c.line) <= maxProgressLine {
			return
		}
		line, ok := c.line[:end], false
		if end > 0 && end <= maxProgressLine {
			line, ok = c.passes(line)
		}
		if !ok {
			c.hold()
			return
		}
		_, _ = c.w.Write(line)
		c.line = append(c.line[:0], c.line[end:]...)
	}
}

// hold begins to hold back, with the line that is there.
func (c *curtain) hold() {
	c.out, c.errs = newExcerpt(maxHeldOut), newExcerpt(maxHeldErr)
	_, _ = c.out.Write(c.line)
	c.line = nil
}

// draw makes the curtain hold the output stream back from the first line on that
// does not pass. passes returns the line as it may be shown.
func (c *curtain) draw(passes func(line []byte) ([]byte, bool)) {
	c.open(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passes = passes
}

// open ends the holding back. What was held of the output stream is shown, or
// left out with a word about it.
func (c *curtain) open(show bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.passes == nil {
		return
	}
	if c.out == nil {
		c.hold()
	}
	out, errs := c.out.String(), c.errs.String()
	c.passes, c.out, c.errs = nil, nil, nil
	if !show && len(bytes.TrimSpace([]byte(out))) > 0 {
		out = "holdfast: what the engine printed of its plan is left out: nothing says which of its values are secret\n"
	}
	_, _ = io.WriteString(c.w, out)
	_, _ = io.WriteString(c.w, errs)
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
