// Bounds of connections to the state endpoint.

package uplink

import (
	lists "container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of an agent's state endpoint: whatever an engine starts can connect to it,
// and must not take the agent's memory or descriptors from other runs.
const (
	maxStrangers = 512 // connections whose request was not read yet, or has no credential
	maxServed    = 2   // requests of one attempt at a time: an engine makes one after the other
	maxWaiting   = 32  // requests of one attempt that wait for that
)

// door is a listener whose oldest connection is closed if there are too many that
// have shown no credential.
type door struct {
	net.Listener

	mu        sync.Mutex
	strangers lists.List // of *caller, oldest first
}

// caller is a connection of a door.
type caller struct {
	net.Conn
	door  *door
	place *lists.Element // nil: it has shown a credential. Guarded by door.mu.
}

// Accept returns a stranger.
func (d *door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &caller{Conn: conn, door: d}
	d.mu.Lock()
	c.place = d.strangers.PushBack(c)
	var oldest *caller
	if d.strangers.Len() > maxStrangers {
		oldest, _ = d.strangers.Front().Value.(*caller)
	}
	d.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return c, nil
}

// Close closes the connection.
func (c *caller) Close() error {
	c.leave()
	return c.Conn.Close()
}

// CloseWrite ends what is sent. net/http calls it after an answer to a body that it
// did not read.
func (c *caller) CloseWrite() error {
	if conn, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return nil
}

func (c *caller) leave() {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	if c.place != nil {
		c.door.strangers.Remove(c.place)
		c.place = nil
	}
}

type callerKey struct{}

// withCaller is http.Server's ConnContext.
func withCaller(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, callerKey{}, conn)
}

// known says that the peer of a request has shown a credential.
func known(r *http.Request) {
	if c, ok := r.Context().Value(callerKey{}).(*caller); ok {
		c.leave()
	}
}

// turnAway refuses a request whose body is not read, and waits for none of it.
func turnAway(w http.ResponseWriter, why string, status int) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	http.Error(w, why, status)
}

// turns lets few requests of an attempt be served at a time. Each can hold a state
// in memory.
type turns struct {
	free    chan struct{}
	waiting atomic.Int32
}

func newTurns() *turns { return &turns{free: make(chan struct{}, maxServed)} }

// take waits for a turn, and reports whether there is one in time. It ends with give.
func (t *turns) take(ctx context.Context) bool {
	defer t.waiting.Add(-1)
	if t.waiting.Add(1) > maxWaiting {
		return false
	}
	timer := time.NewTimer(stateWait)
	defer timer.Stop()
	select {
	case t.free <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

func (t *turns) give() { <-t.free }
