package objects

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// maxIdle is how many connections are kept while nothing is sent.
const maxIdle = 8

// newClient returns a client that never waits forever, while a body may take as long as it
// moves. It trusts the authorities of the system and of some files, which may be empty names.
func newClient(within limits, caFiles ...string) (*http.Client, error) {
	dialer := &net.Dialer{Timeout: within.dial, KeepAlive: 15 * time.Second}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return movingConn{conn, within.quiet}, nil
		},
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   within.dial,
		ResponseHeaderTimeout: within.answer,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       30 * time.Second,
		MaxIdleConns:          maxIdle,
		MaxIdleConnsPerHost:   maxIdle,
		DisableCompression:    true, // what is stored is random to a compressor
		Protocols:             new(http.Protocols),
	}
	// HTTP/1.1: a connection that died silently breaks one call, not all of them.
	transport.Protocols.SetHTTP1(true)
	var err error
	transport.TLSClientConfig.RootCAs, err = authorities(caFiles)
	if err != nil {
		return nil, fmt.Errorf("read certificate authorities: %w", err)
	}
	return &http.Client{Transport: transport}, nil
}

// authorities are those of the system and of some files; nil if there are no files.
func authorities(files []string) (*x509.CertPool, error) {
	var roots *x509.CertPool
	for _, file := range files {
		if file == "" {
			continue
		}
		if roots == nil {
			var err error
			if roots, err = x509.SystemCertPool(); err != nil {
				roots = x509.NewCertPool()
			}
		}
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM", file)
		}
	}
	return roots, nil
}

// movingConn breaks when nothing has moved on it for a while, in either direction: the wait
// for an answer begins before the request has been sent.
type movingConn struct {
	net.Conn
	quiet time.Duration
}

func (c movingConn) Read(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.quiet)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c movingConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.quiet)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// systemCause is what the machine itself reports in an error, such as that its disk is
// full; nil if it says nothing.
func systemCause(err error) error {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, cause) {
			return cause
		}
	}
	return nil
}
