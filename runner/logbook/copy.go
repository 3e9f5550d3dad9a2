// What an attempt's log has, kept until all of its secrets are known.

package logbook

import (
	"io"

	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// maxLogCopy bounds what is searched again at the end: servers store no more.
const maxLogCopy = 64 << 20

// logCopy passes a log on, and keeps a copy. An engine streams
// what it does, and some of it is a secret that only the state names as one, later.
type logCopy struct {
	w     io.Writer
	to    Masker
	kept  *journal.Scratch // nil: nothing is kept
	size  int64
	known int // how many secrets were known before the first byte
}

// newLogCopy returns a copy for the log of a session; one that keeps nothing if that
// cannot mask.
func newLogCopy(s Session, dir string, known int) *logCopy {
	c := &logCopy{w: s.Log(), known: known}
	var ok bool
	if c.to, ok = s.(Masker); ok {
		c.kept = journal.NewScratch(dir)
	}
	return c
}

func (c *logCopy) Write(p []byte) (int, error) {
	if room := maxLogCopy - c.size; c.kept != nil && room > 0 {
		n, err := c.kept.Write(p[:min(int64(len(p)), room)])
		if c.size += int64(n); err != nil { // the rest is not known: what there is, is searched
			c.size = maxLogCopy
		}
	}
	return c.w.Write(p)
}

// mask overwrites what is secret by now in the log, ends the copy, and returns how many
// places that were.
func (c *logCopy) mask(r *redact.Redactor) (int, error) {
	if c.kept == nil {
		return 0, nil
	}
	defer c.kept.Close()
	if r.Count() == c.known {
		return 0, nil
	}
	text, err := c.kept.Rewind()
	if err != nil {
		return 0, err
	}
	spans, err := r.Find(text)
	if err != nil || len(spans) == 0 {
		return 0, err
	}
	c.to.MaskLog(redact.Bounded(spans))
	return len(spans), nil
}
