package lobby

import (
	lists "container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Bounds of a listener's lobby. Strangers are peers that have not shown a
// credential yet.
const (
	maxSilent    = 10_000 // connections without a first byte, about 5 KB each; fewer where few files may be open
	maxStrangers = 512    // connections with one, about 50 KB each with TLS
)

// Lobby is a listener whose connections wait for their first byte before they
// cost what serving HTTP costs. Beyond its bounds the oldest one that waits, or
// that is a stranger still, is closed: a flood ends its own connections first.
type Lobby struct {
	net.Listener
	patience     time.Duration // for a first byte
	maxSilent    int
	maxStrangers int

	start sync.Once
	ready chan *guest
	fails chan error // what ended accepting
	done  chan struct{}
	waits sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	silent    lists.List // of *guest, oldest first
	strangers lists.List
}

// New returns a lobby of a listener. Patience is how long a peer may take for its first
// byte.
func New(l net.Listener, patience time.Duration) *Lobby {
	return newLobby(l, patience, openFiles())
}

// newLobby returns a lobby in a process that may have so many files open: some are left to
// what it serves with, however many strangers connect.
func newLobby(l net.Listener, patience time.Duration, files int) *Lobby {
	const share = 6 // of three listeners: half of the files, and a sixth more for strangers
	return &Lobby{
		Listener: l, patience: patience, maxSilent: min(maxSilent, files/share), maxStrangers: min(maxStrangers, files/share/3),
		ready: make(chan *guest), fails: make(chan error, 1), done: make(chan struct{}),
	}
}

// guest is a connection of a lobby.
type guest struct {
	net.Conn
	lobby *Lobby
	first [1]byte
	has   bool           // first was not read yet
	known atomic.Bool    // it has shown a credential
	in    *lists.List    // where it waits; nil: nowhere. Guarded by lobby.mu.
	place *lists.Element // in it
}

// Accept returns a connection that has something to say.
func (l *Lobby) Accept() (net.Conn, error) {
	l.start.Do(func() { l.waits.Go(l.accept) })
	select {
	case g := <-l.ready:
		return g, nil
	case err := <-l.fails:
		return nil, err
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close closes the listener and all connections that nobody serves yet.
func (l *Lobby) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.done)
	err := l.Listener.Close()
	for at := l.silent.Front(); at != nil; at = at.Next() {
		_ = at.Value.(*guest).Conn.Close()
	}
	l.mu.Unlock()
	l.waits.Wait()
	return err
}

func (l *Lobby) accept() {
	for pause := 5 * time.Millisecond; ; {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			if g := l.admit(conn); g != nil {
				l.waits.Go(g.wait)
			}
			continue
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ECONNABORTED), errors.Is(err, syscall.ENOBUFS):
			l.evict(&l.silent, -1) // who waits longest makes room
		default:
			l.fails <- err
			return
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		case <-l.done:
			return
		}
	}
}

// admit takes a connection in that has said nothing; nil if the lobby is closed.
func (l *Lobby) admit(conn net.Conn) *guest {
	g := &guest{Conn: conn, lobby: l}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		_ = conn.Close()
		return nil
	}
	g.enter(&l.silent)
	l.mu.Unlock()
	l.evict(&l.silent, l.maxSilent)
	return g
}

// wait hands the connection on when it has said something.
func (g *guest) wait() {
	_ = g.SetReadDeadline(time.Now().Add(g.lobby.patience))
	n, err := g.Conn.Read(g.first[:])
	if n == 0 || err != nil {
		_ = g.Close()
		return
	}
	g.has = true
	_ = g.SetReadDeadline(time.Time{})
	l := g.lobby
	l.mu.Lock()
	if g.in == nil { // it was closed meanwhile
		l.mu.Unlock()
		return
	}
	g.leave()
	g.enter(&l.strangers)
	l.mu.Unlock()
	l.evict(&l.strangers, l.maxStrangers)
	select {
	case l.ready <- g:
	case <-l.done:
		_ = g.Close()
	}
}

// evict closes the oldest connection of a list if there are more than limit.
func (l *Lobby) evict(from *lists.List, limit int) {
	l.mu.Lock()
	if from.Len() == 0 || from.Len() <= limit {
		l.mu.Unlock()
		return
	}
	oldest := from.Front().Value.(*guest)
	oldest.leave()
	l.mu.Unlock()
	_ = oldest.Conn.Close()
}

// enter and leave are called with the lobby's mu held.
func (g *guest) enter(in *lists.List) { g.in, g.place = in, in.PushBack(g) }

func (g *guest) leave() {
	if g.in != nil {
		g.in.Remove(g.place)
		g.in, g.place = nil, nil
	}
}

// Read returns the first byte, then all others. Like all readers it is for one
// goroutine at a time.
func (g *guest) Read(p []byte) (int, error) {
	if g.has && len(p) > 0 {
		g.has, p[0] = false, g.first[0]
		return 1, nil
	}
	return g.Conn.Read(p)
}

// CloseWrite ends what is sent. net/http calls it after an answer to a body that
// it did not read, so that the client gets that answer before a reset.
func (g *guest) CloseWrite() error {
	if conn, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return nil
}

func (g *guest) Close() error {
	g.lobby.mu.Lock()
	g.leave()
	g.lobby.mu.Unlock()
	return g.Conn.Close()
}

// guestKey is the context key of a request's *guest.
type guestKey struct{}

// WithGuest is http.Server's ConnContext.
func WithGuest(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if g, ok := conn.(*guest); ok {
		ctx = context.WithValue(ctx, guestKey{}, g)
	}
	return ctx
}

// Known says that the peer of a request has shown a credential: its connection
// is not closed to make room for others, and may be used again.
func Known(ctx context.Context) {
	g, ok := ctx.Value(guestKey{}).(*guest)
	if !ok || g.known.Swap(true) {
		return
	}
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	g.leave()
}

// Stranger reports whether a request comes through a lobby, from a peer that has
// shown no credential.
func Stranger(ctx context.Context) bool {
	g, ok := ctx.Value(guestKey{}).(*guest)
	return ok && !g.known.Load()
}
