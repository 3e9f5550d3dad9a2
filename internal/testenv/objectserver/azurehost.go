package objectserver

import (
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
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// azureHosts is what storage accounts of Azure's public cloud are called.
const azureHosts = "blob.core.windows.net"

// AsAzure returns the environment with which a program that knows nothing but Azure's own
// addresses finds this Azurite there: through a proxy that answers for them, with a
// certificate of its own authority.
func (s *Server) AsAzure() map[string]string {
	s.t.Helper()
	certificate, authority := s.azureCertificate()
	tunnels := make(tunnels)
	front := &http.Server{
		Handler:           httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.Addr()}), // Host stays, which names the account
		ReadHeaderTimeout: patience,
	}
	go func() {
		_ = front.Serve(tls.NewListener(tunnels, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}))
	}()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.Host)
		if r.Method != http.MethodConnect || !strings.HasSuffix(host, "."+azureHosts) {
			http.Error(w, "only "+azureHosts+" is behind this proxy", http.StatusForbidden)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n"))
		tunnels <- conn
	}))
	s.t.Cleanup(func() {
		proxy.Close()
		_ = front.Close()
	})
	return map[string]string{"HTTPS_PROXY": proxy.URL, "SSL_CERT_FILE": authority, "ARM_ACCESS_KEY": s.Secret}
}

// tunnels are the connections that go through a proxy, as a listener.
type tunnels chan net.Conn

func (t tunnels) Accept() (net.Conn, error) {
	conn, ok := <-t
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (t tunnels) Close() error {
	close(t)
	return nil
}

func (t tunnels) Addr() net.Addr { return &net.TCPAddr{} }

// azureCertificate makes a certificate for all accounts, and writes its authority to a file.
func (s *Server) azureCertificate() (certificate tls.Certificate, authority string) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: azureHosts}, DNSNames: []string{"*." + azureHosts},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	authority = filepath.Join(s.t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, authority
}
