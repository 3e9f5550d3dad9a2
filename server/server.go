// Package server is Holdfast's front: three listeners, each for one kind of
// peer. Code hosts deliver webhooks to the public one; people and their tools
// use the API with a token of their own; agents speak the agent protocol, and
// through them engines the state backend, with a credential of one run.
//
// The package translates between HTTP and small interfaces that it declares
// (ports.go, api_ports.go) and decides who may do what. It keeps no records.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// Options are what a Server needs. All are required unless noted.
type Options struct {
	Dispatcher Dispatcher
	Registry   Registry
	Blobs      Blobs
	States     States
	Records    Records
	Commander  Commander

	Rescuer  Rescuer      // states that could not be saved; nil: the API has no routes for them
	Local    Local        // comments and statuses of the local forge; nil: there is none
	Posts    Posts        // what was posted on other forges; nil: not shown
	Webhooks http.Handler // mounted at /webhooks/ of the public listener; nil: there are none
	Metrics  http.Handler // mounted at /metrics of the API listener; nil: there are none

	// Ready returns what the server still waits for, in words; none means
	// ready. Nil means always ready. It must not block.
	Ready func() []string
	// Lacking returns what is wrong and keeps the server from nothing, in words, such
	// as that there is no agent for some runs. Nil: nothing ever. It must not block.
	Lacking func() []string

	Public Listener // off if it has no Address
	API    Listener // off if it has no Address
	Agents Listener // off if it has no Address
	Socket Socket   // the agents' listener on this machine; off if it has no Path

	APITokens   []Token      // of people and tools; none: the API refuses everybody
	AgentTokens []AgentToken // of agents, for claims; none: no agent gets a run

	Audit        Auditor          // puts refused claims on record; nil: they are only logged
	ClaimRefused func(why string) // counts refused claims: token, agent, kind or taken; nil counts nothing

	MaxArtefactBytes int64         // of one artefact, besides holdfast.ArtefactLimit; zero means 1 GiB
	MaxStateBytes    int64         // of one state; zero means 512 MiB
	Patience         time.Duration // with a peer, for a body or, with agents, for the next piece of one; zero means 30 s
	CommandWait      time.Duration // for a command's outcome to be known; zero means 30 s
	Drain            time.Duration // for open requests to end when a listener closes; zero means 10 s

	// Hosts are the names, besides localhost, under which the API is reached. Where
	// it listens on loopback only, /readyz and /metrics answer under no other name.
	Hosts []string

	Version string           // shown by the API
	Logger  *slog.Logger     // nil discards
	Now     func() time.Time // nil means time.Now
}

// Listener is a TCP address that a server listens on.
type Listener struct {
	Address string      // host:port; port 0 takes any that is free
	TLS     *tls.Config // nil: plain HTTP, for a loopback address or behind a proxy
}

// Socket is a Unix socket that a server listens on. It is made with mode 0600,
// or 0660 if it is shared.
type Socket struct {
	Path string // its folder must exist and be reachable for the agent's user
	// ChangeOwner gives the socket to UID and GID, those of an agent that runs
	// as another user. It takes root.
	ChangeOwner bool
	Shared      bool // with the members of the group GID: mode 0660
	UID, GID    int
}

const (
	defaultMaxArtefactBytes = 1 << 30
	defaultMaxStateBytes    = 512 << 20
	defaultPatience         = 30 * time.Second
	defaultCommandWait      = 30 * time.Second
	defaultDrain            = 10 * time.Second
)

// Server serves the listeners. Its handlers are safe for concurrent use.
type Server struct {
	opts   Options
	public http.Handler
	api    http.Handler
	agents http.Handler

	mu     sync.Mutex
	intake []*endpoint // public and API
	work   []*endpoint // agents and states
	bound  bool

	refused refusals
	uploads uploads
	feed    feedWatch

	stop     sync.Once
	stopping chan struct{} // closed when intake ends
}

