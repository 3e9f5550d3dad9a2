package journal

import (
	"bytes"
	"io"
	"os"
)

// scratchHeld is how much of a Scratch is in memory: most engines print less, and a file costs
// more than all that is done with what they print.
const scratchHeld = 64 << 10

// Scratch keeps what is written to it until it is closed: a little in memory, more in a file
// without a name.
type Scratch struct {
	dir  string
	held []byte   // what is not in the file
	file *os.File // nil: all is held
}

// NewScratch returns an empty one, whose file is on the disk of dir.
func NewScratch(dir string) *Scratch { return &Scratch{dir: dir} }

func (s *Scratch) Write(p []byte) (int, error) {
	if len(s.held)+len(p) > scratchHeld {
		if err := s.flush(); err != nil {
			return 0, err
		}
		if len(p) > scratchHeld {
			return s.file.Write(p)
		}
	}
	s.held = append(s.held, p...)
	return len(p), nil
}

func (s *Scratch) flush() error {
	if s.file == nil {
		file, err := os.CreateTemp(s.dir, "tmp-")
		if err != nil {
			return err
		}
		if err := os.Remove(file.Name()); err != nil {
			_ = file.Close()
			return err
		}
		s.file = file
	}
	_, err := s.file.Write(s.held)
	s.held = s.held[:0]
	return err
}

// Rewind returns what was written, from its beginning. Nothing may be written after it.
func (s *Scratch) Rewind() (io.ReadSeeker, error) {
	if s.file == nil {
		return bytes.NewReader(s.held), nil
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

// Close removes what was written.
func (s *Scratch) Close() {
	if s.held = nil; s.file != nil {
		_ = s.file.Close()
	}
}
