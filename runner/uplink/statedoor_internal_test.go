package uplink

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// visitor is a connection that notes whether it was closed.
type visitor struct {
	net.Conn
	closed atomic.Bool
}

func (v *visitor) Close() error {
	v.closed.Store(true)
	return nil
}

// visitors is a listener to which they come one after the other.
type visitors struct {
	net.Listener
	came []*visitor
}

func (v *visitors) Accept() (net.Conn, error) {
	v.came = append(v.came, &visitor{})
	return v.came[len(v.came)-1], nil
}

// TestDoor: beyond the bound the oldest stranger is closed, and nobody who has shown a
// credential. Who has gone makes room.
func TestDoor(t *testing.T) {
	t.Parallel()
	list := &visitors{}
	d := &door{Listener: list}
	accept := func() net.Conn {
		t.Helper()
		conn, err := d.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	closed := func() (at []int) {
		for i, v := range list.came {
			if v.closed.Load() {
				at = append(at, i)
			}
		}
		return at
	}
	engine := accept()
	known(httptest.NewRequest(http.MethodGet, "/state", nil).WithContext(withCaller(context.Background(), engine)))
	for range maxStrangers {
		accept()
	}
	if got := closed(); len(got) != 0 {
		t.Fatalf("within the bound, %v are closed", got)
	}
	last := accept()
	if got := closed(); len(got) != 1 || got[0] != 1 {
		t.Fatalf("with one stranger too many, %v are closed, want the oldest", got)
	}
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
	accept()
	if got := closed(); len(got) != 2 || got[1] != maxStrangers+1 {
		t.Errorf("when one has gone, %v are closed: want it and the one before", got)
	}
	accept()
	if got := closed(); len(got) != 3 || got[1] != 2 {
		t.Errorf("with one more, %v are closed, want the next oldest", got)
	}
}
