package seal_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// noise returns bytes that no compression and no guess makes shorter.
func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return data
}

// testKeys returns a ring of keys that consist of one byte each, the current one first.
func testKeys(t *testing.T, keys ...byte) *seal.Keyring {
	t.Helper()
	var secrets [][]byte
	for _, key := range keys {
		secrets = append(secrets, bytes.Repeat([]byte{key}, seal.KeySize))
	}
	ring, err := seal.NewKeyring(secrets[0], secrets[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func TestLoadOrCreateKey(t *testing.T) {
	t.Parallel()
	secret := noise(seal.KeySize)
	for name, test := range map[string]struct {
		content []byte
		mode    os.FileMode
		want    string // in the error; empty: the secret
	}{
		"raw":              {secret, 0o600, ""},
		"hexadecimal":      {[]byte(hex.EncodeToString(secret) + "\n"), 0o600, ""},
		"base64":           {[]byte(base64.StdEncoding.EncodeToString(secret)), 0o400, ""},
		"base64, unpadded": {[]byte(base64.RawURLEncoding.EncodeToString(secret) + "\r\n"), 0o440, ""},
		"too short":        {secret[:31], 0o600, "want 32 bytes"},
		"empty":            {nil, 0o600, "want 32 bytes"},
		"for everybody":    {secret, 0o644, "everybody may read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, test.content, test.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, test.mode); err != nil {
				t.Fatal(err)
			}
			got, err := seal.LoadOrCreateKey(path)
			if test.want == "" {
				if err != nil || !bytes.Equal(got, secret) {
					t.Errorf("LoadOrCreateKey() = %x, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("LoadOrCreateKey() = %v, want an error with %q and the path", err, test.want)
			}
		})
	}
}

func TestLoadOrCreateKeyCreatesOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys", "key")
	keys := make([][]byte, 20)
	var group sync.WaitGroup
	for i := range keys {
		group.Go(func() {
			key, err := seal.LoadOrCreateKey(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	group.Wait()
	for _, key := range keys {
		if len(key) != seal.KeySize || !bytes.Equal(key, keys[0]) {
			t.Fatalf("processes that start at once have keys %x and %x", keys[0], key)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file has mode %v, %v; want 0600", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v; want the key alone", left, err)
	}
}

func TestLoadKeyCreatesNone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "old-key")
	if _, err := seal.LoadKey(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("LoadKey() of a missing file = %v, want fs.ErrNotExist", err)
	}
}

func TestKeyring(t *testing.T) {
	t.Parallel()
	one, rotated := testKeys(t, 'a'), testKeys(t, 'b', 'a')
	if !bytes.Equal(one.Derive("runs"), rotated.Derive("runs")) {
		t.Error("a new current key changes what was derived: tokens of running attempts would end")
	}
	if bytes.Equal(one.Derive("runs"), one.Derive("plans")) || bytes.Equal(one.Derive("runs"), testKeys(t, 'b').Derive("runs")) {
		t.Error("keys of different purposes or rings are the same")
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, one); strings.Contains(text, "aaaa") || strings.Contains(text, "97") {
			t.Errorf("%s prints the key: %s", format, text)
		}
	}
	if _, err := seal.NewKeyring(noise(16)); err == nil {
		t.Error("NewKeyring of 16 bytes is not an error")
	}
}
