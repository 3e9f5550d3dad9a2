package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// registryIP is the host of the registry: a token of Terraform's environment names a
// host, and never a port, so that the registry needs the port of HTTPS.
const registryIP = "127.0.0.9"

// moduleRegistry speaks the registry protocol of modules to whoever has the token, and
// returns its certificate.
func moduleRegistry(t *testing.T, token string) []byte {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	code := "resource \"terraform_data\" \"net\" {\n  input = \"a net\"\n}\n"
	if err := files.WriteHeader(&tar.Header{Name: "main.tf", Mode: 0o644, Size: int64(len(code))}); err != nil {
		t.Fatal(err)
	}
	_, _ = files.Write([]byte(code)) // into memory
	_, _ = files.Close(), zipped.Close()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/terraform.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"modules.v1": "/v1/modules/"}`))
	})
	known := func(answer http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+token {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			answer(w, r)
		}
	}
	mux.HandleFunc("GET /v1/modules/acme/net/null/versions", known(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"modules": [{"versions": [{"version": "1.0.0"}]}]}`))
	}))
	mux.HandleFunc("GET /v1/modules/acme/net/null/1.0.0/download", known(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Terraform-Get", "https://"+registryIP+"/net.tar.gz")
		w.WriteHeader(http.StatusNoContent)
	}))
	mux.HandleFunc("GET /net.tar.gz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive.Bytes()) })

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plan := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "registry"}, IPAddresses: []net.IP{net.ParseIP(registryIP)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", registryIP+":443")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(mux)
	_ = server.Listener.Close()
	server.Listener = listener
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// A module's source is a private registry: runs of those whose credentials have its
// token read it, nobody else's do, and nothing shows the token.
func TestModulesOfARegistry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	needRoot(w) // of the port
	const token = "only-for-who-reads-the-registry"
	w.write("registry.pem", string(moduleRegistry(t, token)), 0o644)
	w.write("registry-token", token, 0o600)
	trust := map[string]any{"SSL_CERT_FILE": w.path("registry.pem")}
	w.set(settings{"runs.retries": 0, "credentials": []any{
		map[string]any{"project": "shop", "env": trust},
		map[string]any{"project": "shop", "environment": "production", "secrets": map[string]any{"TF_TOKEN_127_0_0_9": map[string]any{"file": "registry-token"}}},
	}})
	w.start()
	code := "module \"net\" {\n  source  = \"" + registryIP + "/acme/net/null\"\n  version = \"~> 1.0\"\n}\n"
	alpha := w.fleet().open(join(document("alpha"), moduleFile("alpha", code)))
	alpha.untilPlanned("2 to create")
	alpha.merge()
	alpha.untilApplied("2 created")

	other := document("beta")
	other["clusters/beta.yaml"] = strings.Replace(other["clusters/beta.yaml"], "production", "staging", 1)
	beta := w.fleet().open(join(other, moduleFile("beta", code)))
	w.fleet().untilStatus(beta.head, holdfast.ContextPlan, holdfast.StatusFailure, "beta")
	beta.untilComment("beta", "plan failed", "401 Unauthorized", "check that the credentials")
	said, _, _ := w.cli("logs", w.runs("alpha")[0].ID)
	for what, text := range map[string]string{
		"alpha": alpha.comment(), "beta": beta.comment(), "server": w.log.all(), "agent": w.agentLog(), "log": said,
	} {
		if strings.Contains(text, token) {
			t.Errorf("the token is shown: %s", what)
		}
	}
}
