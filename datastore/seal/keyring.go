package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/durable"
)

// KeySize is the size of a key in bytes.
const KeySize = 32

// ErrNoKey says that something was encrypted with a key that is not in the ring.
var ErrNoKey = errors.New("no key")

// keyID tells the keys of a ring apart. It is derived from the key and is not
// secret.
type keyID [8]byte

func (id keyID) String() string { return hex.EncodeToString(id[:]) }

type key struct {
	id     keyID
	secret []byte
}

// Keyring holds the keys under which content is encrypted at rest. The current
// key encrypts; all decrypt. It never changes and is safe for concurrent use.
type Keyring struct{ keys []key }

// NewKeyring returns a ring of the current key and older ones, each of KeySize
// bytes. An older key is needed as long as something it encrypted is kept.
func NewKeyring(current []byte, older ...[]byte) (*Keyring, error) {
	ring := &Keyring{}
	for i, secret := range append([][]byte{current}, older...) {
		if len(secret) != KeySize {
			return nil, fmt.Errorf("key %d of %d: has %d bytes, want %d", i+1, len(older)+1, len(secret), KeySize)
		}
		raw, err := hkdf.Key(sha256.New, secret, nil, "holdfast key id", len(keyID{}))
		if err != nil {
			return nil, fmt.Errorf("derive key id: %w", err)
		}
		ring.keys = append(ring.keys, key{id: keyID(raw), secret: bytes.Clone(secret)})
	}
	return ring, nil
}

// Empty reports whether there is no key in the ring: NewKeyring never returns such.
func (k *Keyring) Empty() bool { return k == nil || len(k.keys) == 0 }

// Derive returns a key of KeySize bytes for one purpose; keys of different
// purposes tell nothing of one another. It comes from the oldest key of the
// ring: adding a new current key changes nothing that is in use, taking the
// oldest away does.
func (k *Keyring) Derive(purpose string) []byte {
	oldest := k.keys[len(k.keys)-1]
	derived, err := hkdf.Key(sha256.New, oldest.secret, nil, "holdfast derived key: "+purpose, KeySize)
	if err != nil {
		panic(err) // only for lengths beyond 255 hashes
	}
	return derived
}

// String tells the key ids, never the keys.
func (k *Keyring) String() string {
	var b bytes.Buffer
	b.WriteString("keyring")
	for _, key := range k.keys {
		b.WriteString(" " + key.id.String())
	}
	return b.String()
}

// GoString is String.
func (k *Keyring) GoString() string { return k.String() }

// current is the key that encrypts.
func (k *Keyring) current() key { return k.keys[0] }

func (k *Keyring) find(id keyID) (key, error) {
	for _, key := range k.keys {
		if key.id == id {
			return key, nil
		}
	}
	return key{}, fmt.Errorf("%w %s in the %s", ErrNoKey, id, k)
}

// LoadOrCreateKey is LoadKey, but a missing file is created with a new key, for
// its owner only; two processes that create it at once end up with the same key.
func LoadOrCreateKey(path string) ([]byte, error) {
	secret, err := LoadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := createKey(path); err != nil {
		return nil, fmt.Errorf("create key file: %w", err)
	}
	return LoadKey(path)
}

// LoadKey reads the key in a file: 32 bytes, raw or as hexadecimal or base64
// text. A file that everybody may read is refused; one that is missing is an
// fs.ErrNotExist.
func LoadKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return nil, fmt.Errorf("read key file %s: everybody may read or write it (mode %04o): run chmod 600 on it", path, mode)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	secret, ok := decodeKey(data)
	if !ok {
		return nil, fmt.Errorf("read key file %s: want %d bytes, raw or as hexadecimal or base64 text; it has %d bytes", path, KeySize, len(data))
	}
	return secret, nil
}

func decodeKey(data []byte) ([]byte, bool) {
	if len(data) == KeySize {
		return data, true
	}
	text := string(bytes.TrimSpace(data))
	decoders := []func(string) ([]byte, error){
		hex.DecodeString,
		base64.StdEncoding.DecodeString,
		base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString,
		base64.RawURLEncoding.DecodeString,
	}
	for _, decode := range decoders {
		if secret, err := decode(text); err == nil && len(secret) == KeySize {
			return secret, true
		}
	}
	return nil, false
}

// createKey makes the file appear whole or not at all, and leaves a file that
// appeared meanwhile alone.
func createKey(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	secret := make([]byte, KeySize)
	_, _ = rand.Read(secret) // never fails: crypto/rand ends the process instead
	_, err = f.WriteString(hex.EncodeToString(secret) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.SyncDir(dir)
}
