// Package freeport finds ports of loopback for servers that tests start.
package freeport

import (
	"net"
	"testing"
)

// Of returns a TCP port of 127.0.0.1 that nobody listens on. Somebody may take it before
// it is used: who starts a server there tries another one then.
func Of(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
