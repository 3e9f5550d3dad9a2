package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/server/lobby"
)

// endpoint is one bound listener and what serves it.
type endpoint struct {
	name     string
	listener net.Listener
	server   *http.Server
	cleanup  func() // after the listener was closed
}

// Addresses are where a Server listens; empty where it does not.
type Addresses struct {
	Public, API, Agents, Socket string
}

// Listen binds all listeners, or none and says why. Agents and webhooks wait in
// the kernel's queue until RunIntake and RunAgents serve them.
func (s *Server) Listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bound {
		return nil
	}
	err := s.bind()
	if err != nil {
		for _, e := range append(s.intake, s.work...) {
			e.close()
		}
		s.intake, s.work = nil, nil
		return err
	}
	s.bound = true
	return nil
}

func (s *Server) bind() error {
	for _, l := range []struct {
		name     string
		listener Listener
		handler  http.Handler
		to       *[]*endpoint
	}{
		{"public", s.listen.Public, s.public, &s.intake},
		{"api", s.listen.API, s.api, &s.intake},
		{"agents", s.listen.Agents, s.agents, &s.work},
	} {
		if l.listener.Address == "" {
			continue
		}
		ln, err := net.Listen("tcp", l.listener.Address)
		if err != nil {
			return fmt.Errorf("listen for %s: %w", l.name, err)
		}
		ln = lobby.New(ln, s.limits.Patience)
		if l.listener.TLS != nil {
			ln = tls.NewListener(ln, lobby.Handshakes(withHTTP(l.listener.TLS)))
		}
		*l.to = append(*l.to, s.endpoint(l.name, ln, l.handler))
	}
	if s.listen.Socket.Path == "" {
		return nil
	}
	ln, cleanup, err := listenUnix(s.listen.Socket)
	if err != nil {
		return fmt.Errorf("listen for socket: %w", err)
	}
	e := s.endpoint("socket", ln, s.agents)
	e.cleanup = cleanup
	s.work = append(s.work, e)
	return nil
}

// withHTTP returns config with the protocols that we speak.
func withHTTP(config *tls.Config) *tls.Config {
	config = config.Clone()
	if len(config.NextProtos) == 0 {
		config.NextProtos = []string{"http/1.1"}
	}
	if config.MinVersion == 0 {
		config.MinVersion = tls.VersionTLS12
	}
	return config
}

func (s *Server) endpoint(name string, ln net.Listener, handler http.Handler) *endpoint {
	return &endpoint{
		name:     name,
		listener: ln,
		// Deadlines for bodies and answers are set for each request (guardTimes):
		// a whole-request timeout here would end log streams and claims that wait.
		server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: max(min(s.limits.Patience, 10*time.Second), s.limits.Patience/3),
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    16 << 10,
			ConnContext:       lobby.WithGuest,
			ErrorLog:          s.errorLog(name),
		},
	}
}

func (e *endpoint) close() {
	_ = e.server.Close()
	_ = e.listener.Close()
	if e.cleanup != nil {
		e.cleanup()
		e.cleanup = nil
	}
}

// Addresses returns where the server listens, after Listen.
func (s *Server) Addresses() Addresses {
	s.mu.Lock()
	defer s.mu.Unlock()
	var a Addresses
	for _, e := range append(append([]*endpoint{}, s.intake...), s.work...) {
		switch e.name {
		case "public":
			a.Public = e.listener.Addr().String()
		case "api":
			a.API = e.listener.Addr().String()
		case "agents":
			a.Agents = e.listener.Addr().String()
		case "socket":
			a.Socket = s.listen.Socket.Path
		}
	}
	return a
}

// RunIntake serves webhooks and the API until ctx is done, then takes nothing
// more in: claims are refused, requests that wait are answered, the others
// have Drain to end. It returns nil then, or what made a listener fail.
func (s *Server) RunIntake(ctx context.Context) error {
	// However it ends: agents must not be given work that nobody follows up.
	defer s.stopIntake()
	if err := s.Listen(); err != nil {
		return err
	}
	return s.run(ctx, s.intake, s.stopIntake)
}

