package journal

import (
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge is the error of a spool that more was written to than it may have.
var ErrTooLarge = errors.New("more than its limit")

// Spool takes what an engine prints, up to a limit. It takes all of it either way: an engine
// that cannot write dies.
type Spool struct {
	to    *Scratch
	left  int64
	limit int64
	err   error
}

// NewSpool returns a spool of at most limit bytes, in memory or on the disk of dir.
func NewSpool(dir string, limit int64) *Spool {
	return &Spool{to: NewScratch(dir), left: limit, limit: limit}
}

func (s *Spool) Write(p []byte) (int, error) {
	if s.left -= int64(len(p)); s.left >= 0 && s.err == nil {
		_, s.err = s.to.Write(p)
	}
	return len(p), nil
}

// Rewind returns what was written, an error if it was too much.
func (s *Spool) Rewind() (io.ReadSeeker, error) {
	if s.left < 0 {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, s.limit)
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.to.Rewind()
}

// Close removes what was written.
func (s *Spool) Close() { s.to.Close() }
