package seal

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Ciphertext is a header (format, key id, salt) and segments, each sealed with
// AES-256-GCM under a key that is derived from the ring's and the salt for this
// one ciphertext. A segment's nonce is its number and whether it is the last: none can be
// taken out, moved or cut off. The associated data of each says what the
// ciphertext is for, so that it decrypts nowhere else.
const (
	sealFormat  = 1
	saltSize    = 16
	headerSize  = 1 + len(keyID{}) + saltSize
	segmentSize = 64 << 10
	tagSize     = 16
)

// MarkSize is how many of its first bytes tell a ciphertext from every other one.
const MarkSize = headerSize

// Mark returns the bytes of a ciphertext that no other one has: the salt is random and new
// for each. What is too short to be one is its own mark.
func Mark(sealed []byte) string { return string(sealed[:min(len(sealed), MarkSize)]) }

// Size is how many bytes the ciphertext of so many has.
func Size(plain int64) int64 {
	segments := max(1, (plain+segmentSize-1)/segmentSize)
	return int64(headerSize) + plain + segments*tagSize
}

// ErrTampered says that what was read is not what was written, or is not there.
var ErrTampered = errors.New("content is damaged or was moved")

// Label binds a ciphertext to its purpose and the name of the thing.
func Label(purpose, name string) []byte {
	b := binary.AppendUvarint(nil, uint64(len(purpose)))
	return append(append(b, purpose...), name...)
}

func segmentCipher(secret, salt []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, secret, salt, "holdfast content", KeySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func segmentNonce(number uint64, last bool) []byte {
	nonce := make([]byte, 12)
	binary.BigEndian.PutUint64(nonce, number)
	if last {
		nonce[11] = 1
	}
	return nonce
}

// Writer encrypts what is written to it. Close writes the last segment; without
// it nothing decrypts.
type Writer struct {
	w      io.Writer
	aead   cipher.AEAD
	label  []byte
	buf    []byte
	out    []byte
	number uint64
}

// NewWriter returns a Writer that encrypts to w, with the current key of ring.
func NewWriter(w io.Writer, ring *Keyring, label []byte) (*Writer, error) {
	current := ring.current()
	header := make([]byte, headerSize)
	header[0] = sealFormat
	copy(header[1:], current.id[:])
	salt := header[1+len(current.id):]
	_, _ = rand.Read(salt) // never fails: crypto/rand ends the process instead
	aead, err := segmentCipher(current.secret, salt)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, err
	}
	return &Writer{w: w, aead: aead, label: label}, nil
}

func (s *Writer) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		// A full segment waits until it is known not to be the last.
		if len(s.buf) == segmentSize {
			if err := s.flush(false); err != nil {
				return written, err
			}
		}
		n := min(segmentSize-len(s.buf), len(p))
		s.buf = append(s.buf, p[:n]...)
		p = p[n:]
		written += n
	}
	return written, nil
}

// Close writes the last segment. It does not close what is below.
func (s *Writer) Close() error { return s.flush(true) }

func (s *Writer) flush(last bool) error {
	s.out = s.aead.Seal(s.out[:0], segmentNonce(s.number, last), s.buf, s.label)
	s.buf = s.buf[:0]
	s.number++
	_, err := s.w.Write(s.out)
	return err
}

// Reader decrypts what it reads. An error other than io.EOF means that what
// was read so far is a true beginning, but not all.
type Reader struct {
	r      io.Reader
	aead   cipher.AEAD
	label  []byte
	sealed []byte
	plain  []byte // decrypted and not yet read
	number uint64
	last   bool
}

// NewReader returns a Reader of what a Writer with the same label wrote to r.
func NewReader(r io.Reader, ring *Keyring, label []byte) (*Reader, error) {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("header: %w", ErrTampered)
	}
	if header[0] != sealFormat {
		return nil, fmt.Errorf("format %d: %w", header[0], ErrTampered)
	}
	used, err := ring.find(keyID(header[1 : 1+len(keyID{})]))
	if err != nil {
		return nil, err
	}
	aead, err := segmentCipher(used.secret, header[1+len(keyID{}):])
	if err != nil {
		return nil, err
	}
	return &Reader{r: r, aead: aead, label: label}, nil
}

func (u *Reader) Read(p []byte) (int, error) {
	for len(u.plain) == 0 {
		if u.last {
			return 0, io.EOF
		}
		if err := u.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, u.plain)
	u.plain = u.plain[n:]
	return n, nil
}

func (u *Reader) next() error {
	if u.sealed == nil {
		u.sealed = make([]byte, segmentSize+tagSize)
	}
	r, ok := u.r.(*bufio.Reader)
	if !ok {
		r = bufio.NewReader(u.r)
		u.r = r
	}
	n, err := io.ReadFull(r, u.sealed)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read ciphertext: %w", err)
	}
	_, err = r.Peek(1)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read ciphertext: %w", err)
	}
	u.last = err != nil
	u.plain, err = u.aead.Open(u.sealed[:0], segmentNonce(u.number, u.last), u.sealed[:n], u.label)
	if err != nil {
		u.plain = nil
		return ErrTampered
	}
	u.number++
	return nil
}

// SealJSON encrypts value as JSON for a column.
func (k *Keyring) SealJSON(purpose, name string, value any) ([]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %s %q: %w", purpose, name, err)
	}
	sealed, err := k.Seal(purpose, name, plain)
	if err != nil {
		return nil, fmt.Errorf("encrypt %s %q: %w", purpose, name, err)
	}
	return sealed, nil
}

// Seal encrypts bytes for a column.
func (k *Keyring) Seal(purpose, name string, plain []byte) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(headerSize + len(plain) + tagSize)
	s, err := NewWriter(&b, k, Label(purpose, name))
	if err != nil {
		return nil, err
	}
	if _, err := s.Write(plain); err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// UnsealJSON decrypts a column into value.
func (k *Keyring) UnsealJSON(purpose, name string, sealed []byte, value any) error {
	plain, err := k.Unseal(purpose, name, sealed)
	if err != nil {
		return fmt.Errorf("decrypt %s %q: %w", purpose, name, err)
	}
	if err := json.Unmarshal(plain, value); err != nil {
		return fmt.Errorf("decode %s %q: %w", purpose, name, err)
	}
	return nil
}

// Unseal decrypts what Seal encrypted; a column is mostly one segment.
func (k *Keyring) Unseal(purpose, name string, sealed []byte) ([]byte, error) {
	u, err := NewReader(bytes.NewReader(sealed[:min(len(sealed), headerSize)]), k, Label(purpose, name))
	if err != nil {
		return nil, err
	}
	body := sealed[headerSize:]
	if len(body) > segmentSize+tagSize {
		u.r = bufio.NewReader(bytes.NewReader(body))
		return io.ReadAll(u)
	}
	plain, err := u.aead.Open(nil, segmentNonce(0, true), body, u.label)
	if err != nil {
		return nil, ErrTampered
	}
	return plain, nil
}