// New returns a Server that listens nowhere yet, or an error that names what is
// missing.
func New(opts Options) (*Server, error) {
	switch {
	case opts.Dispatcher == nil:
		return nil, errors.New("server: no dispatcher")
	case opts.Registry == nil:
		return nil, errors.New("server: no registry")
	case opts.Blobs == nil:
		return nil, errors.New("server: no blobs")
	case opts.States == nil:
		return nil, errors.New("server: no states")
	case opts.Records == nil:
		return nil, errors.New("server: no records")
	case opts.Commander == nil:
		return nil, errors.New("server: no commander")
	}
	if err := checkTokens(opts.APITokens, true); err != nil {
		return nil, fmt.Errorf("server: API tokens: %w", err)
	}
	if err := checkAgentTokens(opts.AgentTokens); err != nil {
		return nil, fmt.Errorf("server: agent tokens: %w", err)
	}
	opts.setDefaults()

	// Gin's mode is its own global and only decides whether it prints its
	// routes on standard output, which belongs to whoever started us.
	gin.SetMode(gin.ReleaseMode)
	s := &Server{opts: opts, stopping: make(chan struct{})}
	s.public = s.publicRoutes()
	s.api = s.apiRoutes()
	s.agents = s.agentRoutes()
	return s, nil
}

func (o *Options) setDefaults() {
	if o.MaxArtefactBytes == 0 {
		o.MaxArtefactBytes = defaultMaxArtefactBytes
	}
	if o.MaxStateBytes == 0 {
		o.MaxStateBytes = defaultMaxStateBytes
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.CommandWait == 0 {
		o.CommandWait = defaultCommandWait
	}
	if o.Drain == 0 {
		o.Drain = defaultDrain
	}
	if o.Ready == nil {
		o.Ready = func() []string { return nil }
	}
	if o.Lacking == nil {
		o.Lacking = func() []string { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Public returns the handler of the public listener.
func (s *Server) Public() http.Handler { return s.public }

// API returns the handler of the API's listener.
func (s *Server) API() http.Handler { return s.api }

// Agents returns the handler of the agents' listeners.
func (s *Server) Agents() http.Handler { return s.agents }

// engine returns a router with what all listeners have in common.
func (s *Server) engine(largeBodies bool) *gin.Engine {
	e := gin.New()
	// A redirect would make a client repeat an upload, or lose its method.
	e.RedirectTrailingSlash = false
	e.HandleMethodNotAllowed = true
	_ = e.SetTrustedProxies(nil) // cannot fail: nothing to parse
	e.Use(s.logRequests, s.recoverPanics, s.guardTimes(largeBodies))
	e.NoRoute(func(c *gin.Context) {
		s.refuse(c, http.StatusNotFound, "no such path", "see the API's documentation for its paths")
	})
	e.NoMethod(func(c *gin.Context) {
		s.refuse(c, http.StatusMethodNotAllowed, "method "+c.Request.Method+" is not allowed here", "")
	})
	e.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	return e
}

func (s *Server) publicRoutes() http.Handler {
	e := s.engine(false)
	if s.opts.Webhooks != nil {
		e.Any("/webhooks/*path", func(c *gin.Context) {
			if s.isStopping() {
				s.fail(c, fmt.Errorf("server is stopping: %w", holdfast.ErrUnavailable))
				return
			}
			s.opts.Webhooks.ServeHTTP(c.Writer, c.Request)
		})
	}
	return e
}

func (s *Server) ready(c *gin.Context) {
	answer := v1.Readiness{Reasons: s.opts.Ready(), Warnings: s.opts.Lacking(), Agents: count(s.opts.Registry.Heard())}
	if s.isStopping() {
		answer.Reasons = append(answer.Reasons, "server is stopping")
	}
	answer.Ready = len(answer.Reasons) == 0
	status := http.StatusOK
	if !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	c.JSON(status, answer)
}

// count leaves out who the agents are: whoever asks shows no token.
func count(agents []holdfast.AgentStatus) []v1.AgentCount {
	var out []v1.AgentCount
	for _, a := range agents {
		if !a.Living {
			continue
		}
		kinds := slices.Clone(a.Kinds)
		slices.Sort(kinds)
		alike := func(c v1.AgentCount) bool { return c.Isolation == a.Isolation && slices.Equal(c.Kinds, kinds) }
		if i := slices.IndexFunc(out, alike); i >= 0 {
			out[i].Count++
			continue
		}
		out = append(out, v1.AgentCount{Kinds: kinds, Isolation: a.Isolation, Count: 1})
	}
	return out
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// untilStop returns ctx, done also when intake ends: for requests that wait.
func (s *Server) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-s.stopping:
			cancel(fmt.Errorf("server is stopping: %w", holdfast.ErrUnavailable))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled); <-done }
}
