package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrTooLarge is the error of a spool that more was written to than it may have.
var ErrTooLarge = errors.New("more than its limit")

// Spool is a file without a name that takes what an engine prints, up to a
// limit. It takes all of it either way: an engine that cannot write dies.
type Spool struct {
	file  *os.File
	w     *bufio.Writer
	left  int64
	limit int64
	err   error
}

// NewSpool returns a spool of at most limit bytes on the disk of dir.
func NewSpool(dir string, limit int64) (*Spool, error) {
	file, err := os.CreateTemp(dir, "tmp-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, err
	}
	return &Spool{file: file, w: bufio.NewWriterSize(file, 64<<10), left: limit, limit: limit}, nil
}

func (s *Spool) Write(p []byte) (int, error) {
	if s.left -= int64(len(p)); s.left >= 0 && s.err == nil {
		_, s.err = s.w.Write(p)
	}
	return len(p), nil
}

// Rewind returns what was written, an error if it was too much.
func (s *Spool) Rewind() (io.ReadSeeker, error) {
	if s.left < 0 {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, s.limit)
	}
	if s.err == nil {
		s.err = s.w.Flush()
	}
	if s.err == nil {
		_, s.err = s.file.Seek(0, io.SeekStart)
	}
	return s.file, s.err
}

// Close removes what was written.
func (s *Spool) Close() { _ = s.file.Close() }