// RunAgents serves agents and their engines until ctx is done. It is to be the
// last thing that ends: while it serves, engines can store their states and
// agents can report. It returns nil when ctx is done, or what made a listener
// fail.
func (s *Server) RunAgents(ctx context.Context) error {
	if err := s.Listen(); err != nil {
		return err
	}
	return s.run(ctx, s.work, s.stopIntake)
}

func (s *Server) stopIntake() { s.stop.Do(func() { close(s.stopping) }) }

// run serves endpoints until ctx is done or one of them fails, then calls
// stopping and closes them.
func (s *Server) run(ctx context.Context, endpoints []*endpoint, stopping func()) error {
	g, failed := errgroup.WithContext(ctx)
	for _, e := range endpoints {
		g.Go(func() error {
			if err := e.server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve %s: %w", e.name, err)
			}
			return nil
		})
		g.Go(func() error {
			<-failed.Done()
			stopping()
			drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.Drain)
			defer cancel()
			if err := e.server.Shutdown(drain); err != nil {
				s.log.WarnContext(ctx, "open requests were cut off", "listener", e.name, "err", err)
			}
			e.close()
			return nil
		})
	}
	g.Go(func() error {
		<-failed.Done() // with no endpoint at all, run lasts as long as ctx too
		return nil
	})
	return g.Wait()
}

// maxSocketPath is the longest path that fits into a socket's address.
const maxSocketPath = 107

// listenUnix makes the socket in a folder that nobody else can enter, gives it
// its mode and owner, and moves it to its place: it is never reachable for
// anybody else, and one that a dead server left is replaced.
func listenUnix(socket Socket) (net.Listener, func(), error) {
	if err := checkSocketFree(socket.Path); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(socket.Path), ".s")
	if err != nil {
		return nil, nil, fmt.Errorf("make socket: %w", err)
	}
	defer os.RemoveAll(dir)

	made := filepath.Join(dir, "s")
	if len(made) > maxSocketPath || len(socket.Path) > maxSocketPath {
		return nil, nil, fmt.Errorf("make socket %s: path is longer than a socket's may be; choose a shorter data folder", socket.Path)
	}
	ln, err := net.Listen("unix", made)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket %s: %w", socket.Path, err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // it would unlink the path that it was made at
	if err := place(made, socket); err != nil {
		_ = ln.Close()
		return nil, nil, err
	}
	ours, err := os.Lstat(socket.Path)
	if err != nil {
		_ = ln.Close()
		return nil, nil, fmt.Errorf("make socket: %w", err)
	}
	return ln, func() { removeIfSame(socket.Path, ours) }, nil
}

// checkSocketFree is an error if somebody listens at path, or if something
// other than a socket is there.
func checkSocketFree(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look at socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("make socket %s: there is something else at this path; remove it or choose another", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("make socket %s: another server listens there", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) { // one that is busy is not dead
		return fmt.Errorf("make socket %s: look whether another server listens there: %w", path, err)
	}
	return nil
}

func place(made string, socket Socket) error {
	mode := fs.FileMode(0o600)
	if socket.Shared {
		mode = 0o660
	}
	if err := os.Chmod(made, mode); err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	if socket.ChangeOwner {
		if err := os.Lchown(made, socket.UID, socket.GID); err != nil {
			return fmt.Errorf("give socket to the agent's user: %w", err)
		}
	}
	if err := os.Rename(made, socket.Path); err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	return nil
}

// removeIfSame leaves alone what a successor has put there meanwhile.
func removeIfSame(path string, ours fs.FileInfo) {
	if now, err := os.Lstat(path); err == nil && os.SameFile(now, ours) {
		_ = os.Remove(path)
	}
}
