package planfile

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Members of a plan file.
const (
	memberPlan     = "tfplan"
	memberState    = "tfstate"
	memberPrevious = "tfstate-prev"
	memberLock     = ".terraform.lock.hcl"
	memberCode     = "tfconfig/" // then m-<key of the module>/<file>
	memberModules  = memberCode + "modules.json"
)

const (
	maxDirectory = 4 << 20 // bytes of the directory of an archive
	maxMembers   = 50_000
	endLength    = 22 // bytes of the record at the end of an archive
)

// ErrUnsupported is wrapped by errors about what an honest plan can have as well, but
// which this version of Holdfast neither shows nor compares.
var ErrUnsupported = errors.New("not supported")

// Archive is an open plan file. It is not safe for concurrent use.
type Archive struct {
	file    *os.File
	members map[string]*zip.File
	limit   int64
}

// Open opens a plan file of which no member has more than limit bytes. An archive
// with other members than those of plan files, or with one of them twice, is an
// error, and so is one that begins or ends with something else: another reader
// could see another archive there.
func Open(name string, limit int64) (*Archive, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	a := &Archive{file: file, members: map[string]*zip.File{}, limit: limit}
	if err := a.read(); err != nil {
		_ = file.Close()
		return nil, err
	}
	return a, nil
}

// Close closes the file.
func (a *Archive) Close() error { return a.file.Close() }

func (a *Archive) read() error {
	info, err := a.file.Stat()
	if err != nil {
		return err
	}
	if err := checkDirectory(a.file, info.Size()); err != nil {
		return err
	}
	archive, err := zip.NewReader(a.file, info.Size())
	if err != nil {
		return fmt.Errorf("read the plan file: %w", err)
	}
	if len(archive.File) > maxMembers {
		return fmt.Errorf("the plan file has more than %d members", maxMembers)
	}
	for _, member := range archive.File {
		switch name := member.Name; {
		case a.members[name] != nil:
			return fmt.Errorf("the plan file has %s twice", name)
		case !known(name):
			return fmt.Errorf("the plan file has a member that this version of Holdfast does not know: %q", name)
		case member.UncompressedSize64 > uint64(a.limit): //nolint:gosec // a limit is positive
			return fmt.Errorf("the plan file has more than %d bytes in %s", a.limit, name)
		}
		a.members[member.Name] = member
	}
	for _, name := range []string{memberPlan, memberState, memberPrevious} {
		if a.members[name] == nil {
			return fmt.Errorf("the plan file has no %s", name)
		}
	}
	return nil
}

func known(name string) bool {
	switch name {
	case memberPlan, memberState, memberPrevious, memberLock, memberModules:
		return true
	}
	return strings.HasPrefix(name, memberCode+"m-")
}

// checkDirectory looks at the record at the end of an archive: what it says about
// the directory before it bounds what a reader of that allocates. The directory
// must fill the file up to the record, as readers continue for as long as there are
// entries, and there is no comment, as they look for the record in it. The larger
// form of the record is for archives beyond the limits.
func checkDirectory(file io.ReaderAt, size int64) error {
	var end [endLength]byte
	if size < endLength {
		return errNoArchive
	}
	if _, err := file.ReadAt(end[:], size-endLength); err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(end[:]) != 0x06054b50 {
		return errNoArchive
	}
	records := binary.LittleEndian.Uint16(end[10:])
	length, offset := int64(binary.LittleEndian.Uint32(end[12:])), int64(binary.LittleEndian.Uint32(end[16:]))
	switch {
	case records > maxMembers || length > maxDirectory:
		return fmt.Errorf("the plan file has a directory of %d members in %d bytes, more than %d in %d", records, length, maxMembers, maxDirectory)
	case offset+length != size-endLength || binary.LittleEndian.Uint16(end[20:]) != 0:
		return errors.New("the plan file is not only an archive")
	}
	return nil
}

var errNoArchive = fmt.Errorf("the plan file is not an archive that can be checked: encrypted plans of OpenTofu and plans that are made elsewhere are %w",
	ErrUnsupported)

// open opens a member. It is an error to read more of it than the limit.
func (a *Archive) open(name string) (io.ReadCloser, error) {
	member := a.members[name]
	if member == nil {
		return nil, fmt.Errorf("the plan file has no %s", name)
	}
	r, err := member.Open()
	if err != nil {
		return nil, fmt.Errorf("read %s of the plan file: %w", name, err)
	}
	return &boundedMember{r, name, a.limit}, nil
}

type boundedMember struct {
	io.ReadCloser
	name string
	left int64
}

func (m *boundedMember) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if m.left -= int64(n); m.left < 0 {
		return 0, fmt.Errorf("the plan file has too much in %s", m.name)
	}
	return n, err
}
