package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

// certified makes a certificate that is valid within those times.
func certified(t *testing.T, dir string, from, to time.Time) config.TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plan := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to, DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	out := config.TLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	for file, block := range map[string]*pem.Block{
		out.CertFile: {Type: "CERTIFICATE", Bytes: der}, out.KeyFile: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestCertificatesThatAreNotValid(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	for name, test := range map[string]struct {
		from, to    time.Duration // from now
		wrong, soon string
	}{
		"valid":        {from: -day, to: 90 * day},
		"expired":      {from: -2 * day, to: -day, wrong: "has expired at"},
		"not yet":      {from: day, to: 2 * day, wrong: "is not valid before"},
		"expires soon": {from: -day, to: 2 * day, soon: "expires at"},
	} {
		var server config.Server
		server.Agents.TLS = certified(t, t.TempDir(), now.Add(test.from), now.Add(test.to))
		server.API.TLS = config.TLS{CertFile: "/nonexistent/cert.pem", KeyFile: "/nonexistent/key.pem"}
		wrong, soon := certificateFaults(server, now)
		for what, got := range map[string]struct {
			errs []error
			want string
		}{"wrong": {wrong, test.wrong}, "soon": {soon, test.soon}} {
			switch {
			case got.want == "" && len(got.errs) > 0, got.want != "" && len(got.errs) != 1:
				t.Errorf("%s: %s: %v", name, what, got.errs)
			case got.want != "" && (!strings.Contains(got.errs[0].Error(), got.want) || !strings.Contains(got.errs[0].Error(), "server.agents.tls")):
				t.Errorf("%s: %s: %v", name, what, got.errs[0])
			}
		}
	}
}

// A certificate is read once, and again when its files were replaced; while they do
// not fit together, or are not there, the former one is used.
func TestCertificateIsReadWhenItChanges(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	now := time.Now()
	files := certified(t, dir, now, now.Add(time.Hour))
	served, err := certificate(files)
	if err != nil {
		t.Fatal(err)
	}
	get := func() *tls.Certificate {
		t.Helper()
		pair, err := served.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	first := get()
	if get() != first {
		t.Error("it was read again without a change")
	}
	renewed := certified(t, other, now, now.Add(2*time.Hour))
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(renewed.CertFile, files.CertFile)
	if get() != first {
		t.Error("a certificate is used without its key")
	}
	move(renewed.KeyFile, files.KeyFile)
	second := get()
	if second == first || !second.Leaf.NotAfter.After(first.Leaf.NotAfter) {
		t.Errorf("the renewed one is not used: valid until %s", second.Leaf.NotAfter)
	}
	if err := os.Remove(files.KeyFile); err != nil {
		t.Fatal(err)
	}
	if get() != second {
		t.Error("without its file the key is lost")
	}
	if _, err := certificate(files); err == nil {
		t.Error("a certificate without a key is served")
	}
}
