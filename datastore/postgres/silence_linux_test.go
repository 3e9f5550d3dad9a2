package postgres

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNobodyHears: what is sent to a machine that is gone is given up soon, and not when the system
// has sent it again for a quarter of an hour.
func TestNobodyHears(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	config, err := parse("postgres://holdfast@" + listener.Addr().String() + "/holdfast")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := config.DialFunc(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var got int
	var failed error
	if err := raw.Control(func(fd uintptr) { got, failed = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if got != int(unheard.Milliseconds()) {
		t.Errorf("what was sent may be unheard for %d ms, want %d", got, unheard.Milliseconds())
	}
}

// TestSilence: a database that does not answer is known as such before a query has failed.
func TestSilence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pools Pools
		want  bool
	}{
		"not ours":          {Pools{}, false},
		"renewed lately":    {Pools{member: &Member{renewed: time.Now()}}, false},
		"not renewed":       {Pools{member: &Member{renewed: time.Now().Add(-leaseTime - time.Second)}}, true},
		"of another server": {Pools{member: &Member{renewed: time.Now().Add(-time.Hour), over: true}}, false},
	} {
		if got := test.pools.Silent(); got != test.want {
			t.Errorf("%s: Silent() = %t", name, got)
		}
	}
}
