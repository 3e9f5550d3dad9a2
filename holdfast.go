package holdfast

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"strings"
	"time"
)

// Revision is the full, lower-case hexadecimal SHA of a Git commit. Revisions
// are compared by identity, never by date. Empty means none.
type Revision string

// Short returns the first seven characters, for people.
func (r Revision) Short() string {
	if len(r) > 7 {
		return string(r[:7])
	}
	return string(r)
}

// Digest identifies content: "sha256:" and 64 hexadecimal characters. Empty
// means unknown, which is equal to nothing, not even to another empty Digest.
type Digest string

// Equal reports whether both digests are known and the same.
func (d Digest) Equal(other Digest) bool { return d != "" && d == other }

// Short returns the first twelve hexadecimal characters, for people.
func (d Digest) Short() string {
	s := strings.TrimPrefix(string(d), "sha256:")
	return s[:min(len(s), 12)]
}

// DigestOf returns the digest of data.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest("sha256:" + hex.EncodeToString(sum[:]))
}

// Digester builds a digest from parts. Each part is preceded by its length, so
// that ("ab", "c") and ("a", "bc") differ. Use NewDigester.
type Digester struct{ hash hash.Hash }

// NewDigester returns a Digester for one purpose; digests of different
// purposes never meet.
func NewDigester(purpose string) *Digester {
	d := &Digester{hash: sha256.New()}
	d.Add(purpose)
	return d
}

// Add appends parts.
func (d *Digester) Add(parts ...string) {
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		d.hash.Write(size[:])
		d.hash.Write([]byte(part))
	}
}

// AddContent appends a part that is read, which has size bytes.
func (d *Digester) AddContent(r io.Reader, size int64) error {
	var head [8]byte
	binary.BigEndian.PutUint64(head[:], uint64(size))
	d.hash.Write(head[:])
	n, err := io.Copy(d.hash, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("it had %d bytes, and now it is another file", size)
	}
	return err
}

// Digest returns the digest of what was added so far.
func (d *Digester) Digest() Digest {
	return Digest("sha256:" + hex.EncodeToString(d.hash.Sum(nil)))
}

// Tree is the content of a repository at one revision: a read-only file system
// whose paths are slash-separated and relative to the repository's root.
// Symbolic links are not followed; they show as fs.ModeSymlink. It is safe for
// concurrent use.
type Tree interface {
	fs.ReadDirFS
	fs.ReadFileFS

	// Hash returns the Git object id of a file or folder ("." is the root):
	// equal hashes mean equal content. fs.ErrNotExist if there is none.
	Hash(path string) (string, error)
}

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID returns a unique identifier that sorts by now's millisecond: prefix, a
// dash, ten characters of time and ten of chance.
func NewID(prefix string, now time.Time) string {
	var raw [12]byte
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		raw[i] = byte(ms >> (40 - 8*i))
	}
	_, _ = rand.Read(raw[6:]) // never fails: crypto/rand ends the process instead
	return prefix + "-" + idEncoding.EncodeToString(raw[:])
}
