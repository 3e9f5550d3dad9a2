package runner_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// dialState opens a connection to a state endpoint and says something on it.
func dialState(t *testing.T, addr, said string) net.Conn {
	t.Helper()
	where, err := url.Parse(addr)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", where.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, said); err != nil {
		t.Fatal(err)
	}
	return conn
}

// closed reports whether the other side has closed a connection, or does so soon.
func closed(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	return err != nil && (!errors.As(err, &timeout) || !timeout.Timeout())
}

// TestStateEndpointOfManyStrangers: connections without a credential, which whatever
// an engine starts can open, keep no engine waiting. Which of them are closed is a test of
// the door's own.
func TestStateEndpointOfManyStrangers(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunPlan), func(_ context.Context, s runner.Session) {
		addr, _, _ := s.StateAddress()
		dialState(t, addr, "GET /state HTTP/1.1\r\nHost: x\r\n")
		for range 1000 {
			dialState(t, addr, "")
		}
		if got, answer := stateRequest(t, s, http.MethodGet, "", ""); got != http.StatusNoContent {
			t.Errorf("the engine is answered %d %q among strangers", got, answer)
		}
		// One that is not heard out keeps nothing either.
		away := dialState(t, addr, "POST /state HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(away), nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusUnauthorized || !closed(away) {
			t.Errorf("a stranger's request is answered %d, %v, and the connection stays", res.StatusCode, err)
		}
	})
}

// TestStateEndpointOfOneAttempt: with the credential of an attempt few requests are
// served at a time, and few wait; those of another attempt are served.
func TestStateEndpointOfOneAttempt(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	read := func(s runner.Session, when string) {
		if got, answer := stateRequest(t, s, http.MethodGet, "", ""); got != http.StatusNoContent {
			t.Errorf("%s: %d %q", when, got, answer)
		}
	}
	flood := func(s runner.Session) {
		addr, user, password := s.StateAddress()
		slow := fmt.Sprintf("LOCK /state HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\nContent-Length: 1000\r\n\r\n{",
			base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
		var held []net.Conn
		for range 200 {
			held = append(held, dialState(t, addr, slow))
		}
		refused := make(chan bool, len(held))
		for _, conn := range held {
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			go func() {
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err == nil {
					_ = res.Body.Close()
				}
				refused <- err == nil && res.StatusCode == http.StatusServiceUnavailable
			}()
		}
		for range 150 {
			if !<-refused {
				t.Error("fewer than 150 of 200 requests at once were refused")
				break
			}
		}
		server.assign(assignment("run-2", holdfast.RunPlan))
		server.result(t, "run-2")
		for _, conn := range held {
			_ = conn.Close()
		}
		// The endpoint sees some time later that they are gone.
		for deadline := time.Now().Add(time.Minute); ; {
			got, answer := stateRequest(t, s, http.MethodGet, "", "")
			if got == http.StatusNoContent {
				return
			}
			if got != http.StatusServiceUnavailable || time.Now().After(deadline) {
				t.Errorf("when nothing waits any more: %d %q", got, answer)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: t.TempDir(), Claims: runner.Claims{Slots: 2}, Executor: fakeExecutor{
		run: func(_ context.Context, a protocol.Assignment, s runner.Session) protocol.Result {
			if a.Run == "run-1" {
				flood(s)
			} else {
				read(s, "beside the other attempt")
			}
			return protocol.Result{Status: holdfast.RunNoChanges}
		},
	}})
	server.assign(assignment("run-1", holdfast.RunPlan))
	server.result(t, "run-1")
}

// TestLockIDsAreBounded: the ids that a run has asked for are kept.
func TestLockIDsAreBounded(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunPlan), func(_ context.Context, s runner.Session) {
		for length, want := range map[int]int{36: http.StatusOK, 100_000: http.StatusBadRequest} {
			body := fmt.Sprintf(`{"ID":%q}`, strings.Repeat("a", length))
			if got, answer := stateRequest(t, s, "LOCK", "", body); got != want {
				t.Errorf("LOCK with an id of %d characters: %d %q, want %d", length, got, answer, want)
			}
			_, _ = stateRequest(t, s, "UNLOCK", "", body)
		}
	})
}
