// What an attempt's log has, kept until all of its secrets are known.

package attempt

import (
	"io"
	"os"

	"github.com/holdfast-dev/holdfast/runner/redact"
)

// maxLogCopy bounds what is searched again at the end: servers store no more.
const maxLogCopy = 64 << 20

// logCopy passes a log on, and keeps a copy in a file without a name. An engine streams
// what it does, and some of it is a secret that only the state names as one, later.
type logCopy struct {
	w     io.Writer
	to    LogMasker
	file  *os.File // nil: nothing is kept
	size  int64
	known int // how many secrets were known before the first byte
}

// newLogCopy returns a copy for the log of a session; one that keeps nothing if that
// cannot mask, or the disk cannot keep it.
func newLogCopy(s Reports, dir string, known int) *logCopy {
	c := &logCopy{w: s.Log(), known: known}
	var ok bool
	if c.to, ok = s.(LogMasker); !ok {
		return c
	}
	file, err := os.CreateTemp(dir, "tmp-")
	if err != nil {
		return c
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return c
	}
	c.file = file
	return c
}

func (c *logCopy) Write(p []byte) (int, error) {
	if room := maxLogCopy - c.size; c.file != nil && room > 0 {
		n, err := c.file.Write(p[:min(int64(len(p)), room)])
		if c.size += int64(n); err != nil { // the rest is not known: what there is, is searched
			c.size = maxLogCopy
		}
	}
	return c.w.Write(p)
}

// mask has what is secret by now overwritten in the log, ends the copy, and returns how
// many places that were.
func (c *logCopy) mask(r *redact.Redactor) (int, error) {
	if c.file == nil {
		return 0, nil
	}
	defer c.file.Close()
	if r.Count() == c.known {
		return 0, nil
	}
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	spans, err := r.Find(c.file)
	if err != nil || len(spans) == 0 {
		return 0, err
	}
	c.to.MaskLog(redact.Bounded(spans))
	return len(spans), nil
}
