package objects

import (
	"bytes"
	"crypto/md5" //nolint:gosec // what stores compare uploads with; what protects content is its seal
	"hash"
	"io"
	"os"
)

// spoolMemory is how much of an object waits in memory.
const spoolMemory = 4 << 20

// spool holds an object until it was sent: size and checksum are part of the request, and
// what fails is sent again. What does not fit into memory is a file without a name, which
// nothing has to remove. An object comes as ciphertext.
type spool struct {
	dir  string
	mem  bytes.Buffer
	file *os.File // nil: all is in memory
	size int64
	md5  hash.Hash
}

func newSpool(dir string) *spool {
	return &spool{dir: dir, md5: md5.New()} //nolint:gosec // see above
}

func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && s.mem.Len()+len(p) > spoolMemory {
		if err := s.toDisk(); err != nil {
			return 0, err
		}
	}
	var to io.Writer = &s.mem
	if s.file != nil {
		to = s.file
	}
	n, err := to.Write(p)
	s.size += int64(n)
	s.md5.Write(p[:n])
	return n, err
}

func (s *spool) toDisk() error {
	if s.dir != "" {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
	}
	file, err := os.CreateTemp(s.dir, "holdfast-object-*")
	if err != nil {
		return err
	}
	s.file = file
	if err := os.Remove(file.Name()); err != nil {
		return err
	}
	_, err = file.Write(s.mem.Bytes())
	s.mem = bytes.Buffer{}
	return err
}

func (s *spool) sum() []byte { return s.md5.Sum(nil) }

// reader reads all that was written, from its beginning.
func (s *spool) reader() io.Reader {
	if s.file == nil {
		return bytes.NewReader(s.mem.Bytes())
	}
	return io.NewSectionReader(s.file, 0, s.size)
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}
