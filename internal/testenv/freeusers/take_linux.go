package freeusers

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
)

var taken struct { // until this process ends
	sync.Mutex
	names []net.Listener
}

// take takes a name, and reports whether it was free. The kernel gives it to one process,
// and takes it back at its end, however that happens. It is one of the network namespace.
func take(t testing.TB, name string) bool {
	t.Helper()
	l, err := net.Listen("unix", "@holdfast-test/"+name) //nolint:noctx // it does not wait
	if errors.Is(err, syscall.EADDRINUSE) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	taken.Lock()
	defer taken.Unlock()
	taken.names = append(taken.names, l)
	return true
}
