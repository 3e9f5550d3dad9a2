package datastore

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

// errTampered: what was read is not what was written, or not there.
var errTampered = errors.New("content is damaged or was moved")

// label binds a ciphertext to its purpose and the name of the thing.
func label(purpose, name string) []byte {
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

// sealer encrypts what is written to it. Close writes the last segment; without
// it nothing decrypts.
type sealer struct {
	w      io.Writer
	aead   cipher.AEAD
	label  []byte
	buf    []byte
	out    []byte
	number uint64
}

func newSealer(w io.Writer, ring *Keyring, label []byte) (*sealer, error) {
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
	return &sealer{w: w, aead: aead, label: label}, nil
}

func (s *sealer) Write(p []byte) (int, error) {
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

func (s *sealer) Close() error { return s.flush(true) }

func (s *sealer) flush(last bool) error {
	s.out = s.aead.Seal(s.out[:0], segmentNonce(s.number, last), s.buf, s.label)
	s.buf = s.buf[:0]
	s.number++
	_, err := s.w.Write(s.out)
	return err
}

// unsealer decrypts what it reads. An error other than io.EOF means that what
// was read so far is a true beginning, but not all.
type unsealer struct {
	r      io.Reader
	aead   cipher.AEAD
	label  []byte
	sealed []byte
	plain  []byte // decrypted and not yet read
	number uint64
	last   bool
}

func newUnsealer(r io.Reader, ring *Keyring, label []byte) (*unsealer, error) {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("header: %w", errTampered)
	}
	if header[0] != sealFormat {
		return nil, fmt.Errorf("format %d: %w", header[0], errTampered)
	}
	used, err := ring.find(keyID(header[1 : 1+len(keyID{})]))
	if err != nil {
		return nil, err
	}
	aead, err := segmentCipher(used.secret, header[1+len(keyID{}):])
	if err != nil {
		return nil, err
	}
	return &unsealer{r: r, aead: aead, label: label}, nil
}

func (u *unsealer) Read(p []byte) (int, error) {
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

func (u *unsealer) next() error {
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
		return errTampered
	}
	u.number++
	return nil
}

// sealJSON encrypts value as JSON for a column.
func (k *Keyring) sealJSON(purpose, name string, value any) ([]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %s %q: %w", purpose, name, err)
	}
	sealed, err := k.seal(purpose, name, plain)
	if err != nil {
		return nil, fmt.Errorf("encrypt %s %q: %w", purpose, name, err)
	}
	return sealed, nil
}

func (k *Keyring) seal(purpose, name string, plain []byte) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(headerSize + len(plain) + tagSize)
	s, err := newSealer(&b, k, label(purpose, name))
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

// unsealJSON decrypts a column into value.
func (k *Keyring) unsealJSON(purpose, name string, sealed []byte, value any) error {
	plain, err := k.unseal(purpose, name, sealed)
	if err != nil {
		return fmt.Errorf("decrypt %s %q: %w", purpose, name, err)
	}
	if err := json.Unmarshal(plain, value); err != nil {
		return fmt.Errorf("decode %s %q: %w", purpose, name, err)
	}
	return nil
}

// unseal decrypts what seal encrypted; a column is mostly one segment.
func (k *Keyring) unseal(purpose, name string, sealed []byte) ([]byte, error) {
	u, err := newUnsealer(bytes.NewReader(sealed[:min(len(sealed), headerSize)]), k, label(purpose, name))
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
		return nil, errTampered
	}
	return plain, nil
}
