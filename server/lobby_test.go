package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/lobby"
)

// serving starts a server's public and API listeners.
func serving(t *testing.T, change func(*server.Options)) server.Addresses {
	t.Helper()
	s := newServer(t, newWorld(), func(o *server.Options) {
		o.Listen.Public, o.Listen.API = server.Listener{Address: "127.0.0.1:0"}, server.Listener{Address: "127.0.0.1:0"}
		o.Webhooks = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil || r.Header.Get("X-Genuine") == "" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			lobby.Known(r.Context())
		})
		if change != nil {
			change(o)
		}
	})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.RunIntake(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return s.Addresses()
}

func connectTo(t *testing.T, address, says string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err == nil {
		t.Cleanup(func() { conn.Close() })
		_, err = io.WriteString(conn, says)
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// deliver sends a genuine delivery on its own connection.
func deliver(t *testing.T, address string) {
	t.Helper()
	conn := connectTo(t, address, "POST /webhooks/x HTTP/1.1\r\nHost: x\r\nX-Genuine: yes\r\nContent-Length: 2\r\n\r\n{}")
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for range 2 { // whoever is known keeps the connection
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusOK || res.Close {
			t.Fatalf("a delivery was answered %+v, %v", res, err)
		}
		if _, err := io.WriteString(conn, "POST /webhooks/x HTTP/1.1\r\nHost: x\r\nX-Genuine: yes\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStrangersMakeRoom: beyond a bound of connections that have begun to speak
// the oldest ones are closed. A peer that has shown a credential stays.
func TestStrangersMakeRoom(t *testing.T) {
	t.Parallel()
	// A header that comes late is not what closes a connection here.
	at := serving(t, func(o *server.Options) { o.Limits.Patience = 30 * time.Minute })
	for name, address := range map[string]string{"public": at.Public, "api": at.API} {
		known := connectTo(t, address, "GET /api/v1/version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+viewerToken+"\r\n\r\n")
		if name == "public" {
			known = connectTo(t, address, "POST /webhooks/x HTTP/1.1\r\nHost: x\r\nX-Genuine: yes\r\nContent-Length: 2\r\n\r\n{}")
		}
		answers := bufio.NewReader(known)
		res, err := http.ReadResponse(answers, nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		first := connectTo(t, address, "P")
		for range 600 {
			connectTo(t, address, "P")
		}
		_ = first.SetReadDeadline(time.Now().Add(2 * time.Minute))
		got := make([]byte, 300)
		if n, err := first.Read(got); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the oldest stranger is there still: %v, %q", name, err, got[:n])
		}
		_, _ = io.WriteString(known, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if res, err := http.ReadResponse(answers, nil); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: who was known is answered %+v, %v", name, res, err)
		}
		// The answer to a stranger is the last one.
		res, err = http.ReadResponse(bufio.NewReader(connectTo(t, address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")), nil)
		if err != nil || res.StatusCode != http.StatusOK || !res.Close {
			t.Errorf("%s: a stranger is answered %+v, %v", name, res, err)
		}
	}
}

// TestStrangersWithTLS: the first byte is awaited before the handshake.
func TestStrangersWithTLS(t *testing.T) {
	t.Parallel()
	fake := httptest.NewUnstartedServer(nil)
	fake.StartTLS()
	defer fake.Close()
	at := serving(t, func(o *server.Options) {
		o.Listen.Public.TLS = &tls.Config{Certificates: fake.TLS.Certificates, MinVersion: tls.VersionTLS12}
	})
	for range 100 {
		connectTo(t, at.Public, "")
	}
	client := fake.Client()
	for range 2 {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+at.Public+"/webhooks/x", strings.NewReader("{}"))
		req.Header.Set("X-Genuine", "yes")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK || res.Close {
			t.Errorf("a delivery was answered %d, the last one: %t", res.StatusCode, res.Close)
		}
	}
}

// unsent is a body that a client must not send.
type unsent struct{ t *testing.T }

func (b unsent) Read([]byte) (int, error) {
	b.t.Error("a body that is refused was asked for")
	return 0, io.EOF
}

// A client that waits for "100 Continue" is answered at once when its body is
// refused: curl does so with bodies of more than a megabyte.
func TestRefusedBodyIsNotWaitedFor(t *testing.T) {
	addresses := serving(t, func(o *server.Options) {
		o.Webhooks = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			lobby.Known(r.Context()) // others are told that the connection ends
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			_, _ = io.WriteString(w, "too large")
		})
	})
	req, err := http.NewRequest("POST", "http://"+addresses.Public+"/webhooks/github", unsent{t})
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 30 << 20
	req.Header.Set("Expect", "100-continue")
	transport := &http.Transport{ExpectContinueTimeout: 3 * time.Minute}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("answered with %d, want 413", resp.StatusCode)
	}
}
